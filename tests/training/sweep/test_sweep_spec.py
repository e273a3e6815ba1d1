"""Settings, grids, seeds and keys."""

import json
import tomllib
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sweep_cases import CLIFF, cliff

from surefoot.errors import InputError
from surefoot.runs.files import plain
from surefoot.training.sweep import Sweep, make_training, parse_seeds
from surefoot.training.sweep.spec import parse_grid, parse_setting, words

POLE = {"env": "CartPole-v1", "steps": 100}


def test_a_grid_is_every_combination_with_every_seed():
    sweep = Sweep(POLE, {"loss": ["wgf", "qr"], "step_size": [0.1, 1]}, (0, 7))
    cells = list(sweep.cells())
    told = [(words(chosen), [trial.seed for trial in trials]) for chosen, trials in cells]
    assert told == [
        ("loss=wgf step_size=0.1", [0, 7]),
        ("loss=wgf step_size=1", [0, 7]),
        ("loss=qr step_size=0.1", [0, 7]),
        ("loss=qr step_size=1", [0, 7]),
    ]
    assert cells[3][1][0].config.loss == "qr"
    assert cells[3][1][0].config.step_size == 1.0
    assert len({trial.key for _, trials in cells for trial in trials}) == 8


def test_the_key_is_a_hash_of_all_that_matters_and_of_nothing_else():
    trial = make_training({**CLIFF, "env.sigma": 0.5}, 3)
    text = json.dumps(plain(trial.as_dict()), sort_keys=True, separators=(",", ":"))
    assert trial.key == sha256(text.encode()).hexdigest()[:20]
    said = trial.as_dict()
    assert said["seed"] == 3
    assert said["env_options"] == {"sigma": 0.5}
    assert said["gamma"] == 1.0  # defaults too: they may change some day

    same = make_training(dict(reversed([*CLIFF.items(), ("env.sigma", 0.5), ("gamma", 1)])), 3)
    assert same.key == trial.key  # neither order, nor 1 for 1.0, nor a default written out
    for name, value in [
        ("seed", 4), ("steps", 1001), ("eval_episodes", 4), ("gamma", 0.9), ("env.sigma", 0.6),
        ("evaluation", "ssd"), ("evaluations", 2), ("env", "surefoot/CliffWalk-v0"),
    ]:  # fmt: skip
        settings = {**CLIFF, "env.sigma": 0.5, name: value}
        seed = settings.pop("seed", 3)
        assert make_training(settings, seed).key != trial.key


def test_the_agent_is_chosen_by_the_observations():
    assert make_training(POLE, 0).agent == "neural"
    assert make_training({"env": "Taxi-v4", "steps": 9, "agent": "auto"}, 0).agent == "tabular"


def test_settings_that_come_to_the_same_are_one_trial():
    """q-learning has one particle, whatever it is told."""
    one, two = ({**CLIFF, "particles": n} for n in (8, 16))
    assert make_training(one, 0) == make_training(two, 0)


@given(
    st.dictionaries(
        st.sampled_from(["gamma", "learning_rate", "explore"]),
        st.floats(0.01, 1.0),
        min_size=1,
    ),
    st.integers(0, 2**32 - 1),
)
def test_equal_trials_have_equal_keys_and_others_do_not(settings, seed):
    trial = make_training({**CLIFF, **settings}, seed)
    assert make_training({**settings, **CLIFF, **settings}, seed).key == trial.key
    name = sorted(settings)[0]
    other = make_training({**CLIFF, **settings, name: settings[name] / 2}, seed)
    assert (other.key == trial.key) == (other == trial)


@pytest.mark.parametrize(
    ("text", "seeds"),
    [("0:5", (0, 1, 2, 3, 4)), (":2", (0, 1)), ("3", (3,)), ("0,3,7", (0, 3, 7)), ([4, 2], (4, 2))],
)
def test_seeds(text, seeds):
    assert parse_seeds(text) == seeds


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("loss=wgf,qr", ["wgf", "qr"]),
        ("step-size=0.1,1,1e-3", [0.1, 1, 1e-3]),
        ("hidden=[64,64],[256]", [[64, 64], [256]]),
        ("behaviour=ssd,cvar:0.25", ["ssd", "cvar:0.25"]),
        ('behaviour="cvar:alpha=0.1,tolerance=0",ssd', ["cvar:alpha=0.1,tolerance=0", "ssd"]),
        ("double_q=true,false", [True, False]),
    ],
)
def test_values_on_the_command_line(text, values):
    assert parse_grid(text)[1] == values


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"steps": 5}, "a sweep needs env"),
        ({"env": "CartPole-v1"}, "a sweep needs steps"),
        ({**POLE, "los": "qr"}, "'los'.*Did you mean 'loss'"),
        ({**POLE, "agent": "nueral"}, "'nueral'.*Did you mean 'neural'"),
        ({**POLE, "particles": "many"}, "particles = 'many'"),
        ({**POLE, "steps": 0}, "steps = 0"),
        ({**POLE, "steps": 2.5}, "steps = 2.5"),
        ({**POLE, "evaluations": 200}, "evaluations = 200: more than steps"),
        ({**POLE, "compiled": "yes"}, "compiled = 'yes'"),
        ({**CLIFF, "learning_rate": "fast"}, "learning_rate"),
        ({**CLIFF, "behaviour": "brave"}, "unknown policy 'brave'"),
    ],
)
def test_mistakes_are_named(settings, message):
    with pytest.raises(InputError, match=message):
        make_training(settings, 0)


def test_mistakes_of_the_grid_and_seeds_are_named():
    for grid, message in [({"loss": "qr"}, "a list"), ({"loss": []}, "a list")]:
        with pytest.raises(InputError, match=message):
            Sweep(POLE, grid)
    with pytest.raises(InputError, match="twice"):
        Sweep(POLE, {"gamma": [0.9, 0.9]})
    with pytest.raises(InputError, match="twice"):
        Sweep(POLE, seeds=(1, 1))
    with pytest.raises(InputError, match="at least one"):
        Sweep(POLE, seeds=())
    with pytest.raises(InputError, match="seed = -1"):
        make_training(POLE, -1)
    with pytest.raises(InputError, match="use 0:5"):
        parse_seeds("a:b")
    with pytest.raises(InputError, match="it must be one value"):
        parse_setting("gamma=0.9,1")


def test_toml_goes_out_and_comes_back():
    base = {**CLIFF, "env.sigma": 0.5, "note": 'a "quoted" \\ text'}
    sweep = Sweep(base, {"gamma": [0.9, 1.0], "behaviour": ["ssd", "cvar:0.25"]}, (0, 2))
    told = tomllib.loads(sweep.to_toml())
    assert told == {"seeds": [0, 2], "base": base, "grid": dict(sweep.grid)}
    assert cliff().seeds == (0, 1, 2)
