"""The built documentation in a browser without a network: no error, no raw TeX, no page too wide.

It is built here (a few minutes), so these tests are slow; ``SWIFTEM_SITE=docs/_build/html`` uses a built one.
"""

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = (
    "index.html", "api/swiftem.GaussianMixture.html", "api/swiftem.methods.FastIncrementalEM.html",
    "gallery/index.html", "gallery/mixture_ellipses.html", "methods.html", "mixtures.html", "benchmarks.html",
)  # fmt: skip
OVERFLOW = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
RAW_TEX = r"\\(frac|theta|hat|bar|sum|mathrm|overline|gamma|bigl|quad)\b|\$\$|\\\(|\\\["
WITHOUT_CODE = """(() => {
  const body = document.body.cloneNode(true);
  body.querySelectorAll('script, style, pre, code, mjx-container').forEach(part => part.remove());
  return body.textContent;
})()"""

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    given = os.environ.get("SWIFTEM_SITE")
    if given:
        return Path(given).resolve()
    for package in ("sphinx", "furo", "myst_parser", "sphinx_design", "sphinx_gallery", "sphinx_copybutton"):
        if find_spec(package) is None:
            pytest.skip(f"{package} is not installed: pip install 'swiftem[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "sphinx", "-W", "-q", str(ROOT / "docs"), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=1800, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("page", PAGES)
def test_pages_need_nothing_else_and_have_no_error(site, browser, page):
    for width in (1280, 400):
        browser.open((site / page).as_uri(), width)
        assert browser.errors == []
        assert [url for url in browser.requests if not url.startswith(("file:", "data:"))] == []
        assert browser.evaluate(OVERFLOW) <= 0, f"wider than {width} px"
        text = browser.evaluate(WITHOUT_CODE)
        assert len(text) > 300
        assert re.findall(RAW_TEX, text) == []


def test_formulas_are_drawn(site, browser):
    browser.open((site / "methods.html").as_uri())
    assert browser.evaluate("document.querySelectorAll('mjx-container svg').length") > 20
    assert browser.evaluate("document.querySelectorAll('mjx-merror, [data-mjx-error]').length") == 0


def test_pictures_are_there(site, browser):
    broken = """Promise.all([...document.images].map(image => {
      image.loading = 'eager';
      return image.decode().then(() => null, () => image.src);
    })).then(found => found.filter(Boolean))"""
    for page, least in (("index.html", 6), ("gallery/index.html", 15)):
        browser.open((site / page).as_uri())
        assert browser.evaluate("document.images.length") >= least
        assert browser.evaluate(broken) == []


def test_every_object_has_a_page(site):
    named = re.findall(r"^   (swiftem[\w.]+)$", (ROOT / "docs" / "api.md").read_text(), flags=re.M)
    assert len(named) > 80
    assert [name for name in named if not (site / "api" / f"{name}.html").exists()] == []


@pytest.mark.parametrize("number", [0, 1])
def test_the_browser_finds_what_is_wrong(browser, tmp_path, number):
    """A page with an error, a missing file and a wide table is not one that these tests would accept."""
    page = tmp_path / "bad.html"
    bad = ("<script>console.error('no')</script><img src='none.png'>", "<div style='width:3000px'>x</div>")[
        number
    ]
    page.write_text(f"<!doctype html><html><body>{bad}</body></html>")
    browser.open(page.as_uri(), 400)
    assert (len(browser.errors) >= 2) == (number == 0)
    assert (browser.evaluate(OVERFLOW) > 0) == (number == 1)
