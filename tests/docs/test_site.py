"""The site as it is built: strict, from this machine alone, with every public name in it."""

import importlib
import importlib.util
import inspect
import os
import re
import shutil
import subprocess
import sys
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest

import surefoot as sf

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text()
PACKAGES = {path.stem: path.read_text() for path in (ROOT / "docs" / "api").glob("*.md")}
DIRECTIVES = re.findall(r"^::: ([\w.]+)$", "\n".join(PACKAGES.values()), re.MULTILINE)
PUBLIC = [name for name in sf.__all__ if name != "__version__"]
HAS_MKDOCS = subprocess.run([sys.executable, "-c", "import mkdocs, mkdocstrings"]).returncode == 0


def home_of(name: str) -> str:
    """Where a public name is defined: `sf.compare` is `surefoot.comparison.verdicts.compare`."""
    value = getattr(sf, name)
    return value.__name__ if inspect.ismodule(value) else f"{value.__module__}.{value.__qualname__}"


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_in_the_reference(name):
    value, home = getattr(sf, name), home_of(name)
    assert inspect.getdoc(value), f"sf.{name} has no docstring"
    if inspect.ismodule(value):
        assert any(f"{each}.".startswith(f"{home}.") for each in DIRECTIVES)
    else:
        assert home in DIRECTIVES or value.__module__ in DIRECTIVES


@pytest.mark.parametrize("name", DIRECTIVES)
def test_what_the_reference_describes_exists(name):
    try:
        described = importlib.import_module(name)
    except ModuleNotFoundError:
        module, _, member = name.rpartition(".")
        described = getattr(importlib.import_module(module), member)
    assert inspect.getdoc(described), f"{name} has no docstring"


def test_table_of_names_is_complete():
    named = dict(re.findall(r"\[`sf\.(\w+)`\](\S+?)(?=,| \|)", PAGE))
    assert sorted(named) == sorted(PUBLIC)
    for name, target in named.items():
        assert target == f"[{home_of(name)}]" or inspect.ismodule(getattr(sf, name)), name


def test_every_package_has_a_page_of_its_own():
    rooms = {path.parent.name for path in (ROOT / "src" / "surefoot").glob("*/__init__.py")}
    assert set(PACKAGES) == (rooms | {"errors"}) - {"cli"}  # whose page is command-line.md
    for name, text in PACKAGES.items():
        assert f"(api/{name}.md)" in PAGE
        assert all(d.startswith(f"surefoot.{name}") for d in re.findall(r"^::: (\S+)$", text, re.M))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    if not HAS_MKDOCS:
        pytest.skip("mkdocs is not installed: `make docs` installs it")
    made = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-d", str(made)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=quiet)
    assert done.returncode == 0, done.stderr
    return made


@pytest.mark.slow
def test_reference_was_rendered(site):
    *_, packed = (site / "objects.inv").read_bytes().split(b"\n", 4)
    rendered = {line.split(" ")[0] for line in zlib.decompress(packed).decode().splitlines()}
    functions = {n for n in PUBLIC if not inspect.ismodule(getattr(sf, n))}
    assert {home_of(name) for name in functions} <= rendered


@pytest.mark.slow
def test_formulas_are_drawn_by_the_browser_itself(site):
    page = (site / "theory.html").read_text()
    assert page.count("<math") > 100
    assert 'display="block"' in page
    assert page.count("<mo>&#x02AB0;</mo>") > 20  # "dominates", with room on both sides
    assert "<mi>&#x02AB0;</mi>" not in page
    assert not re.search(r"formula-\d+-here|<p>\s*<math[^>]*inline.*?</math>\s*</p>", page)
    text = re.sub(r"<(code|pre|math)\b.*?</\1>", "", page, flags=re.DOTALL)
    assert not re.search(r"\$[^$<]+\$|\\gamma", text)
    assert '<a href="concepts.html" class="md-footer__link' in page  # previous and next


class Loaded(HTMLParser):
    """What a browser fetches for a page without being asked: no links, but all the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "link" and given.get("rel") not in ("canonical", "next", "prev"):
            self.found.append(given.get("href") or "")
        self.found += [given[name] or "" for name in ("src", "srcset", "poster") if name in given]
        assert "mermaid" not in (given.get("class") or ""), "mermaid is fetched from a CDN"


@pytest.mark.slow
def test_site_loads_nothing_from_another_host(site):
    pages = list(site.rglob("*.html"))
    assert len(pages) > 10
    for page in pages:
        reader = Loaded()
        reader.feed(page.read_text())
        remote = [each for each in reader.found if re.match(r"(?:https?:)?//", each)]
        assert not remote, f"{page.relative_to(site)}: {remote}"
        here = [each.split("#")[0].split("?")[0] for each in reader.found]
        missing = [each for each in here if each and not (page.parent / each).exists()]
        # 404.html is served from anywhere, so its paths are absolute.
        assert page.name == "404.html" or not missing, f"{page.relative_to(site)}: {missing}"
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", sheet.read_text())


@pytest.mark.slow
@pytest.mark.browser
def test_search_works_from_disk_without_a_network(site):
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: `make browser` installs it")
    found = subprocess.run(
        [
            *(chromium, "--headless=new", "--no-sandbox", "--disable-gpu"),
            *("--host-resolver-rules=MAP * ~NOTFOUND", "--virtual-time-budget=10000"),
            *("--dump-dom", f"file://{site}/index.html?q=tolerance"),
        ],
        capture_output=True,
        text=True,
        timeout=120,
    )
    number = re.search(r"(\d+) matching documents", found.stdout)
    assert number, found.stderr
    assert int(number[1]) >= 3


@pytest.mark.slow
def test_pictures_are_those_of_the_code(tmp_path):
    """A picture drawn again is the one that is committed, up to rounding of coordinates."""
    subprocess.run([sys.executable, "tools/pictures.py", str(tmp_path)], cwd=ROOT, check=True)
    made = sorted(each.name for each in tmp_path.iterdir())
    kept = sorted(each.name for each in (ROOT / "docs" / "assets").glob("*.svg"))
    if importlib.util.find_spec("skfolio") is None:  # whose prices one of them shows
        kept = [name for name in kept if not name.startswith("real-prices")]
    kept.remove("compare-growth.svg")  # measured by `make bench`, not drawn from the code
    assert made == kept
    for name in made:
        new, old = (shape_of(d / name) for d in (tmp_path, ROOT / "docs" / "assets"))
        close = all(abs(a - b) <= 0.5 for a, b in zip(new[1], old[1], strict=False))
        assert new[0] == old[0], f"{name}: run tools/pictures.py and look at it"
        assert close, f"{name}: run tools/pictures.py and look at it"


def shape_of(picture: Path) -> tuple[str, list[float]]:
    """The words of an SVG file without its hashed ids, and its numbers, in points."""
    text = re.sub(r'(id="|#)[\w-]+', "", picture.read_text())
    number = r"-?\d+(?:\.\d+)?(?:e-?\d+)?"
    return re.sub(number, "", text), [float(each) for each in re.findall(number, text)]
