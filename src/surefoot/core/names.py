"""What losses, transports and potentials are called, in every agent and on the command line.

Without JAX: help texts and configurations do not wait for it.
"""

from __future__ import annotations

NAMED_LOSSES: dict[str, tuple[str, str]] = {
    "wgf": ("bellman", "sinkhorn"),  # the paper
    "wgf-debiased": ("bellman", "divergence"),
    "wgf-exact": ("bellman", "exact"),
    "proximal-qr": ("energy", "exact"),
}
"""Proximal losses as (potential, transport)."""
POTENTIAL_NAMES = ("bellman", "energy")
TRANSPORTS = ("sinkhorn", "divergence", "exact")
SOLVERS = ("fixed_point", "gradient")
ANNEALING = (1.0, 0.5, 0.25)
"""Temperatures of Sinkhorn: the paper's "from 1 to 0.25 in minimum steps of 0.5"."""
