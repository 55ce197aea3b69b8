"""The page: whole in itself, well nested, readable without seeing, and safe with odd names."""

import re
from base64 import b64decode
from html.parser import HTMLParser
from urllib.parse import urlparse
from xml.etree import ElementTree

import numpy as np
import pytest

from paper.report.figures import Line, Panel, Picture
from paper.report.page import VERDICTS, page
from paper.report.section import Finding, Section, Table, panel_table
from swiftem.show.numbers import style_of

ODD = "<script>alert('&')</script> \"x\""
VOID = {"meta", "img", "br", "link", "input", "hr"}


def panel(title):
    line = Line(style_of("em"), np.array([0.0, 1.0]), np.array([[1.0, 2.0]]))
    return Panel(title, ("x", "y"), [line], log="")


def section(name="toy", **options):
    parts = {
        "about": "A toy.\n\nWhat was done.\n\nWhat was set.\n",
        "settings": {"samples": "ten"},
        "findings": [
            Finding("One claim.", True, "it holds", "Quite."),
            Finding("Another claim.", False, "it does not"),
            Finding("Something else.", None, "so it is", source="Others 2020"),
        ],
        "pictures": [Picture("toy", "A line", [panel("left"), panel("right")])],
        "tables": [Table("Numbers", {"epoch": ["0", "1"], "EM": ["1.0", "0.5"]})],
    }
    return Section(name, **{**parts, **options})


def make(*sections, **options):
    return page("A page.\n\nA lead.\n", sections, **{"facts": {"command": "paper", "Python": "3"}, **options})


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
    return make(section(), section("second"))


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
    alts = [image["alt"] for image in Reader(whole).all("img")]
    assert alts == ["y left, at the end: EM 2", "y right, at the end: EM 2"] * 2


def test_an_interruption_is_shown():
    assert "Interrupted: only complete results are shown." in make(section(), interrupted=True)
    assert "Interrupted" not in make(section())


def test_the_same_sections_are_the_same_page(whole):
    assert whole == make(section(), section("second"))


def test_links_lead_to_their_sections(whole):
    reader = Reader(whole)
    assert {link["href"] for link in reader.all("a")} == {"#toy", "#second"}
    assert [found["id"] for found in reader.all("section")] == ["toy", "second"]


def test_everything_is_shown(whole):
    text = " ".join(Reader(whole).text)
    for words in (
        *("A page", "A lead.", "A toy", "What was done.", "A line", "left", "Numbers", *VERDICTS.values()),
        *(
            "What was set.",
            "One claim.",
            "It does not.",
            "Quite.",
            "0.5",
            "samples",
            "ten",
            "toy.csv",
            "paper",
            "Python",
        ),
    ):
        assert words in text


def test_claims_of_the_paper_and_of_others_are_counted_apart(whole):
    text = " ".join(Reader(whole).text)
    assert "Of the paper’s 4 claims, 2 agree with the measurements." in text
    assert "Of Others 2020’s 2 claims, 0 agree with the measurements, 2 undecided." in text


def test_the_papers_figures_come_first():
    html = make(section("gmm-precision"), section("gmm-scaling"), section("plsa"), section("theory"))
    places = [html.index(words) for words in ("Figure 1", "Figure 2", 'class="claims"', "<nav>", "<section")]
    assert places == sorted(places)
    figures = Reader(html[html.index("<h1") : html.index('<div class="claims')] + "").all("img")
    assert len(figures) == 3


def test_tables_are_folded_and_without_what_was_never_reached():
    some = Table("Some", {"": ["a", "b"], "x": ["1", "–"], "y": ["–", "–"], "z": ["2", "–"]})
    reader = Reader(make(section(pictures=[], tables=[some, Table("None", {"": ["a"], "x": ["–"]})])))
    assert len(reader.all("details")) == 2  # the first table, and the settings
    text = " ".join(reader.text)
    assert "None" not in text
    assert "–" not in text
    assert [head.get("scope") for head in reader.all("th")][:4] == ["col", "col", "col", "row"]


def test_the_numbers_of_a_figure_are_a_table_unless_its_lines_have_places_of_their_own():
    def titles(*panels):
        return [
            table.title for table in section(pictures=[Picture("p", "P", panels)], tables=[]).all_tables()
        ]

    line = Line(style_of("em"), np.arange(61.0), np.arange(122.0).reshape(2, 61))
    apart = panel("apart")._replace(lines=[line, line._replace(x=line.x + 0.5)])
    assert titles(panel("against epochs"), apart) == ["P: against epochs"]
    part = Line(style_of("sem"), np.arange(3.0), np.ones((1, 3)))
    rows = panel_table("P", Panel("many", ("epochs (of n)", "y"), [line, part])).known()
    assert rows[0] == ("epochs", "EM", "sEM")
    assert [row[0] for row in rows[1:]] == ["0", "1", "2", "5", "10", "20", "50", "60"]
    assert rows[2] == ("1", "32", "1")  # medians of the runs
    assert rows[-1] == ("60", "90", "–")


def test_markup_in_names_is_shown_as_text():
    odd = section(
        ODD,
        about=f"{ODD}\n\n{ODD}\n\n{ODD}",
        settings={ODD: ODD},
        findings=[Finding(ODD, True, ODD, ODD)],
        pictures=[Picture("odd", ODD, [panel(ODD)])],
        tables=[Table(ODD, {ODD: [ODD]})],
    )
    html = page(f"{ODD}\n\n{ODD}", [odd], facts={ODD: ODD})
    reader = Reader(html)
    assert not reader.all("script")
    assert "<script" not in html
    assert ODD in reader.all("img")[0]["alt"]
    assert sum(text.count(ODD) for text in reader.text) >= 14


def test_nothing_to_compare():
    html = make(section(findings=[]))
    Reader(html)
    assert "Nothing was complete enough to be compared with the paper." in html
