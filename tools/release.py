"""Is the package fit to be released? `make release-check`, part of `.ci/run`.

It builds wheel and sdist, looks into them, and installs the wheel without the lock into fresh
environments, away from the clone: the base alone, every extra, the lowest versions that
pyproject.toml allows, and each Python from 3.11 on that is there. In one of them the README's
commands and ten lines run as a new user would run them; mypy checks `examples/` against the wheel.

torch is excluded from every resolution, as it is from the lock (its resolution brings gigabytes):
the extras sb3 and tianshou are installed without it, and their adapters run in the tests, with
`make torch`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UV = str(ROOT / ".tools" / "bin" / "uv")
BESIDE = "torch\nvirtualenv\n"  # as in [tool.uv] of pyproject.toml
PYTHONS = ("3.11", "3.12", "3.13")
# README's commands, made short; what is not named runs as it is.
SHORTER = {
    "train": ["--steps", "300", "--compiled"],
    "evaluate": ["--episodes", "3", "--resamples", "100"],
    "sweep": ["--steps", "120", "--seeds", "0:2", "--engine", "serial"],
    "reproduce": ["--help"],
}
# What an extra brings; None: nothing that can be imported without torch.
BRINGS = {
    "envs": "Box2D, pygame", "report": "jinja2, matplotlib, polars", "ray": "ray", "sb3": None,
    "wandb": "wandb", "tensorboard": "tensorboardX", "tianshou": None, "docs": "mkdocs",
    "dev": "mypy, pytest, hypothesis", "browser": "selenium", "data": "skfolio",
    "bench": "ott, ot, arch",
}  # fmt: skip
USED = """
import numpy as np, surefoot as sf
print(sf.ssd_dominates(np.array([4.0, 6.0]), np.array([0.0, 10.0])))"""


def main() -> int:
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder))
    print(f"fit to be released ({time.monotonic() - begin:.0f} s)")
    return 0


def check(folder: Path) -> None:
    wheel, sdist = build(folder)
    look_into(wheel, sdist)
    (folder / "beside.txt").write_text(BESIDE)
    base = install(folder, "base", wheel, "")
    assert run(base, "-c", USED).strip() == "True"
    without_extras(base, folder)
    user = install(folder, "user", wheel, "envs,report")
    readme(user, folder)
    types(user, folder)
    for extra in extras():
        made = install(folder, f"extra-{extra}", wheel, extra)
        brings = BRINGS[extra]
        told = run(made, "-c", (f"import {brings}" if brings else "") + USED)
        assert told.splitlines()[-1] == "True", told  # the last line: pygame greets
        shutil.rmtree(folder / f"extra-{extra}")
    lowest = install(folder, "lowest", wheel, "envs,report", "--resolution", "lowest-direct")
    assert run(lowest, "-c", USED).strip() == "True"
    quick_run(lowest, folder / "lowest-run")
    for version in PYTHONS[1:]:
        if python_of(version) is None:
            tell(f"Python {version} is not there: left out")
            continue
        other = install(folder, version, wheel, "report", python=version)
        assert run(other, "-c", USED).strip() == "True"
        quick_run(other, folder / f"run-{version}")


# --- what is built -----------------------------------------------------------------------------


def build(folder: Path) -> tuple[Path, Path]:
    tell("building wheel and sdist")
    call([UV, "build", "-q", "-o", str(folder / "dist"), str(ROOT)])
    (wheel,), (sdist,) = ((folder / "dist").glob(f"*.{end}") for end in ("whl", "tar.gz"))
    return wheel, sdist


def look_into(wheel: Path, sdist: Path) -> None:
    """The wheel has all of the package and nothing else; the sdist what a packager needs."""
    names = set(zipfile.ZipFile(wheel).namelist())
    kept = ("*.py", "*.html", "*.css", "*.js", "py.typed")
    source = {str(p.relative_to(ROOT / "src")) for end in kept for p in
              (ROOT / "src" / "surefoot").rglob(end)}  # fmt: skip
    assert source <= names, f"not in the wheel: {sorted(source - names)}"
    others = {name for name in names - source if ".dist-info/" not in name}
    assert not others, f"in the wheel for no reason: {sorted(others)}"
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff", "SECURITY.md",
              "tests/tiny.py", "examples/own_environment.py"}  # fmt: skip
    assert wanted <= inside, f"not in the sdist: {sorted(wanted - inside)}"


# --- environments ------------------------------------------------------------------------------


def install(
    folder: Path, name: str, wheel: Path, extra: str, *options: str, python: str = PYTHONS[0]
) -> Path:
    """A fresh environment with the wheel, without the lock; returns its Python."""
    tell(f"environment {name}: surefoot[{extra}] on Python {python} {' '.join(options)}")
    place = folder / name
    call([UV, "venv", "-q", "--python", str(python_of(python) or python), str(place)])
    made = place / "bin" / "python"
    call([UV, "pip", "install", "-q", "--python", str(made), *_spec(folder, wheel, extra),
          *options])  # fmt: skip
    return made


def _spec(folder: Path, wheel: Path, extra: str) -> list[str]:
    named = f"surefoot[{extra}] @ file://{wheel}" if extra else str(wheel)
    return ["--excludes", str(folder / "beside.txt"), named]


def extras() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return list(project["optional-dependencies"])


def python_of(version: str) -> str | None:
    """An interpreter of that version: on the path, or one of pyenv's."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    of_pyenv = sorted(pyenv.glob(f"{version}.*/bin/python"))
    if of_pyenv:
        return str(of_pyenv[-1])
    return shutil.which(f"python{version}")


