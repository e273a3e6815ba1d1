"""Where compiled programs are kept: by default, by choice, or nowhere."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from surefoot import compile_cache
from surefoot.cli import main
from surefoot.compile_cache import configure

JAX = "JAX_COMPILATION_CACHE_DIR"
SECONDS = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"


@pytest.fixture(autouse=True)
def clean(monkeypatch, tmp_path):
    """An environment without a choice, and JAX as if it were not there yet."""
    for name in (JAX, SECONDS, compile_cache.VARIABLE):
        monkeypatch.setenv(name, "")  # so that the test's end restores it
        monkeypatch.delenv(name)
    monkeypatch.setattr(compile_cache, "_set_here", set())
    monkeypatch.delitem(sys.modules, "jax")
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def test_the_default_is_the_user_s_cache_directory(tmp_path, monkeypatch):
    used = configure()
    assert used == tmp_path / "cache" / "surefoot" / "xla"
    assert os.environ[JAX] == str(used)
    assert used.stat().st_mode & 0o777 == 0o700  # a program is code: nobody else may put one there
    assert configure() == used  # again, as in a worker process
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert configure() == tmp_path / "home" / ".cache" / "surefoot" / "xla"


def test_jax_s_own_variable_is_left_alone(monkeypatch):
    monkeypatch.setenv(JAX, "/elsewhere")
    assert configure() is None
    assert os.environ[JAX] == "/elsewhere"
    assert SECONDS not in os.environ


def test_it_can_be_turned_off_and_moved(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv(compile_cache.VARIABLE, "off")
    assert configure() is None
    assert JAX not in os.environ
    monkeypatch.setenv(compile_cache.VARIABLE, str(tmp_path / "mine"))
    assert configure() == tmp_path / "mine"
    assert main(["--compile-cache", "off", "--version"]) == 0  # undoes what import has chosen
    assert JAX not in os.environ
    assert os.environ[compile_cache.VARIABLE] == "off"  # for worker processes
    assert main(["--version", f"--compile-cache={tmp_path / 'other'}"]) == 0
    assert os.environ[JAX] == str(tmp_path / "other")
    assert main(["train", "--compile-cache"]) == 2
    assert "needs off, or a directory" in capsys.readouterr().err


def test_where_it_cannot_be_there_is_none(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    for home in (str(tmp_path / "file"), "/dev/null", "/proc/no/such"):
        monkeypatch.setenv("XDG_CACHE_HOME", home)
        assert configure() is None
        assert JAX not in os.environ
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert configure() is None


def test_a_directory_open_to_others_is_not_used(tmp_path, monkeypatch):
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared").chmod(0o777)
    monkeypatch.setenv(compile_cache.VARIABLE, str(tmp_path / "shared"))
    assert configure() is None


PROGRAM = """
import sys
import surefoot as sf
assert "jax" not in sys.modules
import jax
jax.jit(lambda x: x @ x + 3)(jax.numpy.ones((4, 4)))
"""


@pytest.mark.wide
def test_programs_are_kept(tmp_path):
    environment = {k: v for k, v in os.environ.items() if k != JAX} | {SECONDS: "0"}
    subprocess.run([sys.executable, "-c", PROGRAM], env=environment, check=True)
    assert list((tmp_path / "cache" / "surefoot" / "xla").glob("jit__lambda*-cache"))
