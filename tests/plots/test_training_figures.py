"""Figures of training runs and sweeps: what is drawn is what the files hold."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.colors import to_rgb

import surefoot.report
from surefoot.errors import InputError
from surefoot.plots import (
    cell_label,
    draw_authorities,
    draw_learning,
    draw_sweep_cells,
    draw_sweep_curves,
    draw_watched,
    draw_within,
    svg,
)

STEP = np.arange(10, 1010, 10)


def test_a_learning_curve_shows_episodes_their_mean_and_evaluations():
    episodes = {"step": STEP, "return": np.arange(100.0), "loss": np.full(100, np.nan)}
    evaluations = {"step": [500, 500, 1000, 1000], "return": [40.0, 60.0, 90.0, 100.0]}
    figure = draw_learning(episodes, evaluations)
    assert [ax.get_title() for ax in figure.axes] == ["Return"]  # no loss was ever finite
    lines = {line.get_label(): line for line in figure.axes[0].lines}
    # Five episodes at a time: the first mean, of 0 to 4, is 2 and stands at the fifth episode.
    x, y = lines["training"].get_data()
    assert (x[0], y[0], y[-1]) == (50, 2.0, 97.0)
    np.testing.assert_array_equal(lines["evaluation (mean and range)"].get_ydata(), [50.0, 95.0])
    assert svg(figure).startswith("<svg")


def test_a_wild_episode_does_not_flatten_the_others():
    values = np.sin(np.arange(100.0))
    values[3] = -1e6
    figure = draw_learning({"step": STEP, "return": values})
    assert figure.axes[0].get_ylim()[0] > -10
    with pytest.raises(InputError, match="needs the columns"):
        draw_learning({"step": STEP, "return": np.full(100, np.nan)})


def test_authorities_share_all_steps():
    half = np.full(100, 2.0)
    figure = draw_authorities({"step": STEP, "by_dominance": half, "by_exploration": half})
    tops = [c.get_paths()[0].vertices[:, 1].max() for c in figure.axes[0].collections]
    assert tops == pytest.approx([50.0, 100.0])
    assert draw_authorities({"step": STEP, "return": half}) is None


def test_training_from_within_has_a_panel_for_each_thing_that_was_said():
    half = np.full(100, 0.5)
    episodes = {"step": STEP, "return": half, "dominance": half, "grad_norm": half * np.nan}
    speed = {"step": [100, 900], "steps_per_second": [50.0, 70.0]}
    figure = draw_within(episodes, speed)
    assert [ax.get_title() for ax in figure.axes] == ["Dominance", "Speed"]
    share, pace = ({line.get_label(): line for line in ax.lines} for ax in figure.axes)
    assert set(share["training"].get_ydata()) == {50.0}  # per cent
    np.testing.assert_array_equal(pace["training"].get_data(), [[100, 900], [50, 70]])
    # Who decided each action is another figure, of tables: a share is no count.
    assert draw_authorities(episodes) is None
    assert draw_within({"step": STEP, "return": half}) is None


def test_watched_distributions_have_a_panel_for_each_action():
    z = np.stack([np.tile([3.0, 1.0, 2.0, 4.0, 5.0], (6, 1)), np.zeros((6, 5))], axis=1)
    figure = draw_watched(np.arange(6), z, ["up", "down"], "state 3")
    up = figure.axes[0]
    assert up.get_title() == "up"
    assert set(up.lines[0].get_ydata()) == {3.0}
    every, half = (c.get_paths()[0].vertices[:, 1] for c in up.collections[:2])
    assert (every.min(), every.max(), half.min(), half.max()) == (1, 5, 2, 4)


def cell(mean, low, high, **grid):
    measures = {"seeds": 3, "failed": 0, "mean": mean, "low": low, "high": high}
    return grid | measures | {"cvar_0.25": None, "training_return": 1.0}


def test_cells_of_a_sweep_are_named_by_the_grid():
    cells = [cell(2.0, 1.0, 3.0, loss="qr", h=1), cell(None, None, None, loss="wgf", h=1)]
    ax = draw_sweep_cells(cells).axes[0]
    assert (
        [t.get_text() for t in ax.get_yticklabels()] == ["loss qr, h 1"] == [cell_label(cells[0])]
    )
    assert ax.get_title().startswith("3 seeds a cell")
    with pytest.raises(InputError, match="no trial"):
        draw_sweep_cells(cells[1:])


def test_curves_of_a_sweep_have_intervals_within_what_was_reached():
    curves = {"qr": [[[1, 0.0], [2, 10.0]], [[1, 2.0], [2, 90.0]]], "wgf": [[[1, 5.0], [2, 5.0]]]}
    ax = draw_sweep_curves(curves).axes[0]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), [1.0, 50.0])
    # Student's interval over two seeds would reach to several hundred.
    heights = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert heights.min() >= 0
    assert heights.max() <= 90


def test_dots_can_be_seen_on_white_and_on_a_dark_page():
    """A contrast of at least 3, as WCAG asks of graphics, also after the filter by which a report
    turns figures around; 0.1.0's dots had 1.7 on white."""
    css = (Path(surefoot.report.__file__).parent / "assets" / "report.css").read_text()
    found = re.search(r"invert\((.*?)\) hue-rotate\(180deg\) brightness\((.*?)\)", css)
    invert, brightness = map(float, found.groups())

    def dark(color):  # as the CSS filters do it: the matrix of hue-rotate at 180 degrees
        turned = color * (1 - invert) + (1 - color) * invert
        grey = np.tile([0.213, 0.715, 0.072], (3, 1))
        return np.clip(np.clip((2 * grey - np.eye(3)) @ turned, 0, 1) * brightness, 0, 1)

    def luminance(color):
        low = color <= 0.03928
        return np.where(low, color / 12.92, ((color + 0.055) / 1.055) ** 2.4) @ [
            0.2126,
            0.7152,
            0.0722,
        ]

    (dots, _) = draw_learning({"step": STEP, "return": np.arange(100.0)}).axes[0].lines
    blue, white = np.array(to_rgb(dots.get_color())), np.ones(3)
    seen = dots.get_alpha() * blue + (1 - dots.get_alpha()) * white
    for one, other in ((seen, white), (dark(seen), dark(white))):
        high, low = sorted((luminance(one), luminance(other)))[::-1]
        assert (high + 0.05) / (low + 0.05) >= 3
