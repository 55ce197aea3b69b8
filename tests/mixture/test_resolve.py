"""What a fit does: the rules behind "auto", and the fields of methods."""

import pytest
from mixture_data import blobs

import swiftem
from swiftem import methods
from swiftem.fit.stopping import MULTIPLE
from swiftem.methods import EM, OnlineEM, SpiderEM, Squarem, VarianceReducedEM
from swiftem.mixture.resolve import AFTER_SAMPLE, METHOD_NAMES, Facts, iterations_in, kernels_for, resolve
from swiftem.models import GaussianMixtureModel


def spec(method="auto", n=1000, d=2, n_components=3, covariance="full", **facts):
    size = GaussianMixtureModel(n_components, covariance=covariance).size(d)
    parameters = {"n_components": n_components, "method": method, "max_iter": 100, "tol": 1e-3}
    return resolve(parameters, Facts(n, **{"rows": n, "size": size, "start": "named"} | facts))


MANY = {"n": 10**6}
AUTO = {
    "many rows": ("sem-vr", None, MANY),
    "too few for sem-vr": ("em", None, {"n": 20_000, "d": 20, "n_components": 10}),
    "few numbers in all": ("em", None, {"n": 10_000}),
    "one component": ("em", None, MANY | {"n_components": 1}),
    "units of rows": ("em", None, {"n": 10**5, "rows": 10**6}),
    "a device": ("em", None, MANY | {"device": "torch:cuda"}),
    "after a race on all rows": ("em", None, {"n": 20_000, "d": 1, "start": "race"}),
    "after a race on a sample": ("em", Squarem(), MANY | {"start": "race"}),
    "after a race on a sample, a device": ("em", None, MANY | {"start": "race", "device": "torch:cuda"}),
    "after a race of few rows": ("em", None, {"n": 500, "start": "few"}),
    "a start that is given": ("sem-vr", None, MANY | {"start": "given"}),
    "a warm start": ("sem-vr", None, MANY | {"start": "warm"}),
}


@pytest.mark.parametrize("rule", AUTO)
def test_what_auto_means(rule):
    """A row for each rule of docs/which_method.md."""
    name, acceleration, facts = AUTO[rule]
    found = spec(**facts)
    assert (found.name, found.acceleration) == (name, acceleration)
    assert found.multiple == (AFTER_SAMPLE if acceleration else MULTIPLE)
    assert (found.method is None) == (name == "em")


@pytest.mark.parametrize(
    ("kernels", "facts"),
    [
        ("numpy", {"n": 10_000}),
        ("auto", {"n": 10_000, "method": "sem-vr"}),
        ("auto", {"n": 20_000, "d": 20, "n_components": 10}),
        ("torch:cuda", {"n": 10_000, "device": "torch:cuda"}),
        ("torch:cuda", {"n": 10_000, "method": "sem-vr", "device": "torch:cuda"}),
    ],
)
def test_the_kernels_of_the_passes(kernels, facts):
    assert spec(**facts).kernels == kernels


def test_when_to_stop():
    found = spec(is_free=False)
    assert (found.max_passes, found.tol, found.looks_ahead) == (100, 1e-3, False)
    assert spec().looks_ahead


@pytest.mark.parametrize("name", METHOD_NAMES[1:])
@pytest.mark.parametrize("n", [2, 50, 5000, 10**6])
def test_names_and_batches(name, n):
    found = spec(name, n=n)
    assert found.name == name
    if name == "em":
        assert found.method is None
        assert found.first is None
    else:
        assert found.method.name == name
        assert 1 <= found.method.batch_size <= n
    assert found.for_run == (found.method or EM())


@pytest.mark.parametrize("name", METHOD_NAMES[2:])
def test_what_the_user_says_counts_and_the_rest_is_chosen(name):
    kind = methods.METHODS[name]
    found = spec(kind(batch_size=77), n=10**5).method
    chosen = spec(name, n=10**5).method
    assert found.batch_size == 77
    assert found.memory_dtype == chosen.memory_dtype
    if name != "iem":
        schedule = swiftem.schedules.inverse(3, 10)
        given = spec(kind(step_size=schedule), n=10**5).method
        assert (given.step_size, given.batch_size) == (schedule, chosen.batch_size)


