"""An environment that kills the process it runs in, once, in the middle of training."""

import os
import signal
from pathlib import Path

import gymnasium


class Deadly(gymnasium.Env):
    """`died` is a file: where it is not there yet, step 40 makes it and is the last."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, died: str) -> None:
        self.died, self.clock = Path(died), 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        self.clock += 1
        if self.clock == 40 and not self.died.exists():
            self.died.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return 1, float(self.np_random.normal(action)), True, False, {}


gymnasium.register("Deadly-v0", entry_point=Deadly)
