"""scikit-learn's checks of any estimator, for every method."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

import swiftem
from swiftem.mixture.resolve import METHOD_NAMES


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("method", METHOD_NAMES)
def test_check_estimator(method):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(swiftem.GaussianMixture(method=method), on_fail=None, on_skip=None)
    failed = [(check["check_name"], check["exception"]) for check in found if check["status"] == "failed"]
    assert failed == []
    assert sum(check["status"] == "passed" for check in found) >= 40
