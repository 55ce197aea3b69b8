"""Every method has a name and a look of its own."""

from swiftem.report.method_names import OTHER, STYLES, style_of
from swiftem.theory.experiments.gmm_precision import precision_methods
from swiftem.theory.experiments.gmm_scaling import SETTINGS


def test_all_methods_of_the_experiments_have_a_style():
    shown = {
        *precision_methods(),
        *(name for setting in SETTINGS.values() for name in setting.methods),
    }
    assert shown == set(STYLES)


def test_those_that_are_drawn_together_differ():
    for names in (list(precision_methods()), *(setting.methods for setting in SETTINGS.values())):
        assert len({style_of(name).label for name in names}) == len(names)
        assert len({style_of(name).colour for name in names}) == len(names)


def test_a_method_that_is_not_the_papers_keeps_its_name():
    assert style_of("mine").label == "mine"
    assert style_of("mine").colour == OTHER
    assert OTHER not in {style.colour for style in STYLES.values()}
