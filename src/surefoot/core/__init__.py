"""The numerical core: arrays of any library, particles, dominance, losses, statistics. No I/O."""
