"""Models of Stable-Baselines3 act by dominance: three QR-DQNs are an ensemble.

    pip install 'surefoot[sb3]'
    python examples/sb3_ensemble.py --steps 20000

One model does not say how well its means are known. Several, trained alike from different seeds,
do: where they disagree on which action is better, both are worth the same, and the surer is taken.
"""

from __future__ import annotations

import argparse

import gymnasium as gym
from sb3_contrib import QRDQN

import surefoot as sf
from surefoot.agents.adapters import act

if __name__ == "__main__":
    options = argparse.ArgumentParser()
    options.add_argument("--env", default="CartPole-v1")
    options.add_argument("--steps", type=int, default=20_000)
    options.add_argument("--models", type=int, default=3)
    options.add_argument("--episodes", type=int, default=20)
    chosen = options.parse_args()

    models = [
        QRDQN("MlpPolicy", chosen.env, learning_starts=100, seed=seed).learn(chosen.steps)
        for seed in range(chosen.models)
    ]
    actor = act(models)  # sf.SSD(); it has SB3's `predict`
    obs, _ = gym.make(chosen.env).reset(seed=0)
    decision = actor.decide(obs)
    who = sf.DecidedBy(int(decision.decided_by)).name.lower()
    print(f"at the start: action {int(decision.action)}, decided by {who}")
    print(f"gaps to the best mean {decision.gap}, their standard errors {decision.error}")

    results = sf.evaluate(models, ("ssd", "greedy"), env=chosen.env, episodes=chosen.episodes)
    for result in results:
        print(f"{result.policy}: return {result.mean}, decided by {result.decided}")
