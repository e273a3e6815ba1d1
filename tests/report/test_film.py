"""Episodes to watch: a GIF of frames, distributions and words, and the report that embeds it."""

from __future__ import annotations

import io
import re
import shutil

import jax
import numpy as np
import pytest
from PIL import Image

from surefoot.agents.explain import explain
from surefoot.cli import main
from surefoot.errors import InputError
from surefoot.plots import film, new_figure
from surefoot.plots.film import Scene, draw_film
from surefoot.policies import Greedy
from surefoot.report import report

pytestmark = pytest.mark.wide


def scenes(pictures):
    z = np.array([[0.0, 1.0, 2.0], [3.0, 4.0, 8.0]])
    said = explain(z, Greedy(), jax.random.key(0), names=("left", "right"))
    return [Scene(picture, said, f"step {i}") for i, picture in enumerate(pictures)]


def test_every_scene_is_a_frame():
    bright, dark = (np.full((20, 30, 3), tone, np.uint8) for tone in (250, 5))
    made = Image.open(io.BytesIO(draw_film(scenes([bright, dark, bright]), "Task", 200)))
    assert (made.format, made.n_frames, made.info["duration"], made.info["loop"]) == (
        "GIF",
        3,
        200,
        0,
    )
    tones = []
    for i in range(3):
        made.seek(i)
        page = np.asarray(made.convert("L"), float)
        tones.append(page[page.shape[0] // 2, page.shape[1] // 4])  # in the middle of the picture
    assert tones[1] < 40 < 200 < min(tones[0], tones[2])
    without = Image.open(io.BytesIO(draw_film(scenes([None]))))
    assert without.size[0] < made.size[0]  # no room is left for a picture


def test_an_action_that_is_far_worse_is_cut_off():
    z = np.array([[4.0, 5.0, 6.0], [4.9, 5.0, 5.1], [-115.0, -113.0, -110.0]])
    said = explain(z, Greedy(), jax.random.key(0), names=("noisy", "sure", "over the edge"))
    low, high = film._range([Scene(None, said, "")])
    assert (low, high) == (pytest.approx(3.9), pytest.approx(6.1))  # 4 to 6, and some air
    _, axes = new_figure()
    film._distributions(axes, said, low, high)
    assert axes.get_xlim() == (low, high)
    assert [text.get_text() for text in axes.texts] == [" ◂ mean -113"]


def test_a_run_is_watched_and_its_report_shows_it(trained, tmp_path, capsys):
    run = tmp_path / "run"
    shutil.copytree(trained, run)
    words = ["--frames", "3", "--episodes", "1e12", "--policy", "greedy"]  # the frames end it
    assert main(["watch", str(run), *words]) == 0
    assert re.search(r"watch.gif \([1-9]\d* kB\): open", capsys.readouterr().out)
    made = Image.open(run / "figures" / "watch.gif")
    assert made.n_frames == 3
    page = report(run).read_text()
    assert "data:image/gif;base64," in page
    assert "Score: " in page
    assert page.index("Score: ") < page.index("<figure")
    (run / "figures" / "watch.gif").write_bytes(b"<script>")
    assert "data:image/gif" not in report(run).read_text()


def test_mistakes_are_one_line(trained, capsys):
    for words, text in (
        (["watch"], "watch: name a run directory or an agent's file"),
        (["watch", str(trained), "--frames", "0"], "frames = 0"),
        (["watch", "nowhere"], "nowhere: there is no such file"),
    ):
        assert main(words) == 2
        assert text in capsys.readouterr().err


def test_an_environment_that_nobody_knows_how_to_make():
    from surefoot.report.film import drawing_env

    class Agent:
        env, env_maker = None, None

    with pytest.raises(InputError, match="not registered: name it by --env"):
        drawing_env(Agent())
