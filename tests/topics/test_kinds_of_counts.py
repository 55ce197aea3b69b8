"""Every kind of counts is fitted, and asked everything, as a CSR matrix of the same numbers."""

import pytest
from combinations import topics as net
from combinations.counts import KINDS

USUAL = {name: values[0] for name, values in (net.OPTIONS | net.DATA).items()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind(kind, tmp_path):
    case = USUAL | {"kind": kind, "method": "em", "empty": "some", "weight": "whole", "max_iter": 4}
    assert not net.run_case(case, 40, tmp_path)
