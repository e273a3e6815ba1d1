"""Episodes as a moving picture: what the agent sees, what it expects of each action, its words."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from surefoot.plots.figures import new_figure
from surefoot.plots.marks import plain_text
from surefoot.plots.styles import BLUE, GREY

if TYPE_CHECKING:
    from surefoot.agents.explain import Explanation

DPI = 72
MOST_ACTIONS = 12  # rows that a panel shows: the best means and the chosen one
LEAST_PAUSE = 40  # milliseconds a frame; quicker ones are slowed down by browsers


class Scene(NamedTuple):
    """One step of an episode."""

    picture: np.ndarray | None  # [H, W, 3] bytes; None where the environment draws none
    explanation: Explanation
    head: str  # episode, step and return so far


def draw_film(scenes: Sequence[Scene], title: str = "", pause: int = 200) -> bytes:
    """The scenes as a GIF that starts over; `pause` is in milliseconds."""
    from PIL import Image

    low, high = _range(scenes)
    pages = [Image.fromarray(_draw(scene, title, low, high)) for scene in scenes]
    # One palette for all frames, made of the first: colours do not flicker.
    palette = pages[0].quantize(colors=128)
    small = [page.quantize(palette=palette, dither=Image.Dither.NONE) for page in pages]
    out = io.BytesIO()
    small[0].save(
        out, "GIF", save_all=True, append_images=small[1:], loop=0, duration=max(pause, LEAST_PAUSE)
    )
    return out.getvalue()


def _range(scenes: Sequence[Scene]) -> tuple[float, float]:
    """One range of returns for all of the film, so that what moves are the distributions: that of
    what could be chosen, for beside an action that is far worse all others would be dots."""
    close = [e.z[a] for e in (scene.explanation for scene in scenes) for a in _in_question(e)]
    low, high = min(float(z.min()) for z in close), max(float(z.max()) for z in close)
    air = 0.05 * (high - low) or 0.01 * max(abs(high), 1.0)
    return low - air, high + air


def _in_question(e: Explanation) -> set[int]:
    """The two best means, and the action that is taken."""
    return {int(a) for a in np.argsort(-e.mean, kind="stable")[:2]} | {e.action}


def _draw(scene: Scene, title: str, low: float, high: float) -> np.ndarray:
    e = scene.explanation
    drawn = scene.picture is not None
    figure, axes = new_figure(1, 2 if drawn else 1, size=(10.0 if drawn else 6.0, 4.6))
    panels = list(np.atleast_1d(axes).ravel())
    if scene.picture is not None:
        panels[0].imshow(scene.picture)
        panels[0].set_axis_off()
    _distributions(panels[-1], e, low, high)
    head = " | ".join(text for text in (title, scene.head) if text)
    figure.suptitle(head.replace("$", r"\$"), fontsize=11, x=0.01, ha="left")
    words = "\n".join(textwrap.fill(line, 110 if drawn else 66) for line in e.words[:2])
    lines = (words.splitlines() + [""] * 4)[:4]  # always as many: the panels keep their place
    figure.supxlabel("\n".join(lines).replace("$", r"\$"), fontsize=10, x=0.01, ha="left")
    figure.set_dpi(DPI)
    canvas: Any = figure.canvas
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _distributions(ax: Any, e: Explanation, low: float, high: float) -> None:
    """A row for each action: all particles, their middle half, their mean."""
    best = np.argsort(-e.mean, kind="stable")[:MOST_ACTIONS]
    shown = sorted({int(a) for a in best} | {e.action})
    for row, a in enumerate(reversed(shown)):
        z, chosen = e.z[a], a == e.action
        colour = BLUE if chosen else GREY
        lower, upper = np.quantile(z, [0.25, 0.75])
        ax.plot([z[0], z[-1]], [row, row], color=colour, linewidth=1.5)
        ax.plot([lower, upper], [row, row], color=colour, linewidth=9, alpha=0.45)
        ax.plot(z, np.full(len(z), row), "|", color=colour, markersize=9)
        ax.plot(e.mean[a], row, "o", color=colour, markersize=9 if chosen else 6)
        if e.mean[a] < low or e.mean[a] > high:  # cut off: an arrow, and where it would be
            worse, to = e.mean[a] < low, f"mean {e.mean[a]:.3g}"
            ax.text(low if worse else high, row, f" ◂ {to}" if worse else f"{to} ▸ ",
                    ha="left" if worse else "right", va="center", color=colour)  # fmt: skip
    names = [("→ " if a == e.action else "") + plain_text(e.names[a], 16) for a in reversed(shown)]
    ax.set_yticks(range(len(shown)), names)
    ax.set_ylim(-0.6, len(shown) - 0.4)
    ax.set_xlim(low, high)
    ax.set_xlabel("return from here: all particles, middle half, mean")
