"""What operands are filled with. A distribution is a function of (rows, cols, side, dtype, generator).

`side` is "a" or "b": an adversarial operand has its pattern along k, which is a column index in a and a row
index in b. Every function returns values as float32 [rows, cols] that are exact in `dtype`, or become so by
one rounding that the caller does.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

SMALL_INTEGER = 4  # products up to 16: every partial sum is exact in FP32 up to k = 2**20


def _shape_rand(rows: int, cols: int, generator: torch.Generator) -> Tensor:
    return torch.rand(rows, cols, generator=generator, device=generator.device)


def integers(rows: int, cols: int, side: str, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Whole numbers in [-4, 4]: exact in FP16 and BF16, so results agree bit for bit in any order."""
    shape, device = (rows, cols), generator.device
    return torch.randint(-SMALL_INTEGER, SMALL_INTEGER + 1, shape, generator=generator, device=device).float()


def uniform(rows: int, cols: int, side: str, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Symmetric uniform, [-1, 1]."""
    return _shape_rand(rows, cols, generator) * 2 - 1


def unsigned(rows: int, cols: int, side: str, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Uniform [0, 1], like activations behind a ReLU: sums of one sign show the drift of truncating adders."""
    return _shape_rand(rows, cols, generator)


def normal(rows: int, cols: int, side: str, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Mean 0, standard deviation 1."""
    return torch.randn(rows, cols, generator=generator, device=generator.device)


ADVERSARIAL_LINES = (
    "large",
    "-large",
    "cancelling",
    "subnormal",
    "smallest normal",
    "ones",
    "one pair",
    "two scales",
)


def adversarial(rows: int, cols: int, side: str, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Edge values {+-65504, +-2^-14, +-2^-24, +-0, +-1}, arranged so that an FP32 sum survives.

    A line is a row of a or a column of b, so each output is the product of two lines, and all 8 x 8 pairs of
    kinds meet. Along k, values come in neighbouring pairs (an odd k ends in a zero):
      large, -large    every value is 65504 (-65504): products reach 2^32, sums 2^40; an FP16 sum overflows
      cancelling       four pairs +65504, -65504 at places that move from line to line; all other values are 0
      subnormal        2^-24, -2^-24, +0 and -0 at random: flushing subnormals to zero shows against `large`
      smallest normal  +-2^-14 at random
      ones             +-1 at random
      one pair         one pair +65504, -65504 at such a place; all other values are 1
      two scales       1, 2^-24 in turn
    Why FP32 survives, in any order of summation. Where terms cancel, every partial sum is a multiple of one
    number and fits 24 bits: 65504^2 = 2047^2 * 2^10 has 22 bits, and at most four of one sign meet; other
    products have 11 bits. Where scales mix (`one pair` against `large`: 65504^2 beside 254 terms of 65504) the
    small terms have one sign and their sum is 250 times what rounding can lose, against a tolerance of 100.
    So a wrong result is a kernel's fault.
    In BF16, 65504 rounds to 65536 and the same argument holds.
    """
    lines, k = (rows, cols) if side == "a" else (cols, rows)
    device = generator.device
    x = torch.zeros(lines, k, device=device)
    pairs = k // 2 * 2
    big, signs = 65504.0, torch.randint(0, 2, (lines, k), generator=generator, device=device).float() * 2 - 1
    turns = torch.arange(k, device=device) % 2 == 0
    kept = torch.randint(0, 2, (lines, k), generator=generator, device=device).float()
    kinds = {
        "large": torch.full_like(x, big),
        "-large": torch.full_like(x, -big),
        "cancelling": torch.zeros_like(x),
        "subnormal": signs * kept * 2.0**-24,  # -1 * 0 is the negative zero
        "smallest normal": signs * 2.0**-14,
        "ones": signs,
        "one pair": torch.ones_like(x),
        "two scales": torch.where(turns, 1.0, 2.0**-24).expand_as(x),
    }
    # The sides run through the kinds at different speeds: with both sizes >= 64 every two kinds meet.
    step = torch.arange(lines, device=device)
    kind_of_line = step % 8 if side == "a" else (step + step // 8) % 8
    for number, name in enumerate(ADVERSARIAL_LINES):
        chosen = (kind_of_line == number).nonzero().flatten()
        x[chosen, :pairs] = kinds[name][chosen, :pairs]
        for pair in range({"cancelling": 4, "one pair": 1}.get(name, 0) if pairs else 0):
            first = (chosen * 6 + 64 * pair) % pairs  # even numbers: pairs do not overlap
            x[chosen, first], x[chosen, first + 1] = big, -big
    return x if side == "a" else x.t()


def special(rows: int, cols: int, side: str, dtype: torch.dtype, generator: torch.Generator) -> Tensor:
    """Uniform values with NaN, Inf and zeros at fixed places (modulo the size), to check where they spread.

    a: row 0 has a NaN, row 1 +Inf, row 2 -Inf, row 3 +Inf and -Inf. b: its last column has a NaN, its first
    column is zero (Inf * 0 is NaN, NaN * 0 is NaN), its second holds the dtype's largest value.
    """
    x = uniform(rows, cols, side, dtype, generator)
    if rows == 0 or cols == 0:
        return x
    inf, nan = float("inf"), float("nan")
    if side == "a":
        for row, col, value in ((0, 3, nan), (1, 5, inf), (2, cols - 1, -inf), (3, 0, inf), (3, cols - 1, -inf)):
            if row < rows:
                x[row, col % cols] = value
    else:
        x[:, 0] = 0.0
        if cols > 1:
            x[:, 1] = torch.finfo(dtype).max
        if cols > 2:
            x[rows // 2, cols - 1] = nan
    return x


Distribution = Callable[[int, int, str, torch.dtype, torch.Generator], Tensor]
DISTRIBUTIONS: dict[str, Distribution] = {
    "integers": integers,
    "uniform": uniform,
    "unsigned": unsigned,
    "normal": normal,
    "adversarial": adversarial,
    "special": special,
}
