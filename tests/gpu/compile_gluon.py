"""Compile the kernels in Gluon for compute capability 9.0, with or without a GPU; prints what each spills.

Triton asks its driver what to compile for: here that is an object that only knows the answer.
"""

import json
import os
import re
import subprocess
import tempfile
from pathlib import Path

import torch

os.environ.pop("TRITON_INTERPRET", None)  # there is no interpreter of Gluon
import triton
from triton.backends.compiler import GPUTarget
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor
from triton.runtime import driver

from swiftem.engine.gpu.fast import hopper_dense_kernels, hopper_kernels, hopper_white_kernels


class Driver:
    """A driver of a GPU that is not there."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device=0):
        return 0

    def get_current_target(self):
        return GPUTarget("cuda", 90, 32)

    def get_active_torch_device(self):
        return torch.device("cpu")

    def get_device_interface(self):
        return None


def tile(rows, columns, of=1 << 10):
    """Return a descriptor of tiles of float16 numbers."""
    layout = gl.NVMMASharedLayout.get_default_for([rows, columns], gl.float16)
    values = torch.zeros((of, max(columns, 128)), dtype=torch.float16)
    return TensorDescriptor.from_tensor(values, [rows, columns], layout)


def spilled(kernel):
    """Return the bytes of a thread's registers that are in memory."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(kernel.asm["cubin"])
        file.flush()
        told = subprocess.run([tool, "-res-usage", file.name], capture_output=True, text=True, check=True)
    return int(re.search(r"STACK:(\d+)", told.stdout).group(1))


if __name__ == "__main__":
    driver.set_active(Driver())
    v, options = torch.zeros(1024), {"num_warps": 4, "grid": (1, 1)}
    two = [tile(128, 128) for _ in range(4)]
    made = {
        "normalisers": hopper_kernels.normalisers.warmup(
            *two, *[v] * 6, 1000, 0, 8, 1024, D=128, STAGES=2, SPHERICAL_ROWS=True, maxnreg=168, **options
        ),
        "accumulate": hopper_kernels.accumulate.warmup(
            *two, *[v] * 10, 1000, 8, 1024, D=128, STAGES=2, SPHERICAL_ROWS=True, WEIGHTED=True, maxnreg=168,
            **options,
        ),
        "dense_pass": hopper_dense_kernels.dense_pass.warmup(
            tile(64, 64), v, tile(64, 64), tile(64, 32), *[v] * 4, 1000, 16, P=32, M=64, STAGES=6, GROUPS=3,
            WEIGHTED=True, maxnreg=128, **options,
        ),
        "white_logits": hopper_white_kernels.white_logits.warmup(
            tile(256, 128), tile(256, 128), tile(64, 64), tile(64, 64), *[v] * 5, 0, 1000, 1024, 64, 16, H=64,
            B=256, PRODUCTS=1, STAGES=4, maxnreg=168, **options,
        ),
    }  # fmt: skip
    for name, kernel in made.items():
        print(json.dumps([name, spilled(kernel)]))
