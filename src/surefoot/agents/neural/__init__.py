"""Neural agents: fitted Q-iteration with networks on Gymnasium environments (section 5.3)."""

from surefoot.agents.neural.agent import NeuralAgent
from surefoot.agents.neural.config import LOSSES, NeuralConfig
from surefoot.agents.neural.replay import Transition
from surefoot.agents.neural.state import RunState
from surefoot.runs.logs import Finished

__all__ = ["LOSSES", "Finished", "NeuralAgent", "NeuralConfig", "RunState", "Transition"]
