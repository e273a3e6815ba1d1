"""Small runs, made once, and a real browser to open their pages in."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from tiny import TABLE

from surefoot.report import report
from surefoot.report.page import Page
from surefoot.report.sources import page_of
from surefoot.runs.directory import RunDir

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--window-size=1280,1000",
)  # fmt: skip


@pytest.fixture(scope="session")
def cliff(tmp_path_factory) -> Path:
    """The risky cliff in a few episodes, as the experiment itself writes it (slow)."""
    from surefoot.paper import risky_cliff
    from surefoot.paper.risky_cliff import RiskyCliffConfig

    out = tmp_path_factory.mktemp("runs") / "risky-cliff"
    config = RiskyCliffConfig(
        trials=2, episodes=12, losses=("wgf-mixture",), policies=("greedy", "ssd"), checks=(),
        tolerances=(), last=5, horizon=60, engine="serial",
    )  # fmt: skip
    risky_cliff.run(config, out)
    return out


@pytest.fixture(scope="session")
def cliff_page(cliff, tmp_path_factory) -> Path:
    return report(cliff, tmp_path_factory.mktemp("pages") / "cliff.html")


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> Path:
    """A tabular training with its logs, written as `surefoot train` writes them."""
    import surefoot as sf

    out = tmp_path_factory.mktemp("trained") / "cliff"
    config = {"env": "surefoot/RiskyCliff-v0", "seed": 0, "watch": ["start"], "evaluation": "ssd"}
    run = RunDir.create(out, config, kind="training", seeds=0, command=["surefoot", "train"])
    # A table that has not learned anything shows as well as one that has, and compiles nothing.
    agent = sf.TabularAgent("surefoot/RiskyCliff-v0", **TABLE, initial_std=1.0, seed=0)
    agent.save(out / "agent.safetensors")
    rows = [f"{40 * i},{i},{-100.0 + i},{40 - i % 7}" for i in range(1, 30)]
    (out / "episodes.csv").write_text("\n".join(["step,episode,return,length", *rows, "1200,3"]))
    rows = [f"{500 * i},{k},{-50.0 + i * k}" for i in (1, 2, 3) for k in range(3)]
    (out / "evaluations.csv").write_text("\n".join(["step,episode,return", *rows]))
    z = np.sort(np.random.default_rng(0).normal(size=(3, 1, 4, 4)))
    rows = [f"{500 * (t + 1)},{s},{a},{n},{v}" for (t, s, a, n), v in np.ndenumerate(z)]
    text = "\n".join(["step,state,action,particle,value", *rows, "2000,0,0"])
    (out / "distributions.csv").write_text(text)
    run.write_summary({"evaluation_return": {"mean": 1, "low": 0, "high": 2, "n": 3}})
    run.mark_complete()
    return out


@pytest.fixture(scope="session")
def trained_page(trained) -> Page:
    return page_of(trained)


@pytest.fixture(scope="session")
def browser() -> Iterator:
    """Debian's Chromium, driven through its own driver, without a network."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium or chromedriver is missing: apt-get install chromium chromium-driver")
    options, profile = webdriver.ChromeOptions(), tempfile.mkdtemp()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=DRIVER)
    driver = webdriver.Chrome(options=options, service=service)
    driver.set_script_timeout(60)
    yield driver
    driver.quit()
    shutil.rmtree(profile, ignore_errors=True)
