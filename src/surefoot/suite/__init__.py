"""The risk suite: small tasks in which it is known which action is right, and who takes it.

    import surefoot as sf

    print(sf.suite.run(my_policy, tasks=("insurance",)))   # score a player of your own

The tasks are in `surefoot.envs.risk_tasks` (finite) and `surefoot.envs.noisy` (for networks), each
with up to three questions: tie, price, trap. `scores` says what a way of acting is worth there,
`players` asks a stranger's player, `strangers` is `run`. `experiment` is `surefoot suite`: our
agents and others on all tasks, once on the same data, where the rule is judged, and once online,
where the whole agent is; `cells` runs it, `networks` trains on the tasks for networks; `figures`
draws the tables.
"""

from surefoot.lazy import lazy_names

__all__ = [
    "EXPERIMENT",
    "NO_ANSWER",
    "QUICK_NOTE",
    "TABLES",
    "SuiteConfig",
    "SuiteScores",
    "heading",
    "run",
]

TABLES = {
    "same": ("the rule: all decide on the same learned tables", ("same", "static")),
    "online": ("the agent: each learns from its own data", ("online",)),
    "network": ("networks", ("network", "sb3")),
}
"""The tables of players by tasks: a title, and the ways of learning whose rows are in it."""

NO_ANSWER = ("mean-reversion",)
"""Tasks in which no action is known to be right: their question has no name to show."""
QUICK_NOTE = "A quick run: few seeds and short runs, to see that it works. It judges nothing."


def heading(task: str, question: str) -> str:
    """What a task is called in a table."""
    return task if task in NO_ANSWER else f"{task}, {question}"


__getattr__ = lazy_names(
    __name__, {"cells": "SuiteConfig", "experiment": "EXPERIMENT", "strangers": "SuiteScores run"}
)
