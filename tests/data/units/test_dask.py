"""Fits on a cluster of real processes: the same bits as here, also when workers die."""

import os
import shutil
import signal
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from cluster_processes import METHODS, NOISE, WORKER, X, assert_same, planned, process, run

import swiftem
from swiftem import methods, models

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="distributed is not installed")
da = pytest.importorskip("dask.array")

pytestmark = NOISE


@pytest.fixture(scope="module")
def cluster():
    """Two workers of one thread each, in processes of their own."""
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, dashboard_address=":0", host="127.0.0.1"
    ) as made:
        yield made


@pytest.mark.parametrize("name", METHODS)
def test_workers_change_no_bit(cluster, name):
    here = run(name, planned())
    with distributed.Client(cluster):
        assert_same(run(name, planned()), here)


def test_run_takes_the_client_that_computes(cluster, tmp_path):
    np.save(tmp_path / "part-0.npy", X)
    model = models.GaussianMixtureModel(2, covariance="full")
    with distributed.Client(cluster, set_as_default=False) as client:
        units = swiftem.data.open_units(tmp_path / "part-*.npy", client=client)
        there = [
            swiftem.run(model, data, methods.EM(), n_iter=3, seed=0, client=client)
            for data in (str(tmp_path / "part-*.npy"), units)
        ]
        tasks = client.run_on_scheduler(lambda dask_scheduler: [str(key) for key in dask_scheduler.tasks])
        assert any("unit" in key or "e-step" in key for key in tasks)
        with pytest.raises(ValueError, match="client must be the client of the units"):
            swiftem.run(model, swiftem.data.open_units(tmp_path / "part-0.npy"), methods.EM(), n_iter=1,
                        client=client)  # fmt: skip
        with pytest.raises(ValueError, match="client must be None unless data are a Dask collection"):
            swiftem.run(model, X, methods.EM(), n_iter=1, client=client)
        with pytest.raises(ValueError, match="sample_weight must be chunked like"):
            swiftem.run(model, units, methods.EM(), n_iter=1, client=client, sample_weight=np.ones(len(X)))
        with pytest.raises(TypeError, match=r"client must be a distributed\.Client"):
            swiftem.run(model, planned(), methods.EM(), n_iter=1, client="tcp://head:8786")
        one = swiftem.run(model, planned(), methods.EM(), n_iter=3, seed=0, client=client)
    here = swiftem.run(
        model, swiftem.data.open_units(tmp_path / "part-*.npy"), methods.EM(), n_iter=3, seed=0
    )
    for found in there:
        assert_same(found, here)
    assert_same(one, swiftem.run(model, planned(), methods.EM(), n_iter=3, seed=0))


def test_an_estimator_on_a_cluster(cluster):
    here = swiftem.GaussianMixture(2, random_state=0).fit(planned())
    with distributed.Client(cluster):
        there = swiftem.GaussianMixture(2, random_state=0).fit(planned())
        assert np.array_equal(there.means_, here.means_)
        labels = there.predict(planned())
        assert isinstance(labels, da.Array)
        assert np.array_equal(labels.compute(), here.predict(X))
        assert there.score(planned()) == pytest.approx(here.score(X), abs=1e-12)
        assert there.bic(planned()) == pytest.approx(here.bic(X), rel=1e-12)


def test_a_dead_worker_costs_its_units_and_no_bit(cluster):
    here = run("em", planned())
    victim = next(worker.pid for worker in cluster.workers.values())
    with distributed.Client(cluster):
        killed = threading.Timer(0.3, os.kill, (victim, signal.SIGKILL))
        killed.start()
        for _ in range(2):
            assert_same(run("em", planned()), here)
        killed.join()


