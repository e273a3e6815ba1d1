"""Every figure is drawn once, by matplotlib, by a function from plain data to a `Figure`.

    figure = plots.draw_learning(episodes, evaluations)
    plots.svg(figure)        # one <svg> element on white for an HTML page, also a dark one
    plots.render(figure)     # (png, svg) as bytes, for files
    plots.save_figure(figure, run, "learning")    # figures/learning.png and .svg of a RunDir

| of             | function                                           | data                     |
|----------------|----------------------------------------------------|--------------------------|
| a training run | `draw_learning(episodes, evaluations)`             | columns of the CSV files |
|                | `draw_within(episodes, speed)`, None without them  | of the network, the pace |
|                | `draw_authorities(episodes)`, None if not counted  | columns `by_*`           |
|                | `draw_watched(steps, z, actions, title)`           | `z[T, A, N]` of a state  |
| a sweep        | `draw_sweep_cells(cells, values)`                  | of summary.json          |
|                | `draw_sweep_profiles(values)`                      | a return for each seed   |
|                | `draw_sweep_curves(curves)`, named by `cell_label` | `[E, 2]` for each seed   |
| a comparison   | `draw_comparison(returns, dominant, ...)`          | columns of returns       |
|                | `draw_bands(bands, words)`                         | a band for each pair     |
| a decision     | `draw_decision(explanation, title)`                | an `Explanation`         |
|                | `draw_gaps(gap, error, tied, action, title)`       | a `Decision`             |

The figures of an experiment of the paper are drawn beside it: each module of `surefoot.paper` has
`figures(results) -> {name: Figure}`, and `surefoot.paper.caption(kind, name)` is the sentence under
one. A finished run has them stored as figures/NAME.svg, which is what a report embeds; their
tables need not be there.

Figures keep a white background on purpose: the same file serves paper, page and dark page.
Nothing here reads or writes files, and nothing above `core` is imported.
"""

from surefoot.plots.comparison import draw_bands, draw_comparison
from surefoot.plots.decision import draw_decision, draw_gaps
from surefoot.plots.figures import (
    label,
    legend,
    legend_below,
    new_figure,
    render,
    save_figure,
    svg,
)
from surefoot.plots.marks import band, curve, dispersion, heatmap, intervals, shares, violins
from surefoot.plots.styles import PALETTE, STYLES, Style, style, styles
from surefoot.plots.training import (
    cell_label,
    draw_authorities,
    draw_learning,
    draw_sweep_cells,
    draw_sweep_curves,
    draw_sweep_profiles,
    draw_watched,
    draw_within,
)

__all__ = [
    "PALETTE",
    "STYLES",
    "Style",
    "band",
    "cell_label",
    "curve",
    "dispersion",
    "draw_authorities",
    "draw_bands",
    "draw_comparison",
    "draw_decision",
    "draw_gaps",
    "draw_learning",
    "draw_sweep_cells",
    "draw_sweep_curves",
    "draw_sweep_profiles",
    "draw_watched",
    "draw_within",
    "heatmap",
    "intervals",
    "label",
    "legend",
    "legend_below",
    "new_figure",
    "render",
    "save_figure",
    "shares",
    "style",
    "styles",
    "svg",
    "violins",
]
