"""Markov decision processes: arrays, exact values, simulation and Gymnasium environments."""

from surefoot.envs.cliffs import (
    ACTION_NAMES,
    ARROWS,
    CliffGrid,
    GreedyPath,
    cliff_walk,
    greedy_path,
    noisy_states,
    risky_cliff,
    top_row_reward,
)
from surefoot.envs.discrete import decode, encode, tabular_from_gym
from surefoot.envs.drawing import draw_grid, draw_path, draw_pixels
from surefoot.envs.dynamic import (
    PolicyEvaluation,
    Surest,
    ValueIteration,
    evaluate_policy,
    expected_visits,
    optimal_actions,
    policy_probabilities,
    reward_moments,
    surest,
    value_iteration,
)
from surefoot.envs.environments import CliffWalkEnv, RiskTaskEnv, RiskyCliffEnv, TabularEnv
from surefoot.envs.exact import ExactProcess, ExactReturns, ReturnLaw, exact_process
from surefoot.envs.finite import TabularMDP, reset, step
from surefoot.envs.montecarlo import Rollouts, simulate_returns
from surefoot.envs.risk import QUESTIONS, RiskTask
from surefoot.envs.risk_tasks import FINITE_TASKS, finite_task

__all__ = [
    "ACTION_NAMES",
    "ARROWS",
    "FINITE_TASKS",
    "QUESTIONS",
    "CliffGrid",
    "CliffWalkEnv",
    "ExactProcess",
    "ExactReturns",
    "GreedyPath",
    "PolicyEvaluation",
    "ReturnLaw",
    "RiskTask",
    "RiskTaskEnv",
    "RiskyCliffEnv",
    "Rollouts",
    "Surest",
    "TabularEnv",
    "TabularMDP",
    "ValueIteration",
    "cliff_walk",
    "decode",
    "draw_grid",
    "draw_path",
    "draw_pixels",
    "encode",
    "evaluate_policy",
    "exact_process",
    "expected_visits",
    "finite_task",
    "greedy_path",
    "noisy_states",
    "optimal_actions",
    "policy_probabilities",
    "reset",
    "reward_moments",
    "risky_cliff",
    "simulate_returns",
    "step",
    "surest",
    "tabular_from_gym",
    "top_row_reward",
    "value_iteration",
]
