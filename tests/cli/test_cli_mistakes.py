"""What users get wrong: one line that says what and where, exit code 2, no traceback."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from surefoot.cli import main

OWN_ENVIRONMENTS = """
import gymnasium as gym
import numpy as np

class Continuous(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Box(-1, 1, (1,))
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}
    def step(self, action):
        return np.zeros(2, np.float32), 0.0, True, False, {}

class Good(Continuous):
    action_space = gym.spaces.Discrete(2)

class Letters(gym.Space):
    pass

class Words(Good):
    observation_space = gym.spaces.Dict({"word": Letters()})

class Raises(Good):
    def step(self, action):
        raise RuntimeError("the simulator is gone")

class NoNumber(Good):
    def step(self, action):
        return np.zeros(2, np.float32), float("nan"), False, False, {}

class Broken(Good):
    def __init__(self):
        raise OSError("no licence")

for kind in (Continuous, Good, Words, Raises, NoNumber, Broken):
    gym.register(f"{kind.__name__}-v0", entry_point=kind, max_episode_steps=10)
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with what the words below name."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("own_environments.py").write_text(OWN_ENVIRONMENTS)
    Path("text.csv").write_text("a,b\n1,2\n2,x\n")
    Path("twice.csv").write_text("a,a\n1,2\n2,3\n")
    Path("fine.csv").write_text("a,b\n1,2\n2,3\n")
    Path("bad.toml").write_text("x = = 1")
    Path("name.toml").write_text("stepz = 3\n")
    Path("kind.toml").write_text('steps = "many"\n')
    Path("deep.toml").write_text("x = " + 5000 * "[")
    Path("list.toml").write_text('hidden = [64, "x"]\n')
    Path("choice.toml").write_text('existing = "maybe"\n')
    Path("junk.safetensors").write_text("junk")
    Path("three.toml").write_text("wrapper = 3\n")
    Path("base.toml").write_text("base = 3\n")
    Path("odd").mkdir()
    Path("odd/config.json").write_text('{"env": 3, "env_options": [1], "wrapper": 5}')
    Path("folder").mkdir()
    Path("full").mkdir()
    Path("full/file").write_text("mine")
    return tmp_path


