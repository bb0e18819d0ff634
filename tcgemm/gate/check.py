"""When a result counts as right: the tolerance, the memory budget, and the verdict on one run."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

RTOL, ATOL = 1e-2, 1e-3
EPSILON = 2.0**-23  # FP32
# Of sum|a||b|. Sums larger than those of the eight cases cancel from thousands, and ATOL is then no more than rounding
# leaves behind (in cuBLAS's results too); one product left out is off by several times this.
ROUNDING = 64 * 2.0**-24


def length_term(k: int) -> float:
    """What both tolerances grow by for a sum of k terms: 4 * 2^-23 * sqrt(k)."""
    return 4 * EPSILON * math.sqrt(k)


def length_term_text(k: int) -> str:
    """The arithmetic of length_term, to be printed."""
    root = math.isqrt(k)
    printed = str(root) if root * root == k else f"sqrt({k})"
    return f"4 * 2^-23 * {printed} = {length_term(k):.4g}"


def limits(reference: Tensor, k: int, magnitudes: Tensor | None = None) -> Tensor:
    """The largest error allowed at each element of the float64 `reference`.

    `magnitudes`, sum|a||b| of each element, allows for rounding in sums larger than those of the eight cases.
    """
    term = length_term(k)
    allowed = (ATOL + term) + (RTOL + term) * reference.abs()
    return allowed if magnitudes is None else torch.maximum(allowed, ROUNDING * magnitudes)


def read_limit(k: int, tile: int) -> float:
    """Most global reads a thread may issue: 2 k / T + 16."""
    return 2 * k / tile + 16


@dataclass(frozen=True)
class Verdict:
    """`max_err` and `limit` belong to the element that comes closest to its limit, or passes it by most."""

    passed: bool
    text: str  # "right", or what is wrong
    max_err: float | None  # None when it is not a number
    limit: float


def judge(c: Tensor, reference: Tensor, k: int, *, bitwise: bool, magnitudes: Tensor | None = None) -> Verdict:
    """Compares the float32 result [m, n] with the float64 reference, within limits(). NaN must meet NaN, Inf Inf."""
    if c.numel() == 0:
        return Verdict(True, "right", 0.0, 0.0)
    allowed = torch.zeros_like(reference) if bitwise else limits(reference, k, magnitudes)
    got = c.double()
    error = (got - reference).abs()
    same = (got == reference) | (got.isnan() & reference.isnan())  # Inf equals Inf; a zero sum may have any sign
    error = torch.where(same, 0.0, error)
    wrong = ~(same | (error.isfinite() & (error <= allowed)))
    # The excess, so that a limit of zero (bitwise) needs no division.
    worst = torch.where(error.isfinite() & allowed.isfinite(), error - allowed, torch.where(same, -1.0, torch.inf))
    at = int(worst.argmax())
    max_err = float(error.flatten()[at])
    limit = float(allowed.flatten()[at])
    count = int(wrong.sum())
    if count == 0:
        return Verdict(True, "right", max_err, limit)
    row, col = divmod(int(wrong.flatten().to(torch.uint8).argmax()), c.shape[1])
    text = (
        f"{count} of {c.numel()} elements wrong, the first at [{row}, {col}]: "
        f"{float(c[row, col])!r}, expected {float(reference[row, col])!r}"
    )
    return Verdict(False, text, max_err if math.isfinite(max_err) else None, limit if math.isfinite(limit) else 0.0)
