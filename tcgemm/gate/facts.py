"""What the C++ side knows about its kernels: which would run, how many reads it issues, what it needs of an SM."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from bench.problems import DTYPES, Problem
from tcgemm import _library

# A run on CPU tensors has no device to ask about; the answers are those for an H200.
ASSUMED_DEVICE = {"capability": 90, "code_arch": 90, "sm_count": 132}


@dataclass(frozen=True)
class Explanation:
    """What choose() says. `chosen` is None when no kernel takes the problem, or when nobody can be asked."""

    chosen: str | None
    reason: str
    global_reads: int | None = None  # load instructions of the busiest thread
    tile: int | None = None
    refused: bool = False


@dataclass(frozen=True)
class Footprint:
    """What a launch takes: per thread, per block, and how much of an SM that leaves."""

    registers: int
    local_bytes: int  # spills and stack, a thread
    shared_bytes: int  # static and dynamic, a block
    threads: int
    blocks_per_sm: int
    occupancy: float  # resident threads over the most an SM can hold
    binary_arch: int


def kernels() -> dict[str, tuple[str, ...]]:
    """The dtypes of every kernel, by its name, in the order of the table."""
    return {row["name"]: tuple(row["dtypes"]) for row in _library.kernel_rows()}


def device_info(device: torch.device) -> dict[str, int]:
    """capability (90 is 9.0), code_arch (of the loaded code), sm_count."""
    return _library.device_info(device.index or 0) if device.type == "cuda" else ASSUMED_DEVICE


def explain(algo: str | None, p: Problem, device: torch.device) -> Explanation:
    """What choose() decides for the operands of `p`."""
    if _library.cuda is None:
        return Explanation(None, "the CUDA part is not built, so the choice and its reads are unknown")
    strides, offsets = (*p.strides("a"), *p.strides("b")), (p.offset_a, p.offset_b)
    answer = _library.explain(algo, DTYPES[p.dtype], (p.m, p.n, p.k), strides, offsets, **device_info(device))
    answer.pop("workspace_bytes", None)
    return Explanation(**answer, refused=answer["chosen"] is None)


def footprint(algo: str | None, p: Problem, device: torch.device) -> Footprint:
    """Registers, spills and occupancy of the kernel that would run; needs a CUDA device."""
    strides, offsets = (*p.strides("a"), *p.strides("b")), (p.offset_a, p.offset_b)
    answer = _library.footprint(algo, DTYPES[p.dtype], (p.m, p.n, p.k), strides, offsets, device=device.index or 0)
    if "registers" not in answer:
        raise RuntimeError(f"{algo}: {answer['reason']}")
    shared = answer["static_shared_bytes"] + answer["dynamic_shared_bytes"]
    kept = ("registers", "local_bytes", "threads", "blocks_per_sm", "occupancy", "binary_arch")
    return Footprint(shared_bytes=shared, **{name: answer[name] for name in kept})
