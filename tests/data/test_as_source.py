import helpers
import numpy as np
import pytest
import scipy.sparse as sp

from swiftem.data import ArraySource, CountSource, Source, TokenSource, as_source


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        ([1.0, 2.0], ArraySource),
        (np.ones((3, 2)), ArraySource),
        ([[1, 2], [3, 4]], ArraySource),
        (sp.csr_array([[1, 2]]), CountSource),
        (sp.csr_matrix([[1, 2]]), CountSource),
        (sp.coo_matrix([[1, 2]]), CountSource),
        (sp.dok_array(np.array([[1, 2]])), CountSource),
        (([0, 1], [1, 0]), TokenSource),
        ((np.array([0, 1]), [1, 0]), TokenSource),
    ],
)
def test_kinds(data, kind):
    source = as_source(data)
    assert type(source) is kind
    assert isinstance(source, Source)


@pytest.mark.parametrize(
    "source", [ArraySource([1.0]), CountSource(sp.csr_array([[1]])), helpers.SequentialSource([1.0])]
)
def test_a_source_is_returned_as_it_is(source):
    assert as_source(source) is source


def test_sample_weight_is_passed_on():
    for data, total in [([1.0, 2.0], 3.0), (sp.csr_array([[2], [1]]), 4.0), (([0, 1], [1, 0]), 3.0)]:
        assert as_source(data, [1.0, 2.0]).total_weight == total
