"""The page: whole in itself, well nested, readable without seeing, and safe with odd names."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from urllib.parse import urlparse
from xml.etree import ElementTree

import pytest

from paper.experiments.experiment import Experiment
from paper.reports.figures import plain_axes
from paper.reports.page import VERDICTS, page
from paper.reports.section import Finding, Panel, Picture, Section, Table

ODD = "<script>alert('&')</script> \"x\""
VOID = {"meta", "img", "br", "link", "input", "hr"}


def draw(axes):
    plain_axes(axes, x="x", y="y")
    axes.plot([0, 1], [0, 1])


PANELS = [Panel("left", draw), Panel("right", draw)]


def section(name="toy", settings=None, rows=("a row",), interrupted=False, **options):
    return Section(Experiment(name, settings or {"samples": "ten"}, rows, interrupted), **{
        "title": "A toy",
        "lead": "What was done.",
        "findings": [
            Finding("One claim.", "agrees", "It holds.", "brief"),
            Finding("Another claim.", "disagrees", "It does not.", "brief"),
            Finding("Something else.", "open", "So it is.", "brief", "Others 2020"),
        ],
        "pictures": [Picture("toy", "A line", "A line that rises", PANELS)],
        "tables": [Table("Numbers", ["epoch", "EM"], [["0", "1.0"], ["1", "0.5"]])],
        **options,
    })  # fmt: skip


def make(*sections, **options):
    return page("A page", "A lead.", sections, **{"command": "paper", "facts": {"Python": "3"}, **options})


class Reader(HTMLParser):
    """Checks that elements are closed in the order in which they were opened, and keeps what was there."""

    def __init__(self, html):
        super().__init__()
        self.open, self.elements, self.text = [], [], []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        assert len(dict(attributes)) == len(attributes), "an attribute twice"
        self.elements.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] != "style":
            self.text.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def whole():
    return make(section(), section(name="second", title="Second"))


def test_elements_are_nested(whole):
    reader = Reader(whole)
    assert whole.startswith("<!doctype html>")
    assert reader.all("html") == [{"lang": "en"}]
    assert {"charset": "utf-8"} in reader.all("meta")
    assert any(meta.get("name") == "viewport" for meta in reader.all("meta"))


def test_nothing_comes_from_outside(whole):
    reader = Reader(whole)
    assert not reader.all("script")
    assert not reader.all("link")
    for tag, attributes in reader.elements:
        for name in ("src", "href", "srcset", "action", "data", "poster", "background"):
            address = attributes.get(name, "")
            assert address == "" or address.startswith("#") or urlparse(address).scheme == "data", (
                tag,
                address,
            )
    without_pictures = re.sub(r"base64,[^\"]*", "", whole)
    assert not re.search(r"https?:|//|@import|url\(", without_pictures)


def test_pictures_hold_nothing_from_outside(whole):
    images = [image["src"] for image in Reader(whole).all("img")]
    assert len(images) == 4
    for source in images:
        head, content = source.split(",", 1)
        assert head == "data:image/svg+xml;base64"
        tree = ElementTree.fromstring(b64decode(content))
        for element in tree.iter():
            for name, value in element.attrib.items():
                if name.endswith(("href", "src")):
                    assert value.startswith("#")


def test_every_picture_says_what_it_shows(whole):
    assert [image["alt"] for image in Reader(whole).all("img")] == [
        "A line that rises (left)", "A line that rises (right)",
    ] * 2  # fmt: skip


def test_an_interruption_is_shown():
    assert "Interrupted: only complete results are shown." in make(section(interrupted=True))
    assert "Interrupted" not in make(section())


def test_the_same_sections_are_the_same_page(whole):
    assert whole == make(section(), section(name="second", title="Second"))


def test_links_lead_to_their_sections(whole):
    reader = Reader(whole)
    assert {link["href"] for link in reader.all("a")} == {"#toy", "#second"}
    assert [found["id"] for found in reader.all("section")] == ["toy", "second"]


def test_everything_is_shown(whole):
    text = " ".join(Reader(whole).text)
    for words in (
        *("A page", "A lead.", "A toy", "What was done.", "A line", "left", "Numbers", *VERDICTS.values()),
        *("One claim.", "It does not.", "0.5", "samples", "ten", "toy.csv", "paper", "Python"),
    ):
        assert words in text


def test_claims_of_the_paper_and_of_others_are_counted_apart(whole):
    text = " ".join(Reader(whole).text)
    assert "Of the paper’s 4 claims, 2 agree with the measurements." in text
    assert "Of 2 claims of Others 2020, 0 agree with the measurements, 2 undecided." in text


def test_the_papers_figures_come_first():
    html = make(section("gmm-precision"), section("gmm-scaling"), section("plsa"), section("theory"))
    places = [html.index(words) for words in ("Figure 1", "Figure 2", 'class="claims"', "<nav>", "<section")]
    assert places == sorted(places)
    figures = Reader(html[html.index("<h1") : html.index('<div class="claims')] + "").all("img")
    assert len(figures) == 3


def test_tables_are_folded_and_without_what_was_never_reached():
    rows = [["a", "1", "–", "2"], ["b", "–", "–", "–"]]
    reader = Reader(
        make(
            section(tables=[Table("Some", ["", "x", "y", "z"], rows), Table("None", ["", "x"], [["a", "–"]])])
        )
    )
    assert len(reader.all("details")) == 2  # the first table, and the settings
    text = " ".join(reader.text)
    assert "None" not in text
    assert "–" not in text
    assert [head.get("scope") for head in reader.all("th")][:4] == ["col", "col", "col", "row"]


def test_markup_in_names_is_shown_as_text():
    odd = section(
        name=ODD, title=ODD, lead=ODD, settings={ODD: ODD},
        findings=[Finding(ODD, "agrees", ODD, ODD)],
        pictures=[Picture("odd", ODD, ODD, [Panel(ODD, draw)])],
        tables=[Table(ODD, [ODD, ODD], [[ODD, ODD]])],
    )  # fmt: skip
    html = page(ODD, ODD, [odd], command=ODD, facts={ODD: ODD})
    reader = Reader(html)
    assert not reader.all("script")
    assert "<script" not in html
    assert reader.all("img")[0]["alt"] == f"{ODD} ({ODD})"
    assert sum(text.count(ODD) for text in reader.text) >= 14


def test_a_section_without_anything():
    html = make(Section(Experiment("toy", {}, (), True), "A toy", "Nothing was done."))
    Reader(html)
    assert "Nothing was complete enough to be compared with the paper." in html
    assert "next to this page" not in html  # there is no file
    assert "Settings" not in html
