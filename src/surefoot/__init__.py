"""surefoot: risk-aware distributional reinforcement learning by stochastic dominance."""

__version__ = "0.1.0"
