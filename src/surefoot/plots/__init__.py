"""Figures: one style, and each figure drawn once."""
