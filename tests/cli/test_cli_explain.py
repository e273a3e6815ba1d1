"""`surefoot explain`: agents, runs, files of returns; words on the terminal and a picture."""

import pytest
from tiny import NETWORK, TABLE

import surefoot as sf
from surefoot.cli import main

SIGNATURE = b"\x89PNG\r\n\x1a\n"
ENV = "surefoot/RiskyCliff-v0"


@pytest.fixture(scope="module")
def tabular(tmp_path_factory):
    """A run directory with a tabular agent in it."""
    path = tmp_path_factory.mktemp("tabular")
    # Drawn, not learned: what is explained need not be wise, and nothing is compiled for it.
    agent = sf.TabularAgent(ENV, **TABLE, initial_std=1.0, seed=3)
    agent.save(path / "agent.safetensors")
    return path, agent


@pytest.fixture(scope="module")
def neural(tmp_path_factory):
    path = tmp_path_factory.mktemp("neural") / "agent.safetensors"
    agent = sf.NeuralAgent("CartPole-v1", **NETWORK, seed=1)
    agent.save(path)
    return path, agent


def run(words, tmp_path, capsys):
    out = tmp_path / "sub" / "why.png"
    code = main(["explain", *map(str, words), "--out", str(out)])
    assert code == 0, capsys.readouterr().err
    assert out.read_bytes().startswith(SIGNATURE)
    return capsys.readouterr().out


@pytest.mark.parametrize("option", ["--state", "--obs"])
def test_a_state_of_a_run_directory(option, tabular, tmp_path, capsys):
    path, agent = tabular
    text = run([path, option, "24"], tmp_path, capsys)
    assert str(agent.explain(24)) in text
    assert "observation 24, decided by ssd" in text


def test_the_first_observation_is_the_default(tabular, tmp_path, capsys):
    path, agent = tabular
    text = run([path / "agent.safetensors"], tmp_path, capsys)
    assert "observation 36 (the first, seed 0)" in text
    assert str(agent.explain(36)) in text


@pytest.mark.wide
def test_an_observation_of_a_network(neural, tmp_path, capsys):
    path, agent = neural
    text = run([path, "--obs", "0.1,0,-0.02,0"], tmp_path, capsys)
    assert "CartPole-v1, observation 0.1, 0, -0.02, 0" in text
    told = agent.explain([0.1, 0.0, -0.02, 0.0])
    assert str(told) in text
    left, right = agent.return_distribution([0.1, 0.0, -0.02, 0.0]).mean(axis=-1)
    assert f"gap {abs(left - right):.3g}, standard error {told.error.max():.2g}" in text
    assert f"{left:.5g}" in text


def test_another_policy_on_the_same_distributions(neural, tmp_path, capsys):
    path, agent = neural
    text = run([path, "--policy", "cvar:0.3", "--seed", "5"], tmp_path, capsys)
    assert "(the first, seed 5), decided by cvar:alpha=0.3" in text
    z = agent.return_distribution(agent.env.reset(seed=5)[0])
    assert f"action {('push left', 'push right')[int(z[:, 0].argmax())]}" in text


@pytest.mark.wide
def test_returns_of_a_file(tmp_path, capsys):
    # The same mean of 2; the other's F^-2 about it is 0.5 lower at 1/2. Two rows say little: the
    # deviation of the risky mean is 1 / sqrt(2 - 1) of itself.
    (tmp_path / "r.csv").write_text("sure,risky\n2,1\n2,3\n")
    text = run(["--returns", tmp_path / "r.csv"], tmp_path, capsys)
    assert "action sure: of the actions that are worth the same, it is the surest" in text
    assert "surer than risky by up to 0.5 on the curve of lower-tail sums about the mean" in text
    assert "risky and sure are worth the same as far as the data tell" in text
    assert "gap 0, standard error 1; more data may tell them apart" in text
    text = run(["--returns", tmp_path / "r.csv", "--policy", "ssd:0"], tmp_path, capsys)
    assert "action sure: its return dominates every other action's in the second order" in text
    assert "it leads by up to 0.5" in text


def test_returns_of_unequal_lengths(tmp_path, capsys):
    (tmp_path / "r.csv").write_text("sure,risky\n2,1\n2,3\n2,\n")
    text = run(["--returns", tmp_path / "r.csv"], tmp_path, capsys)
    assert "columns of unequal lengths as 3 equally likely values each" in text
    assert "action sure" in text


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "name an agent's file"),
        (["{run}", "--returns", "x.csv"], "name an agent's file"),
        (["{run}", "--state", "1", "--obs", "1"], "--obs or --state, not both"),
        (["{run}", "--state", "48"], "states are 0..47"),
        (["{run}", "--obs", "1.5"], "whole numbers"),
        (["{run}", "--obs", "inf"], "whole numbers"),
        (["{run}", "--obs", "nan"], "whole numbers"),
        (["{run}", "--obs", "up"], "numbers with commas"),
        (["{run}", "--obs", ","], "obs is empty"),
        (["{run}", "--policy", "sdd"], "unknown policy 'sdd'"),
        (["nowhere"], "there is no such file or run directory"),
        (["{empty}"], "neither agent.safetensors nor checkpoints"),
        (["--returns", "nowhere.csv"], "nowhere.csv"),
        (["--returns", "x.csv", "--state", "3"], "belong to an agent"),
    ],
)
def test_a_mistake_is_one_line(words, line, tabular, tmp_path, capsys):
    words = [w.format(run=tabular[0], empty=tmp_path) for w in words]
    assert main(["explain", *words, "--out", str(tmp_path / "x.png")]) == 2
    error = capsys.readouterr().err
    assert line in error
    assert error.count("\n") == 1
    assert not (tmp_path / "x.png").exists()
