"""The paper's experiments, and the ground they share: run directories, claims, figures."""
