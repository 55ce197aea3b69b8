"""How much anonymous memory a program takes: pages of files, mapped or cached, do not count."""

import subprocess
import sys
import time
from pathlib import Path

IMPORTS = """
import sys
import numba, numpy, scipy.sparse, sklearn.cluster, sklearn.mixture, threadpoolctl
import pyarrow.csv, pyarrow.parquet
import swiftem
from swiftem import GaussianMixture, methods, models
from swiftem.data import open_source
import swiftem.mixture.compute.one_sample, swiftem.mixture.compute.passes, swiftem.mixture.compute.steps
print("ready", flush=True)
sys.stdin.readline()
"""
"""What a program imports before its memory is looked at."""


def resident(pid, field="RssAnon"):
    """Return a field of a process's status in bytes, 0 when the process is gone."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith(field)), "none: 0 kB")
    return int(line.split()[1]) * 1024


def peak(code, *arguments):
    """Run Python code after the imports; return its output and how much its memory grew at most, in bytes."""
    command = [sys.executable, "-W", "ignore", "-c", IMPORTS + code, *map(str, arguments)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        before = largest = resident(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        while process.poll() is None:
            largest = max(largest, resident(process.pid))
            time.sleep(0.001)
        output = process.stdout.read()
    assert process.returncode == 0, output
    return output, largest - before