# --- what a user does --------------------------------------------------------------------------


def without_extras(python: Path, folder: Path) -> None:
    """A missing extra is one line that names it, at once, and nothing is left behind."""
    work = folder / "without"
    work.mkdir()
    for words, extra in (
        (["demo"], "report"),
        (["train", "LunarLander-v3"], "envs"),
        (["train", "CartPole-v1", "--tensorboard"], "tensorboard"),
    ):
        done = call([str(python.with_name("surefoot")), *words], cwd=work, code=2)
        assert f"pip install 'surefoot[{extra}]'" in done.stderr, done.stderr
        assert not list(work.iterdir()), words


def readme(python: Path, folder: Path) -> None:
    """The ten lines, and the commands one after the other in an empty directory."""
    tell("README's ten lines and commands")
    text = (ROOT / "README.md").read_text()
    (lines,) = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert run(python, "-c", lines).startswith("True False")
    work = folder / "work"
    work.mkdir()
    rows = "".join(f"{i % 7},{2 * (i % 5)}\n" for i in range(40))
    (work / "returns.csv").write_text(f"a,b\n{rows}")
    commands = re.findall(r"^    (surefoot .*?)(?: +#.*)?$", text, re.MULTILINE)
    assert len(commands) >= 6, commands
    for command in commands:
        _, name, *words = command.split()
        more = SHORTER.get(name, [])
        words = [] if more == ["--help"] else words
        call([str(python.with_name("surefoot")), name, *words, *more], cwd=work)
    assert (work / "runs" / "cartpole" / "report.html").is_file()


def quick_run(python: Path, out: Path) -> None:
    surefoot = str(python.with_name("surefoot"))
    words = ["train", "surefoot/RiskyCliff-v0", "--steps", "100", "--eval-episodes", "2"]
    call([surefoot, *words, "--out", str(out)], cwd=out.parent)
    call([surefoot, "report", str(out)], cwd=out.parent)


def types(python: Path, folder: Path) -> None:
    """The wheel's type information, as a user's mypy sees it."""
    tell("mypy on examples/ against the wheel")
    mypy = [sys.executable, "-m", "mypy", "--config-file=", "--python-executable", str(python),
            "--ignore-missing-imports", "--disallow-untyped-defs", "--check-untyped-defs",
            "--cache-dir", str(folder / "mypy")]  # fmt: skip
    call([*mypy, str(ROOT / "examples")], cwd=folder)
    wrong = folder / "wrong.py"  # that the types are seen at all
    wrong.write_text("import surefoot as sf\n\nsf.TabularAgent('x').learn('x')\n")
    told = call([*mypy, str(wrong)], cwd=folder, code=1).stdout
    assert 'has incompatible type "str"' in told, told


# --- processes ---------------------------------------------------------------------------------


def run(python: Path, *words: str) -> str:
    return call([str(python), *words], cwd=python.parent).stdout


def call(words: list[str], cwd: Path = ROOT, code: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, cwd=cwd, capture_output=True, text=True)
    if done.returncode != code:
        print(done.stdout[-2000:], done.stderr[-4000:], sep="\n", file=sys.stderr)
        raise SystemExit(f"exit code {done.returncode}, not {code}: {' '.join(words)}")
    return done


def tell(text: str) -> None:
    print(f"== {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
