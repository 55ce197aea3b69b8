r"""The choice of method, batch size and step size for a mixture, if the user leaves it open.

The rule was chosen with ``benchmarks/mixture_fit.py``. With p numbers to estimate per component, an epoch of
a variance-reduced method with the step below does the work of n / (40·M·p) iterations of em: noise allows no
more. ``"auto"`` is ``"em"`` if that is under 4, and ``"sem-vr"`` above. The rule uses sizes only: data of the
same shape get the same method.

Small problems are fitted without compiled code: with statistics of length q, slightly more than M·p, passes
of em use NumPy if n·q is at most 262,144 (10,000 rows of two columns, up to four full covariances), and
``"auto"`` is then ``"em"``. A first fit would otherwise wait for the compiler, a thousand times as long as
the fit takes. The rule uses sizes only, not what was compiled before: the same data always give the same
bits. Up to this size a pass in NumPy takes 1.2 (M = 2) to 1.5 times (M = 4) as long as a compiled one, at
most 0.3 ms more; a fit takes as long as before, as most of it is the start and M-steps. After a race
``"auto"`` is ``"em"`` too, as few passes are left. If there are more rows than the sample of the race has
(:mod:`swiftem.mixture.starts.sample_of_rows`), em is accelerated by SQUAREM: three to ten passes, where
``"sem-vr"`` takes the time of 7 to 11.

If n is at least 40·M·p the stochastic methods begin with one pass of sem, with step (k + 30)^(−0.6): nothing
is faster at first. The variance-reduced methods correct a full pass at the start, which is of little use if
the start is poor. In the eight problems on which it was chosen among ten starts the result is no worse; in
the benchmark one seed of five ends in a poorer optimum than em's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from swiftem.core.schedules import StepSize, power
from swiftem.methods import EM, METHODS, Accelerated, Method, OnlineEM
from swiftem.methods.accelerated import Acceleration

__all__ = ["METHOD_NAMES", "SMALL", "Plan", "iterations_in", "kernels_for", "make_plan"]

METHOD_NAMES = ("auto", *METHODS)
BATCH_EM = EM()
SMALL = 1 << 18
"""Numbers in the statistics of all samples, n·q, up to which passes use NumPy, and "auto" is em."""
NOISE = 40.0
"""Samples per estimated number of a component that a step of γ = 1 would need."""
WORTH = 4.0
""""auto" uses a stochastic method if an epoch does the work of at least this many iterations of em."""
LARGEST_STEP = 0.3
LEAST_ITERATIONS = 200
"""Minimum number of iterations per epoch, if the batch size is "auto" and n allows it."""
LEAST_BATCH, LARGEST_BATCH = 16, 1024
UNIT_ITERATIONS = 32
"""Approximate number of iterations per epoch over units: each is a round of the cluster."""
FIRST_STEP = power(1.0, 0.6, 30.0)
FIRST_BATCH = 512
EPOCHS = 64
"""Epochs between full passes that are counted one by one; later ones are assumed to be alike."""


def kernels_for(n: int, size: int) -> str:
    """Return the kernels for passes over n rows, with statistics of length ``size``.

    >>> kernels_for(10_000, 12), kernels_for(1_000_000, 12)
    ('numpy', 'auto')
    """
    return "numpy" if n * size <= SMALL else "auto"


@dataclass(frozen=True)
class Plan:
    """The chosen method.

    Attributes
    ----------
    name : str
        The method's name; never ``"auto"``.
    method : Method or None
        None for em, which has its own loop.
    start : Method or None
        sem, for one pass before the method, or None.
    acceleration : Acceleration or None
        That of em.
    """

    name: str
    method: Method | None
    start: Method | None
    acceleration: Acceleration | None = None

    @property
    def for_run(self) -> Method:
        """The method as :func:`swiftem.run` takes it."""
        if self.method is not None:
            return self.method
        return BATCH_EM if self.acceleration is None else Accelerated(BATCH_EM, self.acceleration)


def make_plan(method: str | Method, *, n: int, n_components: int, size: int, per_sample: float = 1.0) -> Plan:
    """Return the plan for n samples and statistics of length ``size``.

    Fields that a method object leaves out are chosen for the data, as for its name. A sample is a row, or a
    unit of ``per_sample`` rows. "auto" is em for units: a batch of few of them would leave workers without
    work.

    >>> make_plan("auto", n=1000, n_components=3, size=18).name
    'em'
    >>> make_plan("auto", n=500_000, n_components=16, size=720).name
    'sem-vr'
    """
    needed = NOISE * size / per_sample
    if isinstance(method, str) and method == "auto":
        # One component needs no iterations: em ends after one.
        is_worth_it = n_components > 1 and n / needed >= WORTH and kernels_for(n, size) == "auto"
        method = "sem-vr" if is_worth_it and per_sample == 1.0 else "em"
    given = METHODS[method]() if isinstance(method, str) else method
    if isinstance(given, Accelerated) and isinstance(given.method, EM):
        return Plan("em", None, None, given.scheme)
    if isinstance(given, EM):
        return Plan("em", None, None)
    b = min(n, max(LEAST_BATCH, min(LARGEST_BATCH, n // LEAST_ITERATIONS)))
    if per_sample > 1.0:
        b = max(1, n // UNIT_ITERATIONS)
    b = given.resolved(batch_size=b).batch_size
    # At least b/n: one iteration of em per epoch, and as stable as em.
    step: StepSize = min(LARGEST_STEP, max(b / n, b / needed))
    is_sem = given.name == "sem"
    chosen = given.resolved(
        batch_size=b,
        step_size=FIRST_STEP if is_sem else step,
        memory_dtype="float32",
        memory_order="shuffled",
    )
    is_open = not given.left_out.isdisjoint(("step_size", "batch_size"))
    first = OnlineEM(step_size=FIRST_STEP, batch_size=min(b, FIRST_BATCH))
    return Plan(given.name, chosen, first if is_open and n >= needed and not is_sem else None)


def iterations_in(method: Method, n: int, passes: float, s_is_given: bool) -> int:
    """Return how many iterations of a method fit into a number of passes over n rows, its first included.

    >>> from swiftem.methods import VarianceReducedEM
    >>> method = VarianceReducedEM(step_size=0.1, batch_size=10)
    >>> iterations_in(method, 1000, 3.0, s_is_given=True), iterations_in(method, 1000, 3.0, s_is_given=False)
    (100, 50)
    """
    left = max(0, round(passes * n) - (0 if s_is_given and not method.remembers else n))
    each = method.batch_size * method.evaluations
    begins: list[int] = []
    while len(begins) <= EPOCHS:
        following = method.renewal(begins[-1] + 1 if begins else 0, n)
        if following is None:
            break
        begins.append(following)
    done = min(left // each, begins[0]) if begins else left // each
    left -= each * done
    if len(begins) > EPOCHS:
        length = begins[-1] - begins[0]
        times, left = divmod(left, EPOCHS * n + each * length)
        done += times * length
    elif begins:  # there are no more full passes
        begins.append(begins[-1] + left)
    for begin, end in pairwise(begins):
        more = min(max(0, left - n) // each, end - begin)
        done, left = done + more, left - n - each * more
    return done