CARTPOLE = "train CartPole-v1"
MISTAKES = [
    ("trian", "unknown command 'trian'"),
    ("trian", "Did you mean 'train'?"),
    ("--hlep", "unknown command '--hlep'"),
    ("train", "name an environment"),
    ("train CartPol-v1", "Did you mean: `CartPole`?"),
    ("train CartPole-v9", "version `v9`"),
    ("train no_module:Env-v0", "No module named 'no_module'"),
    ("train own_environments:Nothing-v0", "`Nothing` doesn't exist"),
    ("train own_environments:Continuous-v0", "action space Box(-1.0, 1.0, (1,), float32)"),
    ("train own_environments:Words-v0", "observation 'word' is a Letters, which is no number"),
    ("train own_environments:Broken-v0", "OSError: no licence"),
    ("train Pendulum-v1", "Discrete actions or products of them (MultiDiscrete) of up to 1024"),
    (f"{CARTPOLE} --steps -5", "steps = -5: it must be a whole number, at least 1"),
    (f"{CARTPOLE} --steps 0", "steps = 0"),
    (f"{CARTPOLE} --seed -1", "seed = -1"),
    (f"{CARTPOLE} --particles 0", "particles = 0"),
    (f"{CARTPOLE} --gamma 1.5", "gamma = 1.5: it must lie in [0, 1]"),
    (f"{CARTPOLE} --loss wgff", "Did you mean 'wgf'?"),
    (f"{CARTPOLE} --loss c51", "needs value_range"),
    (f"{CARTPOLE} --behaviour sdd", "Did you mean 'ssd'?"),
    (f"{CARTPOLE} --behaviour cvar:2", "alpha = 2.0: it must lie in (0, 1]"),
    (f"{CARTPOLE} --evaluation cvar:x", "'x' is not a number"),
    (f"{CARTPOLE} --agent tabular", "observation_space is Box"),
    (f"{CARTPOLE} --agent neurall", "Did you mean 'neural'?"),
    (f"{CARTPOLE} --config none.toml", "none.toml: cannot be read"),
    (f"{CARTPOLE} --config folder", "folder: cannot be read (Is a directory)"),
    (f"{CARTPOLE} --config bad.toml", "bad.toml: not a TOML file"),
    (f"{CARTPOLE} --config name.toml", "Did you mean 'steps'?"),
    (f"{CARTPOLE} --config kind.toml", "kind.toml: steps = 'many': it must be an int"),
    (f"{CARTPOLE} --config list.toml", "list.toml: hidden = [64, 'x']: it must be a list of int"),
    (f"{CARTPOLE} --config choice.toml", "it must be one of 'error', 'resume', 'overwrite'"),
    (f"{CARTPOLE} --config", "--config needs the name of a TOML file"),
    (f"{CARTPOLE} --out text.csv", "text.csv is a file, not a directory"),
    (f"{CARTPOLE} --out full", "full is not empty and holds no run"),
    (f"{CARTPOLE} --watch 0,0", "(0, 0) does not fit Box"),
    (f"{CARTPOLE} --watch what", "'what' is neither start nor numbers"),
    (f"{CARTPOLE} --watch 1e999,0,0,0", "(inf, 0, 0, 0) does not fit Box"),
    ("train surefoot/RiskyCliff-v0 --watch -1", "-1 does not fit Discrete(48)"),
    ("train surefoot/RiskyCliff-v0 --watch 2.5", "2.5 does not fit Discrete(48)"),
    ("train surefoot/RiskyCliff-v0 --watch 1e30", "1e+30 does not fit Discrete(48)"),
    (f"{CARTPOLE} --config /dev/zero", "/dev/zero: is larger than 16 MB"),
    (f"{CARTPOLE} --config deep.toml", "deep.toml: is nested too deeply"),
    (f"{CARTPOLE} --temperatures nan", "temperatures = nan: it must lie in (0, inf)"),
    (f"{CARTPOLE} --batch-size 1e12", "batch_size = 1000000000000: a batch would take"),
    (f"{CARTPOLE} --behaviour wang:nan", "eta = nan: it must be finite"),
    (f"{CARTPOLE} --env-option nonsense", "write it as name=value"),
    (f"{CARTPOLE} --env-option wind=3", "unexpected keyword argument 'wind'"),
    (f"{CARTPOLE} --checkpoint-every 0", "checkpoint_every = 0"),
    (f"{CARTPOLE} --eval-every 0", "eval_every = 0"),
    ("train Acrobot-v1 --compiled", "unknown compiled environment 'Acrobot-v1'"),
    ("evaluate", "name an agent or a run directory"),
    ("evaluate nowhere", "there is no such file or run directory"),
    ("evaluate junk.safetensors", "not a surefoot agent"),
    ("evaluate folder", "folder: holds neither agent.safetensors nor checkpoints"),
    ("evaluate junk.safetensors --policy sdd", "Did you mean 'ssd'?"),
    ("evaluate odd", "odd: holds neither agent.safetensors nor checkpoints"),
    ("sweep --env CartPole-v1 --steps 9 --set wrapper=a:B", "must be a list of names, module:Name"),
    ("sweep --base base.toml --env CartPole-v1 --steps 9", "base must be a table"),
    (f"{CARTPOLE} --config three.toml", "three.toml: wrapper = 3: it must be a list of str"),
    (f"{CARTPOLE} --compiled --wrapper gymnasium.wrappers:Autoreset", "wrapper Autoreset would"),
    ("evaluate junk.safetensors --seed -2", "seed = -2"),
    ("evaluate junk.safetensors --seed 99999999999999999999", "seed is about 2^67"),
    ("explain junk.safetensors --seed -1", "seed = -1: it must be a whole number, at least 0"),
    ("compare", "name a CSV or Parquet file"),
    ("compare nowhere.csv", "nowhere.csv: there is no such file"),
    ("compare folder", "folder: cannot be read: Is a directory"),
    ("compare text.csv", "row 3, column 'b' holds 'x'"),
    ("compare twice.csv", "columns 1 and 2 are both named 'a'"),
    ("compare fine.csv --columns c", "unknown column of fine.csv 'c'"),
    ("compare fine.csv --level 2", "level = 2.0"),
    ("compare fine.csv --resamples 3", "resamples = 3"),
    ("compare fine.csv --out full", "full is not empty and holds no run"),
    ("reproduce risky-clif", "Did you mean 'risky-cliff'?"),
    ("reproduce risky-cliff --policies sdd", "unknown policy 'sdd'"),
    ("reproduce risky-cliff --losses wfg-mixture", "Did you mean 'wgf-mixture'?"),
    ("reproduce all --only cliff", "unknown experiment 'cliff'"),
    ("demo --trials 0", "trials = 0"),
    (f"{CARTPOLE} --steps many", "--steps many: it must be an int"),
    (f"{CARTPOLE} --steps=many", "--steps many: it must be an int"),
    (f"{CARTPOLE} --steps", "--steps needs a value: an int"),
    (f"{CARTPOLE} --step 100", "unknown option --step: did you mean --steps?"),
    (f"{CARTPOLE} --batchsize 3", "did you mean --batch-size?"),
    (f"{CARTPOLE} --hidden 4 a", "--hidden 4 a: it must be a list of int"),
    (f"{CARTPOLE} --existing maybe", "unknown --existing 'maybe': there is error, overwrite, res"),
    (f"{CARTPOLE} extra", "'extra' is a word too many (surefoot train --help"),
    ("train FrozenLake-v1 --compiled", "unknown option --compiled"),
    ("explain junk.safetensors --state up", "--state up: it must be an int"),
    ("compare fine.csv --correction bonf", "unknown --correction 'bonf': there is holm"),
    ("compare fine.csv --pared", "unknown option --pared: did you mean --paired?"),
    ("reproduce risky-cliff --trials x", "--trials x: it must be an int"),
    ("demo --out text.csv", "text.csv is a file"),
]


