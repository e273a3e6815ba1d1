"""The experiment `surest`: its verdicts on tables made by hand, and a small run of it."""

from __future__ import annotations

import numpy as np
import pytest

from surefoot.envs.probes import PureProbe, RoadFork, SureOrNoisy
from surefoot.paper.surest import EXPERIMENT, SurestResults, draw, judge, summary
from surefoot.paper.surest_cells import ERRORS, RULES, SurestConfig

CONFIG = SurestConfig(trials=50, noises=(0.1, 1.0), road_seeds=40, seeds=20, scales=(1.0, 1000.0))


def tables(wrong_roads=0, wrong_steps=0, wrong_trials=0, falls=40.0, taken=0.001):
    """As every cell would look, with so many wrong."""
    made = {}
    for cell in CONFIG.cells():
        if cell.task == "rule":
            rows = [(e, n, 1.0, 0.0, taken, 0.0) for e in ERRORS for n in (8, 32, 128)]
            names = ("errors", "n", "noisy", "lead", "noisy_taken", "mean_lost")
            made[cell.name] = dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))
        elif cell.seed < 0:
            sure = np.arange(CONFIG.trials) >= wrong_trials
            made[cell.name] = {"falls": np.full(CONFIG.trials, falls) + sure}
            made[cell.name] |= dict.fromkeys(RULES, sure)
        else:
            wrong = cell.seed < (wrong_roads if cell.task == "roads" else wrong_steps)
            sure = np.full(10, (cell.variant == "tie") != wrong)
            made[cell.name] = {"sure": sure, "greedy": ~sure, "cvar": np.ones(10, bool)}
    return SurestResults(CONFIG, made)


def verdicts(**wrong):
    return {c.id.removeprefix("surest/"): c.verdict == "reproduced" for c in judge(tables(**wrong))}


def played(pure, actions):
    """The rewards of an episode, and the last observation."""
    env, rewards, over = PureProbe(pure), [], False
    seen = env.reset(seed=3)[0]
    for action in actions:
        assert not over
        assert env.observation_space.contains(seen)
        seen, reward, over, truncated, _ = env.step(action)
        rewards.append(reward)
        assert not truncated
    assert over
    return np.array(rewards), seen


def test_the_tasks_by_hand():
    assert played(RoadFork(), [0, 1, 1, 0, 1])[0].tolist() == [0.0] * 5  # the first one counts
    rewards, seen = played(RoadFork(bonus=1000.0), [1, 0, 0, 0, 0])
    np.testing.assert_allclose(rewards, 200.0, atol=5.0)  # 200 + N(0, 1) a step
    assert len(set(rewards.tolist())) == 5
    assert seen.tolist() == [0, 0, 0, 0, 1, 1]
    rewards, seen = played(SureOrNoisy(steps=10, bonus=50.0, scale=2.0), [0, 1] * 5)
    assert rewards[::2].tolist() == [2.0] * 5
    np.testing.assert_allclose(rewards[1::2], 102.0, atol=10.0)
    assert seen.tolist() == [1.0]
    assert played(SureOrNoisy(), [0])[0].tolist() == [1.0]


def test_the_claims_hold_as_far_as_they_say():
    assert all(verdicts().values())
    assert list(verdicts()) == ["rule", "cliff", "falls", "roads", "steps-tie", "steps-better"]
    # 2 of 40 are 0.05, 1 of 20 is 0.05, 1 trial of 50 is 0.02: allowed. One more is not.
    assert all(verdicts(wrong_roads=2, wrong_steps=1, wrong_trials=1, falls=48.7).values())
    missed = verdicts(wrong_roads=3, wrong_steps=2, wrong_trials=2, falls=48.8, taken=0.0031)
    assert not any(missed.values())


def test_the_summary_says_what_other_rules_take_on_the_same_networks():
    rows = summary(tables(wrong_roads=4))["networks"]
    roads = {row["question"]: row for row in rows if row["task"] == "roads"}
    assert roads["tie"]["right"].mean == 0.9
    assert [roads["tie"][f"sure by {r}"] for r in ("ssd", "greedy", "cvar:0.25")] == [0.9, 0.1, 1]
    assert [roads["better"][f"sure by {r}"] for r in ("ssd", "greedy")] == [0.1, 0.9]


def test_figures_show_every_task_and_both_questions():
    figures = draw(tables())
    assert set(figures) == {"promise", "rules"}
    left, right = figures["promise"].axes
    rows = [text.get_text() for text in left.get_yticklabels()]
    assert rows[:3] == ["cliff, noise 0.1", "cliff, noise 1", "two roads"]
    assert rows[3:5] == ["one step, rewards times 1", "one step, rewards times 1000"]
    assert len(rows) == 7
    # Of the default rule first: always the sure action on the left, never on the right.
    assert set(left.lines[0].get_xdata()) == {1.0}
    assert set(right.lines[0].get_xdata()) == {0.0}
    assert len(right.lines[0].get_xdata()) == 5  # the cliff has no better path


@pytest.mark.slow
def test_a_small_run_has_all_its_parts(tmp_path):
    config = SurestConfig(
        trials=2, episodes=30, noises=(1.0,), road_seeds=2, seeds=2, scales=(1.0,), steps=300,
        engine="serial",
    )  # fmt: skip
    claims = EXPERIMENT.run(config, tmp_path / "surest")
    assert len(claims) == 6
    assert {p.name for p in (tmp_path / "surest" / "figures").glob("*.png")} == {
        "promise.png",
        "rules.png",
    }


def test_the_picture_says_what_its_bars_are_and_why_rows_are_empty():
    figure = draw(tables(wrong_steps=2))["promise"]
    left, right = figure.axes
    assert "95 % interval" in left.get_xlabel()
    assert "always worth the same" in " ".join(text.get_text() for text in right.texts)
    # All rules of a row have one kind of interval: where every seed has the same share, no width.
    widths = {bar.get_label(): bar[2][0].get_segments()[-1] for bar in left.containers}
    assert np.ptp(widths["CVaR 0.25"][:, 0]) == 0
    assert np.ptp(widths["default"][:, 0]) > 0.1
