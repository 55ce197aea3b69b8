"""The rows of the experiment on the theory."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["TheoryRow"]


class TheoryRow(NamedTuple):
    r"""One run, or one step size.

    Attributes
    ----------
    part : {"theorem", "practice", "step", "local"}
        A run with the theorem's step; one with the library's default step; only the theorem's step, for the
        usual penalty; or fiem's convergence near its limit.
    method : str
        As users write it; of ``"local"`` with the step, as in ``"fiem 1/n"``.
    n, run : int
        Size of the sample, and which draws.
    gamma : float
        Step; of iem 1.
    n_iter : int
        K_max.
    at_start : float
        :math:`\|\nabla V(\hat s^{(0)})\|^2`, of iem :math:`\|\nabla\overline{\mathcal L}(\theta^{(0)})\|^2`.
    measured : float
        The mean of the same over K; of ``"practice"`` after the last iteration alone; of ``"local"`` δ of
        the fitted :math:`(1-\delta)^k`.
    right_side : float
        Of the theorem, with this run's decrease; of ``"local"`` δ of the proposition. NaN where there is
        none.
    kind : {"bound", "estimate", ""}
        What ``right_side``, or the step of ``"step"``, is.
    inside : bool
        Whether the run was checked to be where the theorem speaks, all the way.

    Examples
    --------
    >>> TheoryRow("local", "fiem 1/n", 100, 0, 0.01, 1500, 0.0, 0.0136, float("nan"), "", True).measured
    0.0136
    """

    part: str
    method: str
    n: int
    run: int
    gamma: float
    n_iter: int
    at_start: float
    measured: float
    right_side: float
    kind: str
    inside: bool
