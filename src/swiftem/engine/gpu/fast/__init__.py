"""Full passes by kernels in Triton: rows prepared once, parameters in every pass."""

from swiftem.engine.gpu.triton_cache import keep_private

keep_private()
