"""Section 5.3 in small: what is trained, what is kept, and by what rule a verdict falls."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from surefoot.errors import InputError
from surefoot.paper import control, gym, gym_choices, never_worse
from surefoot.policies import SSD, Greedy
from surefoot.runs.directory import RunDir

SMALL = gym.GymConfig(
    tasks=("cart-pole",), steps=(600,), trials=3, evaluations=5, solving=False, moments=0, workers=1
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    out = tmp_path_factory.mktemp("gym") / "run"
    return out, gym.run(SMALL, out)


@pytest.mark.slow
def test_every_trial_is_trained_and_kept(finished):
    out, claims = finished
    assert [claim.id for claim in claims] == ["gym/cart-pole"]
    run = RunDir.open(out)
    assert run.figures == ["returns", "scores"]
    for loss in ("qr", "wgf"):
        for seed in range(3):
            frame = run.read_table(f"cart-pole.{loss}-{seed}")
            assert frame["step"].to_list() == [120, 240, 360, 480, 600]
            assert set(frame["loss"]) == {loss}
            assert frame["return"].min() >= 1.0  # a reward of one for each step


@pytest.mark.slow
def test_a_resumed_run_trains_only_what_is_missing_and_gives_the_same(finished, monkeypatch):
    out, _ = finished
    run = RunDir.open(out)
    before = {name: run.read_table(f"cart-pole.{name}") for name in ("qr-1", "wgf-2")}
    (out / "complete.json").unlink()
    for name in before:
        (out / f"cart-pole.{name}.parquet").unlink()
    asked = []
    real = control.run_trials

    def watched(trials, **options):
        asked.extend((trial.config.loss, trial.seed) for trial in trials)
        return real(trials, **options)

    monkeypatch.setattr(control, "run_trials", watched)
    gym.run(SMALL, out, existing="resume")
    assert asked == [("qr", 1), ("wgf", 2)]
    for name, frame in before.items():
        assert run.read_table(f"cart-pole.{name}").equals(frame)


def curves(qr: list[float], wgf: list[float]) -> dict[str, gym.Curves]:
    """Two evaluations a trial, both with the trial's own return."""
    steps = np.array([1, 2])
    return {
        loss: gym.Curves(steps, np.repeat(np.array(values)[:, None], 2, axis=1))
        for loss, values in (("qr", qr), ("wgf", wgf))
    }


# CartPole's margin: a tenth of 475 - 22 = 45.3.
@pytest.mark.parametrize(
    ("wgf", "verdict"),
    [
        ([481.0, 489.0, 485.0, 486.0, 484.0], "reproduced"),
        ([301.0, 309.0, 305.0, 306.0, 304.0], "not reproduced"),
        ([100.0, 500.0, 500.0, 500.0, 500.0], "partly"),
    ],
)
def test_verdicts_follow_the_two_tests(wgf, verdict):
    qr = [480.0, 490.0, 484.0, 487.0, 485.0]
    claim, facts = gym.judge(gym.GymConfig(), "cart-pole", curves(qr, wgf))
    assert claim.verdict == verdict
    assert facts["margin"] == pytest.approx(45.3)
    assert facts["qr"] == qr
    assert "qr" in facts["solved_by"]
    assert ("wgf" in facts["solved_by"]) == (np.mean(wgf) >= 475)


def test_settings_made_for_a_task_are_judged_by_the_same_tests():
    always = [500.0] * 5
    claim, facts = gym.judge(gym.GymConfig(), "cart-pole", curves(always, always), made_for_it=True)
    assert claim.id == "gym/cart-pole-made-for-it"
    assert claim.verdict == "reproduced"
    assert "with settings made for it; both losses solved it" in claim.measured
    assert facts["equivalence_p"] == 0


def test_a_wgf_that_is_at_least_as_good_is_said_to_be_so():
    qr = [500.0, 480.0, 260.0, 500.0, 490.0, 500.0]
    better, facts = gym.judge(gym.GymConfig(), "cart-pole", curves(qr, [500.0, 499.0] * 3))
    assert better.verdict == "partly"  # not shown to be equal: QR's mean lies below
    assert "WGF is not worse by as much" in better.reason
    assert facts["not_worse_p"] < 0.05 < facts["equivalence_p"]
    worse, facts = gym.judge(gym.GymConfig(), "cart-pole", curves([500.0, 499.0] * 3, qr))
    assert worse.verdict == "partly"
    assert "not worse" not in worse.reason
    assert facts["not_worse_p"] == facts["equivalence_p"] > 0.05


def test_equal_failure_is_no_match():
    nothing = [22.0, 23.0, 22.5, 24.0, 23.0]
    claim, facts = gym.judge(gym.GymConfig(), "cart-pole", curves(nothing, nothing[::-1]))
    assert claim.verdict == "not testable"
    assert facts["solved_by"] == []


def test_settings_of_the_paper_and_those_that_solve():
    config = gym.GymConfig()
    plain = gym.make_trials(config, "mountain-car", 60_000, solving=False)
    assert [(t.config.loss, t.seed) for t in plain] == [
        (loss, seed) for loss in ("qr", "wgf") for seed in range(5)
    ]
    own = plain[0].config
    assert (own.particles, own.learning_rate, own.batch_size, own.replay_size) == (
        2,
        1e-3,
        32,
        10_000,
    )
    assert (own.explore, own.explore_start, own.gamma, own.hidden) == (0.1, None, 0.99, (256, 256))
    wide = gym.make_trials(config, "mountain-car", 120_000, solving=True)[0]
    assert (wide.config.explore_start, wide.config.explore_steps, wide.steps) == (
        1.0,
        24_000,
        120_000,
    )