@pytest.mark.parametrize(("words", "line"), MISTAKES, ids=lambda text: text)
def test_a_mistake_is_one_line_and_exit_code_2(words, line, place, capsys):
    before = sorted(place.rglob("*"))
    assert main(words.split()) == 2
    said = capsys.readouterr().err.splitlines()
    told = [text for text in said if text.startswith("surefoot:")]
    assert len(told) == 1
    assert line in told[0]
    assert not any(text.startswith(("│", "╭")) for text in said)
    made = [p for p in sorted(place.rglob("*")) if p not in before and "__pycache__" not in p.parts]
    assert not made  # nothing is left behind


@pytest.mark.filterwarnings("ignore:.*reward is a NaN")  # Gymnasium says so too
@pytest.mark.parametrize(
    ("env", "line"),
    [
        ("Raises-v0", "the environment raised RuntimeError: the simulator is gone"),
        ("NoNumber-v0", "the environment returned the reward nan"),
    ],
)
def test_a_run_that_cannot_go_on_is_exit_code_3(env, line, place, capsys):
    words = ["train", f"own_environments:{env}", "--steps", "20", "--hidden", "4", "--out", "run"]
    assert main(words) == 3
    assert line in capsys.readouterr().err


def test_a_place_that_cannot_be_written_is_exit_code_3(place, capsys):
    assert main(["train", "CartPole-v1", "--out", "/proc/nothing/here"]) == 3
    assert "cannot make /proc/nothing/here" in capsys.readouterr().err


def test_help_and_version_are_exit_code_0_and_nothing_is_2(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "130" in text
    assert main(["--version"]) == 0
    assert main([]) == 2
    assert main(["reproduce"]) == 2


def test_a_reader_that_goes_away_is_no_traceback():
    script = Path(sys.executable).with_name("surefoot")
    code = textwrap.dedent(f"{script} compare --help | head -1; exit ${{PIPESTATUS[0]}}")
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
