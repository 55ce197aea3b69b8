"""What the tests of the report share."""

import pytest

from paper.reports.figures import panel_svg


def check(section, *, draw=False):
    """What must hold of every section: its words hold no number that is none, and it can be drawn."""
    texts = [section.lead, *section.experiment.settings.values()]
    for finding in section.findings:
        texts += finding
    for picture in section.pictures:
        texts += [picture.title, picture.alt, *(panel.title for panel in picture.panels)]
        assert len({panel.title for panel in picture.panels}) == len(picture.panels)
        for panel in picture.panels if draw else ():
            assert panel_svg(panel).startswith(b"<?xml")
    for table in section.tables:
        texts += [table.title, *table.head, *(cell for row in table.rows for cell in row)]
        assert {len(row) for row in table.rows} == {len(table.head)}
    for text in texts:
        words = text.lower().replace("(", " ").replace(",", " ").split()
        assert not {"nan", "inf", "-inf", "none.", "1 epochs"} & set(words), text
        assert "e+" not in text, text
    names = [picture.name for picture in section.pictures]
    assert len(set(names)) == len(names)
    return section


@pytest.fixture(name="check")
def check_fixture():
    """Return the function: it checks a section and returns it."""
    return check