def test_the_step_goes_with_the_batch():
    steps = [spec(VarianceReducedEM(batch_size=b), n=10**5).method.step_size for b in (7, 70, 10_000)]
    assert steps == [7 / 720, 70 / 720, 0.3]


def test_a_wrapped_method_is_resolved():
    found = spec(methods.Averaged(OnlineEM(batch_size=9)), n=10**5).method
    assert (found.batch_size, found.method.step_size) == (9, 9 / 720)
    quick = spec(methods.Accelerated(EM(), "anderson"))
    assert (quick.name, quick.method, quick.acceleration) == ("em", None, methods.Anderson())


def test_batches_of_units_are_few():
    assert [spec("sem-vr", n=n, rows=100 * n).method.batch_size for n in (20, 640)] == [1, 20]
    one = spec(VarianceReducedEM(batch_size=1), n=10**4, rows=10**6).method
    assert one.step_size == pytest.approx(100 / 720)


def test_memories_are_float32_and_renewed_in_shuffled_passes():
    assert spec("iem").method.memory_dtype == "float32"
    fiem = spec("fiem").method
    assert (fiem.memory_dtype, fiem.memory_order) == ("float32", "shuffled")


def test_a_pass_of_sem_before_where_there_are_many_rows():
    assert spec("fiem", n=100).first is None
    for name in ("iem", "sem-vr", "fiem"):
        assert isinstance(spec(name, n=10**6).first, OnlineEM)
    assert spec("sem", n=10**6).first is None


def test_a_method_that_leaves_nothing_out_is_taken_as_it_is():
    spider = SpiderEM(step_size=0.1, batch_size=5)
    found = spec(spider, n=10**6)
    assert (found.method, found.first) == (spider, None)
    assert isinstance(spec(SpiderEM(step_size=0.1), n=10**6).first, OnlineEM)
    assert spec(EM()).method is None


@pytest.mark.parametrize(("n", "name"), [(43_690, "em"), (43_691, "sem-vr")], ids=["at", "above"])
def test_the_boundary_of_auto(n, name):
    """2^18 numbers in the statistics of all rows, with 3 for each of two components in one column."""
    X, _ = blobs(n, 1, 2)
    assert swiftem.GaussianMixture(2, random_state=0, tol=1.0, init_params="k-means++").fit(X).method_ == name


def test_the_boundary_of_auto_for_many_components():
    """4 · 40 · M · p rows, where these are more than 2^18 / (M · p)."""
    sizes = {"n_components": 100, "size": 600}
    assert [spec(n=4 * 40 * 600 - less, **sizes).name for less in (1, 0)] == ["em", "sem-vr"]


def test_kernels_depend_on_sizes_alone():
    assert kernels_for(10_000, 24) == "numpy"
    assert [kernels_for(2**17, 2), kernels_for(2**17 + 1, 2)] == ["numpy", "auto"]


class FullPassesAt(VarianceReducedEM):
    """Full passes at these iterations and no more."""

    passes = (0,)

    def renewal(self, k, n):
        return min((at for at in self.passes if at >= k), default=None)


@pytest.mark.parametrize("passes", [(), (0,), (0, 30), (12,), (0, 30, 31, 90), range(0, 9000, 20)])
@pytest.mark.parametrize("budget", [0.0, 0.5, 1.0, 2.5, 4.0, 37.25, 150.0])
def test_iterations_of_a_method_whose_full_passes_end(passes, budget):
    method, n = FullPassesAt(step_size=0.1, batch_size=10), 1000
    method.__class__.passes = passes
    left, k = budget * n, 0
    while left >= (cost := 2 * 10 + n * (k in passes)):
        left, k = left - cost, k + 1
    assert iterations_in(method, n, budget, s_is_given=True) == k


def test_a_fit_by_a_method_whose_full_passes_end():
    y, _ = blobs(800, 2)
    FullPassesAt.passes = (0,)
    fitted = swiftem.GaussianMixture(
        2, method=FullPassesAt(step_size=0.1, batch_size=20), random_state=0
    ).fit(y)
    assert fitted.score(y) > swiftem.GaussianMixture(1).fit(y).score(y)
