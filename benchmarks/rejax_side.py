"""rejax's DQN on CartPole, in an environment of its own (`make bench` installs it into .rejax).

For every line of its standard input it trains for `STEPS` more steps and answers with the CPU
seconds of one of them. Network, batch, replay and schedule are those of `bench_neural`.
"""

import sys
import time

STEPS = 2_000


def main() -> None:
    import jax
    import jax.numpy as jnp
    from rejax import DQN

    jax.config.update("jax_cpu_enable_async_dispatch", False)
    made = DQN.create(
        env="CartPole-v1", num_envs=1, buffer_size=10_000, fill_buffer=100, batch_size=32,
        total_timesteps=STEPS, eval_freq=STEPS, skip_initial_evaluation=True, learning_rate=1e-3,
        target_update_freq=100, polyak=0.0, ddqn=False, eps_start=0.1, eps_end=0.1,
        agent_kwargs={"activation": "relu"},
    )  # fmt: skip
    algo = made.replace(eval_callback=lambda *_: ())  # two layers of 64 are its default
    learn = jax.jit(lambda state: algo.train(train_state=state)[0], donate_argnums=0)
    # Copies: the target network starts as the same arrays, and none can be donated twice.
    first = jax.tree.map(jnp.copy, algo.init_state(jax.random.key(0)))
    state = jax.block_until_ready(learn(first))
    for _ in sys.stdin:
        start = time.process_time()
        state = jax.block_until_ready(learn(state))
        print((time.process_time() - start) / STEPS, flush=True)


if __name__ == "__main__":
    main()