@pytest.mark.parametrize(
    "options",
    [
        {"tasks": ("pong",), "steps": (1000,)},
        {"trials": 2},
        {"solving_trials": 2},
        {"steps": (1000,)},
    ],
)
def test_mistakes(options):
    with pytest.raises(InputError):
        gym.GymConfig(**options)


def test_settings_made_for_a_task_override_those_of_the_experiment():
    config = gym.GymConfig(solving_trials=4, step_size=2.0, max_grad_norm=3.0)
    trials = gym.make_trials(config, "lunar-lander", 1000, solving=True)
    assert [(t.config.loss, t.seed) for t in trials] == [
        (loss, seed) for loss in ("qr", "wgf") for seed in range(4)
    ]
    for trial in trials:
        own = trial.config
        assert (own.n_step, own.double_q, own.step_size, own.max_grad_norm) == (3, True, 10, 10)
    (plain, *_) = gym.make_trials(config, "lunar-lander", 1000, solving=False)
    assert (plain.config.step_size, plain.config.max_grad_norm) == (2, 3)
    twice = gym.make_trials(config, "cart-pole", 1000, solving=True)
    assert [t.seed for t in twice] == [*range(8), *range(8)]


def test_settings_made_for_a_task_are_scheduled_over_the_whole_run():
    trials = gym.make_trials(gym.GymConfig(), "cart-pole", 1000, solving=True)
    assert {t.config.loss for t in trials} == {"qr", "wgf"}
    for trial in trials:
        own = trial.config
        assert (own.learning_rate, own.learning_rate_end, own.learning_rate_steps) == (
            1e-3,
            0,
            1000,
        )
        assert (own.explore_start, own.explore, own.explore_steps) == (1.0, 0.04, 200)
    (plain, *_) = gym.make_trials(gym.GymConfig(), "cart-pole", 1000, solving=False)
    assert (plain.config.learning_rate_end, plain.config.explore_start) == (None, None)


@pytest.mark.slow
def test_choices_vary_one_setting_at_a_time(tmp_path):
    config = gym_choices.GymChoicesConfig(
        tasks=("cart-pole",), steps=(400,), target_periods=(100, 500), step_sizes=(1.0, 10.0),
        max_grad_norms=(1.0,), trials=2, workers=1,
    )  # fmt: skip
    chosen = gym_choices.GymSetting("wgf", 100, 1.0, 1.0)
    points = config.settings()
    assert chosen in points
    assert len(set(points)) == len(points) == 9
    for point in points:
        copied = point if point.target_mix == 1 else point._replace(target_period=100)
        changed = [a != b for a, b in zip(copied[1:], chosen[1:], strict=True)]
        assert sum(changed) <= 1
    claims = gym_choices.run(config, tmp_path / "run")
    assert claims[0].verdict == "not testable"
    facts = RunDir.open(tmp_path / "run").read_summary()["cart-pole"]
    assert [len(point["whole"]) for point in facts] == [2] * 9
    # Averaged and copied, clipped and unclipped runs differ: the options reach the agent.
    averaged, chosen_one, unclipped = facts[6], facts[4], facts[-1]
    assert averaged["target_mix"] == 0.01
    assert chosen_one["whole"] not in (averaged["whole"], unclipped["whole"])


def test_never_worse_is_a_one_sided_test_with_the_margin_of_the_section():
    """CartPole's margin is 0.1 (475 - 22) = 45.3. Scores 400, 410, 420 against 500: 90 below."""
    config = never_worse.NeverWorseConfig(tasks=("cart-pole",), steps=(600,), evaluations=5)

    def judged(ssd: list[float]) -> str:
        own = curves([490.0, 500.0, 510.0], ssd)
        own = {"greedy": own["qr"], "ssd": own["wgf"]}
        return never_worse.judge_task(config, "cart-pole", own).verdict

    assert judged([490.0, 500.0, 510.0]) == "reproduced"
    assert judged([600.0, 610.0, 620.0]) == "reproduced"  # better is not worse
    assert judged([400.0, 410.0, 420.0]) == "not reproduced"


def test_never_worse_trains_the_default_agent_and_a_greedy_one_alike_but_for_the_rule():
    config = never_worse.NeverWorseConfig()
    counts = [len(never_worse.trainings(config, "ssd", task)) for task in config.tasks]
    assert dict(zip(config.tasks, counts, strict=True)) == {
        "cart-pole": 20, "mountain-car": 10, "lunar-lander": 10
    }  # fmt: skip
    ssd, greedy = (
        next(iter(never_worse.trainings(config, agent, "lunar-lander").values())).config
        for agent in ("ssd", "greedy")
    )
    assert ssd.evaluation == SSD()
    assert greedy.ensemble == 0
    assert greedy.evaluation == greedy.target == Greedy()
    same = {"behaviour", "target", "evaluation", "ensemble"}
    for field in dataclasses.fields(ssd):
        if field.name not in same:
            assert getattr(ssd, field.name) == getattr(greedy, field.name)
