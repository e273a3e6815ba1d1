"""What README shows is seen, whatever the seed."""

from __future__ import annotations

from pathlib import Path

import pytest

README = Path(__file__).parents[2] / "README.md"
CODE = README.read_text().split("```python\n", 1)[1].split("```", 1)[0]


@pytest.mark.slow  # the quick tests run it with its own seed, among all blocks of the pages
@pytest.mark.parametrize("seed", range(6))
def test_the_ten_lines_take_the_sure_path(seed, capsys):
    assert "seed=1" in CODE
    names: dict = {}
    exec(compile(CODE.replace("seed=1", f"seed={seed}"), "README.md", "exec"), names)
    assert capsys.readouterr().out.startswith("True False\naction up: its return dominates")
    explanation = names["agent"].explain(24)
    # The two paths tie for the best mean; that the sure one is taken is dominance's doing.
    assert {explanation.names[a] for a in explanation.tied.nonzero()[0]} >= {"up", "right"}
    up, right = explanation.names.index("up"), explanation.names.index("right")
    assert explanation.z[up].std() < explanation.z[right].std()
