"""The page opened and clicked in Chromium: it shows what the library computed, loads nothing."""

import json
import time

import jax
import numpy as np
import pytest

from surefoot.agents.explain import explain
from surefoot.envs import ACTION_NAMES
from surefoot.policies import policy_named
from surefoot.report import report

pytestmark = [pytest.mark.browser, pytest.mark.slow]
FORK, NEXT = 24, 25  # above the start, and the cell to its right


def opened(browser, page, *, width=1280, dark=False, whole=False):
    """The page, with its explorer drawn or the whole of it; what was logged is forgotten."""
    size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
    browser.get("about:blank")
    for kind in ("browser", "performance"):
        browser.get_log(kind)
    browser.get(page.as_uri())
    browser.execute_script("try { localStorage.clear() } catch {}")
    until(browser, "return document.body.dataset.ready === 'yes'")
    if whole:
        browser.execute_async_script("surefoot.drawAll().then(arguments[0])")
    else:
        browser.execute_script("document.querySelector('figure').scrollIntoView()")
        until(browser, "return document.querySelector('.plot').data !== undefined")


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
        "const div = document.querySelectorAll('.explorer .plot')[arguments[0]];"
        "return Object.fromEntries(div.data.filter((t) => t.marker && t.mode !== 'lines')"
        ".map((t) => [t.legendgroup, t.y]))",
        panel,
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
    browser.execute_script(
        "for (const box of document.querySelectorAll('.explorer input')) box.click()"
    )  # all actions, curves as they are
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
        pressed = texts(browser, ".states button[aria-pressed='true'] .mark")
        assert pressed == ["↑→↓←"[told.action]]
        seen[state] = found
    assert seen[FORK] != seen[NEXT]


def test_distribution_and_dispersion_are_those_of_the_particles(browser, cliff, cliff_page):
    opened(browser, cliff_page)
    browser.execute_script(
        "for (const box of document.querySelectorAll('.explorer input')) box.click()"
    )
    click(browser, NEXT)
    told = expected(cliff, NEXT)
    cdf, frontier = curves(browser, 0), curves(browser, 2)
    size = told.z.shape[1]
    for a, name in enumerate(ACTION_NAMES):
        np.testing.assert_allclose(cdf[name], [*np.arange(size + 1) / size, 1])
        # F^(2) at a particle by its definition: the mean of what falls short of it.
        short = [np.clip(x - told.z[a], 0, None).mean() for x in told.z[a]]
        np.testing.assert_allclose(frontier[name][1:-1], short, rtol=1e-5, atol=1e-6)


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


def test_dark_and_light(browser, cliff_page):
    def background():
        return browser.execute_script("return getComputedStyle(document.body).backgroundColor")

    def ink():
        return browser.execute_script(
            "return document.querySelector('.plot .xtitle').style.fill"
        )  # fmt: skip

    opened(browser, cliff_page, dark=True)
    dark = background(), ink()
    browser.execute_script("document.getElementById('theme').click()")
    light = background(), ink()
    assert dark[0] == "rgb(20, 23, 27)"
    assert light[0] == "rgb(255, 255, 255)"
    assert dark[1] != light[1]
    opened(browser, cliff_page, dark=False)
    assert background() == light[0]


def test_a_legend_hides_a_curve_in_every_panel(browser, cliff_page):
    opened(browser, cliff_page, whole=True)
    hidden = browser.execute_script(
        "const f = document.querySelector('figure[data-name=falls]');"
        "f.querySelector('.legend button').click();"
        "const name = f.querySelector('.legend button').textContent;"
        "return [...f.querySelectorAll('.plot')].every((d) => d.data.every("
        "(t) => (t.visible === false) === (t.legendgroup === name)))"
    )
    assert hidden


@pytest.mark.parametrize("width", [1280, 400])
def test_nothing_runs_over_the_edge(browser, cliff_page, width):
    opened(browser, cliff_page, width=width, whole=True)
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
        opened(browser, page, whole=True)
        asked = requests(browser)
        assert asked[0] == page.as_uri()
        assert all(url.startswith(("data:", "blob:")) for url in asked[1:]), asked
        assert browser.get_log("browser") == []
        drawn = browser.execute_script(
            "return [...document.querySelectorAll('.plot')].map((d) => d.querySelectorAll('.trace, "
            ".bars, .hm, .violins').length)"
        )
        assert drawn
        assert all(count > 0 for count in drawn)


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


def test_hostile_names_stay_text(browser, tmp_path):
    """Tags in a file's column names, in plotly's texts too, are never elements."""
    evil = ["<script>window.pwned=1</script>", '<img src=x onerror="window.pwned=1">',
            '<a href="https://example.invalid">click</a>']  # fmt: skip
    rows = np.random.default_rng(0).normal(size=(40, 3))
    body = "\n".join(",".join(map(str, row)) for row in rows)
    quoted = ",".join('"' + name.replace('"', '""') + '"' for name in evil)
    (tmp_path / "returns.csv").write_text(f"{quoted}\n{body}\n")
    page = report(tmp_path / "returns.csv")
    opened(browser, page)
    assert browser.execute_script("return window.pwned") is None
    assert texts(browser, ".legend .key") == evil
    assert not browser.execute_script(
        "return document.querySelectorAll('main img, main a[href^=http], svg a').length"
    )


def test_a_training_run_is_explored(browser, trained, tmp_path):
    import surefoot as sf
    from surefoot.agents.opening import explain_agent

    opened(browser, report(trained, tmp_path / "trained.html"))
    agent = sf.load(trained / "agent.safetensors")
    click(browser, NEXT)
    told = explain_agent(agent, NEXT)
    assert texts(browser, ".words p") == [*told.words, told.relations]
    names = texts(browser, "figure.chart h3")
    assert names[0] == "Learning curve"
    assert "Return distributions watched" in names
