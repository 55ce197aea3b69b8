"""``import swiftem`` stays light."""

import json
import subprocess
import sys

HEAVY = {"sklearn", "numba", "matplotlib", "torch", "dask", "pyarrow", "scipy", "rich", "typer"}


def modules_of(statement):
    code = f"import json, sys; {statement}; print(json.dumps(sorted(sys.modules)))"
    output = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    return set(json.loads(output))


def loaded_by(statement):
    return {name.partition(".")[0] for name in modules_of(statement)}


def test_import_loads_nothing_heavy():
    loaded = loaded_by("import swiftem")
    assert "swiftem" in loaded
    assert loaded & HEAVY == set()
    of_help = {"sklearn", "numba", "matplotlib", "rich.progress"}
    assert modules_of("import swiftem.cli.app") & of_help == set()


def test_a_run_with_reference_kernels_loads_nothing_heavy():
    loaded = loaded_by(
        "import swiftem; from swiftem import methods, models; "
        "swiftem.run(models.GaussianMixtureModel(1), [0.0, 1.0], methods.EM(), n_iter=3, kernels='reference')"
    )
    assert loaded & HEAVY <= {"scipy"}  # its BLAS, so that sums do not depend on threads
