"""How far results are from the float64 product, and whether they may be timed at all.

Errors are in units of 2^-24 * sum|a||b|, element by element: half an FP32 ulp of the largest value that the sum
of an element can pass through.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from tcgemm.gate.check import limits

UNIT = 2.0**-24
KAHAN_STEPS = 2**31  # up to this many multiply-adds, every element is summed by tcgemm::reference_mm
ANCHORS = 16  # rows and columns in which a larger product is held to reference_mm
SAMPLED = 128  # rows and columns that are checked where the device is slow in float64
CHUNK = 2**25  # elements that are compared at a time


@dataclass(frozen=True)
class Errors:
    """max_err and bias (the mean, with its sign) in the module's units; `wrong` elements break the gate's tolerance.

    max_err and bias are None when an element is no finite number.
    """

    max_err: float | None
    bias: float | None
    wrong: int


@dataclass(frozen=True)
class Block:
    """float64 products over some rows and columns (None: all): `signed` of a b, `absolute` of |a| |b|."""

    rows: Tensor | None
    cols: Tensor | None
    signed: Tensor
    absolute: Tensor


@dataclass(frozen=True)
class Reference:
    """What a b should be. `every` says whether all elements are covered."""

    blocks: list[Block]
    k: int
    every: bool

    def errors(self, c: Tensor, of_absolute: bool = False) -> Errors:
        """Compares c [m, n] float32 with a b, or with |a| |b|: the same data folded into [0, 1]."""
        worst, total, count, wrong = 0.0, 0.0, 0, 0
        for block in self.blocks:
            seen = c if block.rows is None else c[block.rows]
            seen = seen if block.cols is None else seen[:, block.cols]
            wanted = block.absolute if of_absolute else block.signed
            step = max(1, CHUNK // max(1, seen.shape[1]))
            for first in range(0, seen.shape[0], step):
                part = slice(first, first + step)
                difference = seen[part].double() - wanted[part]
                allowed = limits(wanted[part], self.k, block.absolute[part])
                wrong += int((~(difference.abs() <= allowed)).sum())  # a NaN is wrong
                units = difference / (block.absolute[part] * UNIT).clamp_min(2.0**-149)
                worst = max(worst, float(units.abs().nan_to_num(nan=math.inf, posinf=math.inf).max()))
                total += float(units.sum())
                count += units.numel()
        if not math.isfinite(worst):
            return Errors(None, None, wrong)
        return Errors(worst, total / count, wrong)


def _spread(length: int, count: int, like: Tensor) -> Tensor:
    """`count` indices in [0, length), both ends among them, where `like` lives."""
    return torch.linspace(0, length - 1, min(count, length), device=like.device, dtype=torch.float64).round().long()


def _products(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    a, b = a.double(), b.double()
    return a @ b, a.abs_() @ b.abs_()


def reference(a: Tensor, b: Tensor, kahan: Callable[[Tensor, Tensor], Tensor], every: bool = True) -> Reference:
    """float64 products of a [m, k] and b [k, n] on the device. `kahan` is tcgemm::reference_mm.

    Small products are summed by `kahan` throughout. In larger ones every element comes from torch's float64
    product, which is held to `kahan` in rows and columns spread over the matrix. With every=False only rows and
    columns spread over the matrix are covered.
    """
    m, k = a.shape
    n = b.shape[1]
    if m * n * k <= KAHAN_STEPS:
        return Reference([Block(None, None, kahan(a, b), kahan(a.abs(), b.abs()))], k, True)
    if not every:
        rows, cols = _spread(m, SAMPLED, a), _spread(n, SAMPLED, b)
        blocks = [Block(rows, None, *_products(a[rows], b)), Block(None, cols, *_products(a, b[:, cols]))]
    else:
        blocks = [Block(None, None, *_products(a, b))]
    found = Reference(blocks, k, every)
    for block in blocks:
        _anchor(block, a, b, kahan)
    return found


def _anchor(block: Block, a: Tensor, b: Tensor, kahan: Callable[[Tensor, Tensor], Tensor]) -> None:
    """Raises unless a block agrees with the Kahan sums to k float64 roundings in a few rows and columns."""
    a = a if block.rows is None else a[block.rows]
    b = b if block.cols is None else b[:, block.cols]
    rows, cols = _spread(a.shape[0], ANCHORS, a), _spread(b.shape[1], ANCHORS, b)
    limit = a.shape[1] * 2.0**-52
    for summed, product, scale in (
        (kahan(a[rows], b), block.signed[rows], block.absolute[rows]),
        (kahan(a, b[:, cols]), block.signed[:, cols], block.absolute[:, cols]),
    ):
        off = float(
            ((summed - product).abs() / scale.clamp_min(2.0**-149)).nan_to_num(nan=math.inf, posinf=math.inf).max()
        )
        if off > limit:
            raise RuntimeError(
                f"torch's float64 product is off the Kahan sum by {off:.2e} of sum|a||b|, over {limit:.2e}"
            )
