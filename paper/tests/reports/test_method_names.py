"""Every method has a name and a look of its own."""

from paper.experiments.gmm_precision import precision_methods
from paper.experiments.gmm_scaling import SETTINGS
from swiftem.methods import METHODS
from swiftem.methods.accelerated import ACCELERATIONS
from swiftem.show.numbers import OTHER, STYLES, style_of

COMPARED = [*METHODS, *(f"em+{name}" for name in ACCELERATIONS)]


def test_all_methods_of_the_experiments_have_a_style():
    shown = {
        *precision_methods(),
        *(name for setting in SETTINGS.values() for name in setting.methods),
        *(f"em+{name}" for name in ACCELERATIONS),
    }
    assert shown == set(STYLES)
    assert OTHER not in {style_of(name).colour for name in METHODS}


def test_those_that_are_drawn_together_differ():
    for names in (list(precision_methods()), COMPARED, *(setting.methods for setting in SETTINGS.values())):
        assert len({style_of(name).label for name in names}) == len(names)
        assert len({style_of(name).colour for name in names}) == len(names)


def test_a_method_that_is_not_the_papers_keeps_its_name():
    assert style_of("mine").label == "mine"
    assert style_of("mine").colour == OTHER
    assert OTHER not in {style.colour for style in STYLES.values()}
