"""The operands of a problem on the device, and what their product should be."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from bench import accuracy, calls, timing
from bench.problems import DTYPES, Problem, guarded
from bench.shapes import work
from bench.values import DISTRIBUTIONS

FLOAT64_SECONDS = 2.0  # a float64 product that takes longer is checked in samples


@dataclass
class Subject:
    """Operands [m, k] and [k, n] on the device and what their product should be."""

    a: Tensor
    b: Tensor
    reference: accuracy.Reference

    def check(self, call: calls.Call, of_absolute: bool = False) -> tuple[accuracy.Errors, float]:
        """Errors of one call, and about how long it took in us. Its output's memory held NaN before."""
        poison = torch.full((self.a.shape[0], self.b.shape[1]), float("nan"), device=timing.DEVICE)
        del poison  # the allocator hands the block out again to the next request of this size
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        c = call()
        end.record()
        end.synchronize()
        return self.reference.errors(c, of_absolute), start.elapsed_time(end) * 1e3

    def fold(self) -> None:
        """Makes the operands |a| and |b|: uniform in [0, 1]."""
        self.a.abs_()
        self.b.abs_()


def operand(p: Problem, name: str, distribution: str = "uniform") -> Tensor:
    """Operand "a" or "b" of `p` in the device's memory, drawn there."""
    shape = (p.m, p.k) if name == "a" else (p.k, p.n)
    offset = p.offset_a if name == "a" else p.offset_b
    x = guarded(shape, p.strides(name), offset, DTYPES[p.dtype], timing.DEVICE).matrix
    fill(x, name, distribution)
    return x


def fill(x: Tensor, name: str, distribution: str) -> None:
    generator = torch.Generator(timing.DEVICE).manual_seed(17 + (name == "b"))
    x.copy_(DISTRIBUTIONS[distribution](*x.shape, name, x.dtype, generator))


def subject(p: Problem, ceilings: dict[str, float]) -> Subject:
    a, b = operand(p, "a"), operand(p, "b")
    every = 2 * work(p).flop < ceilings["float64_tflops"] * 1e12 * FLOAT64_SECONDS
    return Subject(a, b, accuracy.reference(a, b, torch.ops.tcgemm.reference_mm, every))


def too_large(p: Problem) -> str:
    """Empty, or why the device has not the memory for `p` with its float64 reference."""
    need = 10 * (p.m * p.k + p.k * p.n) + 32 * p.m * p.n
    free = torch.cuda.mem_get_info()[0] + torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
    return "" if need < free else f"needs about {need / 2**30:.1f} GiB, {free / 2**30:.1f} GiB are free"
