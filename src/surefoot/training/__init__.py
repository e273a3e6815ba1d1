"""Training, evaluation, sweeps, and the engines that spread them over processes."""
