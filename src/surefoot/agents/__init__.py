"""Agents that learn return distributions and act on them."""
