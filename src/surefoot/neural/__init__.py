"""Neural agents: fitted Q-iteration with networks on Gymnasium environments (section 5.3)."""

from surefoot.logs import Finished
from surefoot.neural.agent import NeuralAgent
from surefoot.neural.config import LOSSES, NeuralConfig
from surefoot.neural.replay import Transition
from surefoot.neural.state import RunState

__all__ = ["LOSSES", "Finished", "NeuralAgent", "NeuralConfig", "RunState", "Transition"]
