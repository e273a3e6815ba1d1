"""Act surely with a model you already have.

    from sb3_contrib import QRDQN
    from surefoot.agents.adapters import act

    actor = act(QRDQN.load("model"))               # second-order dominance, or any other policy
    action, _ = actor.predict(obs)                 # so SB3's evaluate_policy runs on it
    actor.decide(obs)                              # the action with its reasons
    actor.return_distribution(obs)                 # particles [A, N]

An adapter is any callable from observations `[B, ...]` to particles `[B, A, N]`: pass your own
function where `act` takes a model.
"""

from surefoot.agents.adapters.acting import Actor, act, adapter_for
from surefoot.agents.adapters.libraries import SB3Adapter, TianshouAdapter, equal_particles

__all__ = ["Actor", "SB3Adapter", "TianshouAdapter", "act", "adapter_for", "equal_particles"]
