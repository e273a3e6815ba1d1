"""The page opened and clicked in Chromium: it shows what the library computed, loads nothing."""

import json
import re
import time

import jax
import numpy as np
import pytest

from surefoot.agents.explain import explain
from surefoot.comparison import compare_file
from surefoot.envs import ACTION_NAMES
from surefoot.policies import policy_named
from surefoot.report import report

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FORK, NEXT = 24, 25  # above the start, and the cell to its right


def opened(browser, page, *, width=1280, dark=False):
    """The page, drawn; what was logged before is forgotten."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(page.as_uri())
    until(browser, "return document.body.dataset.ready === 'yes'")
    until(browser, "return [...document.images].every((i) => i.complete)")


def until(browser, script, seconds=60):
    end = time.monotonic() + seconds
    while not browser.execute_script(script):
        assert time.monotonic() < end, script
        time.sleep(0.05)


def texts(browser, selector):
    script = "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)"
    return browser.execute_script(script, selector)


def curves(browser, panel):
    """Names and values of the curves in one of the explorer's panels."""
    return browser.execute_script(
        "const plot = document.querySelectorAll('.explorer .plot')[arguments[0]];"
        "return Object.fromEntries([...plot.querySelectorAll('.curve')]"
        ".map((c) => [c.dataset.action, JSON.parse(c.dataset.y)]))",
        panel,
    )


def show_everything(browser):
    """All actions, curves as they are."""
    browser.execute_script(
        "for (const box of document.querySelectorAll('.explorer input')) box.click()"
    )


def expected(cliff, state, policy="ssd"):
    """What the library says of a state, from the run's own table."""
    import polars as pl

    z = pl.read_parquet(cliff / "particles.wgf-mixture.ssd.parquet")["z"].to_numpy()
    z = z.reshape(48, 4, -1)[state]
    key = jax.random.fold_in(jax.random.key(0), state)
    return explain(z, policy_named(f"{policy}:tolerance=0.0005"), key, names=ACTION_NAMES)


def click(browser, state):
    browser.execute_script(
        "document.querySelector(`.states button[data-state='${arguments[0]}']`).click()", state
    )


def test_a_click_shows_what_the_library_says_of_the_state(browser, cliff, cliff_page):
    opened(browser, cliff_page)
    show_everything(browser)
    seen = {}
    for state in (FORK, NEXT):
        click(browser, state)
        told = expected(cliff, state)
        assert texts(browser, ".words p") == [*told.words, told.relations]
        found = curves(browser, 1)
        assert set(found) == set(ACTION_NAMES)
        for a, name in enumerate(ACTION_NAMES):
            np.testing.assert_allclose(found[name][1:], told.cumulative_quantile[a], rtol=1e-6)
        rows = texts(browser, ".explorer tbody tr.chosen td")
        assert rows[0] == f"→ {ACTION_NAMES[told.action]}"
        assert float(rows[1]) == pytest.approx(told.mean[told.action], rel=1e-4)
        pressed = texts(browser, ".states button[aria-pressed='true'] .arrow")
        assert pressed == ["↑→↓←"[told.action]]
        seen[state] = found
    assert seen[FORK] != seen[NEXT]


def test_distribution_and_dispersion_are_those_of_the_particles(browser, cliff, cliff_page):
    opened(browser, cliff_page)
    show_everything(browser)
    click(browser, NEXT)
    told = expected(cliff, NEXT)
    cdf, frontier = curves(browser, 0), curves(browser, 2)
    size = told.z.shape[1]
    for a, name in enumerate(ACTION_NAMES):
        np.testing.assert_allclose(cdf[name], [*np.arange(size + 1) / size, 1])
        # F^(2) by its definition, at the particles and at the mean: what falls short on average.
        at = np.sort([*told.z[a], told.mean[a]])
        short = [np.clip(x - told.z[a], 0, None).mean() for x in at]
        np.testing.assert_allclose(frontier[name][1:-1], short, rtol=1e-5, atol=1e-6)


