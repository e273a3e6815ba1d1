"""Optimal transport on the line and the proximal steps built on it."""

from surefoot.core.names import ANNEALING, NAMED_LOSSES, SOLVERS, TRANSPORTS
from surefoot.transport.couplings import Debiased, Entropic, Exact, Transport
from surefoot.transport.potentials import POTENTIALS, Bellman, Energy, Potential
from surefoot.transport.proximal import (
    Flow,
    ProximalStep,
    jko_flow,
    project,
    proximal_loss,
    proximal_step,
)
from surefoot.transport.sinkhorn import (
    Sinkhorn,
    SinkhornOptions,
    divergence,
    entropic_cost,
    exact_cost,
    plan,
    sinkhorn,
)

__all__ = [
    "ANNEALING",
    "NAMED_LOSSES",
    "POTENTIALS",
    "SOLVERS",
    "TRANSPORTS",
    "Bellman",
    "Debiased",
    "Energy",
    "Entropic",
    "Exact",
    "Flow",
    "Potential",
    "ProximalStep",
    "Sinkhorn",
    "SinkhornOptions",
    "Transport",
    "divergence",
    "entropic_cost",
    "exact_cost",
    "jko_flow",
    "plan",
    "project",
    "proximal_loss",
    "proximal_step",
    "sinkhorn",
]
