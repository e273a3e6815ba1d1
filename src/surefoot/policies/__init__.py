"""From return distributions to actions."""

from surefoot.policies.base import DecidedBy, Decision, Policy, View, decide_rows, precision
from surefoot.policies.explore import Explore
from surefoot.policies.named import POLICIES, policy_named, policy_text
from surefoot.policies.risk import CPW, CVaR, Distortion, Greedy, MeanVariance, RiskMeasure, Wang
from surefoot.policies.ssd import SSD

__all__ = [
    "CPW",
    "POLICIES",
    "SSD",
    "CVaR",
    "DecidedBy",
    "Decision",
    "Distortion",
    "Explore",
    "Greedy",
    "MeanVariance",
    "Policy",
    "RiskMeasure",
    "View",
    "Wang",
    "decide_rows",
    "policy_named",
    "policy_text",
    "precision",
]
