"""What E-steps on a device of PyTorch share: blocks that are copied there in every pass, and CUDA graphs."""

from __future__ import annotations

import gc
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import TypeVar

import torch
from torch import Tensor

LIVE = 3
"""Blocks on the device at a time: one is copied, one is ready or used, and one was used last."""

T = TypeVar("T")


def copied(
    blocks: Iterable[tuple[T, list[Tensor]]], device: torch.device
) -> Iterator[tuple[T, list[Tensor]]]:
    """Yield blocks of tensors in memory of the CPU on the device; the next block is copied meanwhile.

    Tensors that are pinned already are copied without another copy on the CPU.
    """
    if device.type != "cuda":
        yield from blocks
        return
    copying, computing = torch.cuda.Stream(device), torch.cuda.current_stream(device)
    under_way: deque[tuple[T, list[Tensor], torch.cuda.Event]] = deque()
    used: deque[torch.cuda.Event] = deque(maxlen=LIVE - 1)
    for block in chain(blocks, [None]):
        if block is not None:
            if len(used) == LIVE - 1:
                used[0].synchronize()  # its memory is free only now
            key, parts = block
            with torch.cuda.stream(copying):
                parts = [part.pin_memory().to(device, non_blocking=True) for part in parts]
            for part in parts:
                part.record_stream(computing)
            under_way.append((key, parts, copying.record_event()))
        if under_way and (block is None or len(under_way) > 1):
            key, parts, arrived = under_way.popleft()
            computing.wait_event(arrived)
            yield key, parts
            used.append(computing.record_event())


def graph_of(call: Callable[[], None]) -> torch.cuda.CUDAGraph:
    """Return a CUDA graph of what ``call`` starts, which is not done yet.

    An older graph must not be freed meanwhile, which the garbage collector may do at any time.
    """
    graph, is_enabled = torch.cuda.CUDAGraph(), gc.isenabled()
    gc.disable()
    try:
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):
            call()
    finally:
        if is_enabled:
            gc.enable()
    return graph