def test_a_worker_with_another_copy_of_swiftem_is_refused(cluster, tmp_path):
    """Also one that joins later; what it computes could differ, without a word."""
    source = Path(swiftem.__file__).parent
    shutil.copytree(source, tmp_path / "swiftem", ignore=shutil.ignore_patterns("__pycache__"))
    with (tmp_path / "swiftem" / "schedules.py").open("a") as file:
        file.write("# another version\n")
    with distributed.Client(cluster) as client:
        run("em", planned())
        with process(WORKER, cluster.scheduler_address, PYTHONPATH=str(tmp_path)) as (_, address):
            client.wait_for_workers(3)
            said = (
                rf"Worker {address} must have the versions of the client, got 0\S+ with files \w+ of swiftem"
            )
            with pytest.raises(ConnectionError, match=said):
                run("em", planned())
            with distributed.Client(cluster, set_as_default=False) as another:
                data = np.array_split(X, 4)
                model = models.GaussianMixtureModel(2, covariance="full")
                with pytest.raises(ConnectionError, match=said):
                    swiftem.run(
                        model, [dask.delayed(part) for part in data], methods.EM(), n_iter=1, client=another
                    )
        while len(client.scheduler_info(n_workers=-1)["workers"]) > 2:
            time.sleep(0.05)
        run("em", planned())


def test_collections(cluster):
    """Unknown, empty and unequal chunks, and data frames."""
    pd, dd = pytest.importorskip("pandas"), pytest.importorskip("dask.dataframe")
    data = planned()
    frame = dd.from_pandas(pd.DataFrame(X, columns=list("abc")), npartitions=3)
    cut = da.concatenate([data[:0], data[:10], data[10:]])
    chosen = data[data[:, 0] > 0.5]
    with distributed.Client(cluster):
        for ours, theirs in ((cut, X), (chosen, X[X[:, 0] > 0.5])):
            one, other = (run("em", rows) for rows in (ours, theirs))
            np.testing.assert_allclose(one.theta.means, other.theta.means, rtol=1e-11)
        fitted = swiftem.GaussianMixture(2, random_state=0).fit(frame)
        assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
        assert len(fitted.predict(frame).compute()) == len(X)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: planned().rechunk((1000, 1)), r"3 chunks of columns: give data.rechunk\(\{1: -1\}\)"),
        (lambda: da.where(planned() > 10, np.nan, planned()), "must be finite, got NaN"),
        (lambda: planned()[:, 0], "Expected 2D array, got 1D array"),
        (lambda: planned()[:, :, None], "Expected 2D array, got 3D array"),
        (lambda: planned().astype(str), "numbers in every column"),
        (lambda: planned()[:0], "at least one row"),
    ],
)
def test_collections_that_cannot_be_fitted(make, said):
    with pytest.raises((TypeError, ValueError), match=said):
        swiftem.GaussianMixture(2).fit(make())


def test_other_arguments_that_do_not_go_with_units():
    model = swiftem.GaussianMixture(2, random_state=0).fit(planned())
    with pytest.raises(TypeError, match="use bic or aic"):
        model.icl(planned())
    with pytest.raises(TypeError, match="name or a function for a Dask collection"):
        swiftem.GaussianMixture(2, init_params=np.zeros(len(X), dtype=int)).fit(planned())
    with pytest.raises(TypeError, match="sample_weight must be a Dask collection"):
        model.fit(planned(), sample_weight=np.ones(len(X)))
    with pytest.raises(TypeError, match="must be a mixture for data in units"):
        swiftem.run(models.PLSAModel(2), planned(), methods.EM(), n_iter=1)


def test_partial_fit_takes_chunk_after_chunk():
    ours = swiftem.GaussianMixture(2, random_state=0).partial_fit(planned())
    theirs = swiftem.GaussianMixture(2, random_state=0).partial_fit(X[:1000])
    for start in range(1000, len(X), 1000):
        theirs.partial_fit(X[start : start + 1000])
    assert np.array_equal(ours.means_, theirs.means_)


def test_select_on_a_collection():
    found = swiftem.select(planned(), n_components=[1, 2], covariance_types=["full"], random_state=0)
    assert found.best.n_components == 2
