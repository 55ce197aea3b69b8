r"""What a fit of a mixture does: its parameters and a few facts about the data become one specification.

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

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from swiftem.core.checks import check_real
from swiftem.core.schedules import StepSize, power
from swiftem.fit.stopping import MOST_PASSES, MULTIPLE
from swiftem.methods import EM, METHODS, Accelerated, Method, OnlineEM
from swiftem.methods.accelerated import Acceleration, Squarem
from swiftem.mixture.starts.find_starts import KindOfStart
from swiftem.mixture.starts.settings import RaceSettings

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
AFTER_SAMPLE = 1.0
"""As ``MULTIPLE``, after a race on a sample of the rows: its optimum is close to the optimum of all rows,
first passes gain little, and further ones with larger steps are cheaper than a stochastic method."""


def kernels_for(n: int, size: int) -> str:
    """Return the kernels for passes over n rows, with statistics of length ``size``.

    >>> kernels_for(10_000, 12), kernels_for(1_000_000, 12)
    ('numpy', 'auto')
    """
    return "numpy" if n * size <= SMALL else "auto"


class Facts(NamedTuple):
    """What a fit depends on beside the parameters.

    Attributes
    ----------
    samples, rows : int
        Number of samples and of rows; a sample is a row, or a unit of rows that a worker of a cluster reads.
    size : int
        Length of the statistics.
    start : KindOfStart or "warm"
        How the fit starts.
    is_free : bool
        Whether the library chooses the start.
    device : str or None
        Kernels of a device that is not the CPU.
    """

    samples: int
    rows: int
    size: int
    start: KindOfStart | Literal["warm"]
    is_free: bool = True
    device: str | None = None


@dataclass(frozen=True)
class MixtureSpec:
    """The specification of a fit.

    Attributes
    ----------
    name : str
        The method's name; never ``"auto"``.
    method : Method or None
        The stochastic method; None for em.
    first : Method or None
        sem, for one pass before the method from a poor start, or None.
    acceleration : Acceleration or None
        Larger steps of em.
    kernels : str
        The kernels of the passes.
    max_passes, tol : int and float
        When to stop: the passes, and the gain of em per pass
        (see :class:`swiftem.fit.stopping.Remaining`).
    multiple : float
        Maximum remaining gain of a converged fit, in units of ``tol``.
    looks_ahead : bool
        Whether em makes further passes to find out if it has converged: not from a given or named start,
        whose trajectory is scikit-learn's.
    """

    name: str
    method: Method | None
    first: Method | None
    acceleration: Acceleration | None
    kernels: str
    max_passes: int
    tol: float
    multiple: float
    looks_ahead: bool

    @property
    def for_run(self) -> Method:
        """The method as :func:`swiftem.run` takes it."""
        if self.method is not None:
            return self.method
        return BATCH_EM if self.acceleration is None else Accelerated(BATCH_EM, self.acceleration)


def resolve(parameters: Mapping[str, Any], facts: Facts) -> MixtureSpec:
    """Return the specification of a fit.

    Parameters
    ----------
    parameters : mapping
        The parameters of a mixture: ``n_components``, ``method``, ``max_iter`` and ``tol``.
    facts : Facts
        The data and the start.

    Examples
    --------
    >>> from swiftem import GaussianMixture
    >>> resolve(GaussianMixture(3).get_params(), Facts(1000, 1000, 18, "few")).name
    'em'
    >>> resolve(GaussianMixture(16).get_params(), Facts(500_000, 500_000, 720, "named")).name
    'sem-vr'
    """
    given, multiple = parameters["method"], MULTIPLE
    if isinstance(given, str):
        is_sampled = facts.start == "race" and facts.rows > RaceSettings.sample and facts.device is None
        if given != "auto":
            given = METHODS[given]()
        elif is_sampled:
            given, multiple = Accelerated(BATCH_EM, Squarem()), AFTER_SAMPLE
        else:
            given = METHODS["sem-vr" if _is_sem_vr_worth_it(parameters["n_components"], facts) else "em"]()
    scheme = given.scheme if isinstance(given, Accelerated) and isinstance(given.method, EM) else None
    is_em = scheme is not None or isinstance(given, EM)
    method, first = (None, None) if is_em else _stochastic(given, facts)
    return MixtureSpec(
        name="em" if is_em else given.name,
        method=method,
        first=first,
        acceleration=scheme,
        kernels=facts.device or (kernels_for(facts.rows, facts.size) if is_em else "auto"),
        max_passes=min(int(parameters["max_iter"]), MOST_PASSES),
        tol=check_real("tol", parameters["tol"], minimum=0.0),
        multiple=multiple,
        looks_ahead=facts.is_free,
    )


def _is_sem_vr_worth_it(n_components: int, facts: Facts) -> bool:
    """Return whether "auto" is sem-vr.

    It is em after a race, which ends close to an optimum; on a device; for units, as a batch of few of them
    would leave workers without work; and for one component, which needs no iterations.
    """
    if facts.start == "race" or facts.device is not None or facts.samples < facts.rows or n_components == 1:
        return False
    is_small = kernels_for(facts.rows, facts.size) == "numpy"
    return not is_small and facts.samples / (NOISE * facts.size) >= WORTH


def _stochastic(given: Method, facts: Facts) -> tuple[Method, Method | None]:
    """Return a method with all of its fields, and the method of the first pass.

    Fields that a method object leaves out are chosen for the data, as for its name.
    """
    n, per_sample = facts.samples, facts.rows / facts.samples
    needed = NOISE * facts.size / per_sample
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
    return chosen, first if is_open and n >= needed and not is_sem else None


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