def test_curves_lie_where_their_numbers_say(browser, cliff_page):
    """The line of the chosen action, relative to itself, is level; the CDF ends at the top."""
    opened(browser, cliff_page)
    boxes = browser.execute_script(
        "return [...document.querySelectorAll('.explorer .curve path[stroke-width=\"2.8\"]')]"
        ".map((p) => { const b = p.getBBox(); return [b.x, b.y, b.width, b.height]; })"
    )
    assert boxes[1][3] == 0
    assert boxes[1][2] == pytest.approx(400 - 76 - 14)
    # Shares 0 and 1 with a twentieth of air: 242 of the plot's height less two elevenths of it.
    assert boxes[0][3] == pytest.approx(242 / 1.1, abs=0.2)


def test_the_policy_asked_can_be_chosen(browser, cliff, cliff_page):
    opened(browser, cliff_page)
    names = browser.execute_script(
        "const box = document.querySelector(\"select[data-of='decide by']\");"
        "box.value = 'greedy, tolerance 0.0005'; box.dispatchEvent(new Event('change'));"
        "return [...box.options].map((o) => o.value)"
    )
    assert names == ["SSD, tolerance 0.0005", "greedy, tolerance 0.0005"]
    click(browser, FORK)
    told = expected(cliff, FORK, "greedy")
    assert texts(browser, ".words p") == [*told.words, told.relations]


def test_the_grid_is_walked_with_the_keyboard(browser, cliff_page):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    opened(browser, cliff_page)
    start = browser.find_element(By.CSS_SELECTOR, ".states button[aria-pressed='true']")
    assert start.get_attribute("data-state") == str(FORK)
    start.send_keys(Keys.ARROW_RIGHT)
    now = browser.switch_to.active_element
    assert now.get_attribute("data-state") == str(NEXT)
    assert now.get_attribute("aria-label").startswith("row 2, column 1, state 25: ")
    now.send_keys(Keys.ARROW_DOWN)  # into the cliff: nobody acts there
    assert browser.switch_to.active_element.get_attribute("data-state") == str(NEXT)


def contrast(one, other):
    """Of two `rgb(r, g, b)`, by WCAG 2."""

    def luminance(color):
        parts = [int(part) / 255 for part in re.findall(r"\d+", color)[:3]]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return np.dot(linear, [0.2126, 0.7152, 0.0722])

    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def colors(browser):
    """Of the page, its text, the dots of a noisy cell, and what they stand on."""
    return browser.execute_script(
        "const probe = document.createElement('i'); document.body.append(probe);"
        "const of = (name) => {"
        "  probe.style.color = `var(${name})`; return getComputedStyle(probe).color; };"
        "return ['--bg', '--fg', '--dot', '--noisy', '--quiet', '--bad'].map(of)"
    )


def test_dark_and_light(browser, cliff_page):
    def background():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    def turned():
        return browser.execute_script(
            "return getComputedStyle(document.querySelector('img.drawn')).filter"
        )

    opened(browser, cliff_page, dark=True)
    assert background() == "rgb(20, 23, 27)"
    assert "invert" in turned()  # figures are drawn on white
    browser.execute_script("document.getElementById('theme').click()")
    assert background() == "rgb(255, 255, 255)"
    assert turned() == "none"
    for dark in (True, False):
        opened(browser, cliff_page, dark=dark)
        page, text, dot, noisy, quiet, bad = colors(browser)
        assert contrast(page, text) > 7
        assert contrast(page, quiet) > 4.5
        assert contrast(page, bad) > 4.5
        assert contrast(noisy, dot) > 4.5  # dots are seen in both


def test_a_printed_page_is_light(browser, cliff_page):
    opened(browser, cliff_page, dark=True)
    features = [{"name": "prefers-color-scheme", "value": "dark"}]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print", "features": features})
    seen = browser.execute_script(
        "const of = (s) => getComputedStyle(document.querySelector(s));"
        "return [of('body').backgroundColor, of('img.drawn').filter, of('.controls').display]"
    )
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})
    assert seen == ["rgb(255, 255, 255)", "none", "none"]


