"""Classic control as compiled pure functions, equal to Gymnasium's."""

from surefoot.classic.environments import (
    ENVIRONMENTS,
    CartPole,
    EnvState,
    MountainCar,
    PureEnv,
    pure_env_named,
)

__all__ = ["ENVIRONMENTS", "CartPole", "EnvState", "MountainCar", "PureEnv", "pure_env_named"]