def test_a_legend_hides_an_action_in_every_panel(browser, cliff_page):
    opened(browser, cliff_page)
    show_everything(browser)
    browser.execute_script("document.querySelector('.legend .key').click()")
    for panel in range(3):
        assert set(curves(browser, panel)) == set(ACTION_NAMES[1:])


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_runs_over_the_edge(browser, cliff_page, width):
    opened(browser, cliff_page, width=width)
    wide = browser.execute_script("return document.documentElement.scrollWidth")
    assert wide <= width


def requests(browser):
    found = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [
        m["params"]["request"]["url"] for m in found if m["method"] == "Network.requestWillBeSent"
    ]
    return [url for url in asked if url != "about:blank"]


def test_no_errors_and_no_requests(browser, cliff_page, trained, tmp_path):
    for page in (cliff_page, report(trained, tmp_path / "trained.html")):
        opened(browser, page)
        asked = requests(browser)
        assert asked[0] == page.as_uri()
        assert all(url.startswith("data:") for url in asked[1:]), asked
        assert browser.get_log("browser") == []
        widths = browser.execute_script("return [...document.images].map((i) => i.naturalWidth)")
        assert widths
        assert min(widths) > 100  # every figure is a picture


def test_a_policy_of_the_page_stops_every_request_and_script(browser, cliff_page):
    """The content security policy holds even where a script of a stranger got in."""
    opened(browser, cliff_page)
    blocked = browser.execute_async_script(
        "const done = arguments[0]; let seen = [];"
        "addEventListener('securitypolicyviolation', (e) => seen.push(e.violatedDirective));"
        "const s = document.createElement('script'); s.textContent = 'window.pwned = 1';"
        "document.body.append(s);"
        "const i = new Image(); i.src = 'https://example.invalid/x.png'; document.body.append(i);"
        "setTimeout(() => done([seen, window.pwned === undefined]), 300)"
    )
    assert blocked[1]
    assert any("script" in directive for directive in blocked[0])
    assert any("img" in directive for directive in blocked[0])


def test_hostile_files_stay_text_and_pictures(browser, tmp_path):
    """Tags in a file's column names are never elements, and a stored figure runs nothing."""
    evil = ["<script>window.pwned=1</script>", '<img src=x onerror="window.pwned=1">',
            '<a href="https://example.invalid">click</a>']  # fmt: skip
    rows = np.random.default_rng(0).normal(size=(40, 3))
    body = "\n".join(",".join(map(str, row)) for row in rows)
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in evil)
    (tmp_path / "returns.csv").write_text(f"{quoted}\n{body}\n")
    compare_file(tmp_path / "returns.csv", out=tmp_path / "out", resamples=50)
    stored = tmp_path / "out" / "figures" / "comparison.svg"
    script = "<script>window.pwned=1;top.pwned=1</script><image href='https://example.invalid/x'/>"
    stored.write_text(stored.read_text().replace("<defs>", f"{script}<defs>", 1))
    opened(browser, report(tmp_path / "out"))
    assert browser.execute_script("return window.pwned") is None
    assert texts(browser, "table.numbers td:first-child") == evil
    assert all(url.startswith("data:") for url in requests(browser)[1:])
    assert not browser.execute_script(
        "return document.querySelectorAll('main img:not(.drawn), main a[href^=http]').length"
    )


def test_a_training_run_is_explored(browser, trained, tmp_path):
    import surefoot as sf

    opened(browser, report(trained, tmp_path / "trained.html"))
    assert len(texts(browser, "figure.explorer")) == 2
    browser.execute_script("document.querySelector('figure.explorer').remove()")
    click(browser, NEXT)
    told = sf.load(trained / "agent.safetensors").explain(NEXT)
    assert texts(browser, ".words p") == [*told.words, told.relations]


def test_watched_observations_are_explored_over_the_training(browser, trained, tmp_path):
    opened(browser, report(trained, tmp_path / "trained.html"))
    before = curves(browser, 0), texts(browser, ".explorer tbody td")
    browser.execute_script(
        "const box = document.querySelector(\"select[data-of='after']\");"
        "box.value = 'step 500'; box.dispatchEvent(new Event('change'))"
    )
    assert texts(browser, ".explorer tbody td") != before[1]
    assert texts(browser, ".states.flow button")[0] == "0: start"
