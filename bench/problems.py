"""The one generator of matrix products: gate, tests, benchmark and emulator take their problems from here.

    built = build(Problem("tail", 611, 613, 617, layout="NT", pad_a=3, offset_b=1), device="cuda")
    torch.ops.tcgemm.mm_out(built.a, built.b, out=built.c)
    assert built.damage() == ""

Each operand lies in an allocation of its own between guard bands. Guards, padding and skipped elements hold a
NaN with a known bit pattern: reading them poisons the result, writing them shows in damage(). The output
starts as another NaN, so an element that nobody wrote shows as well. Needs torch, and nothing of tcgemm.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from bench.values import DISTRIBUTIONS

DTYPES = {"float16": torch.float16, "bfloat16": torch.bfloat16, "float32": torch.float32}
LAYOUTS = ("NN", "NT", "TN", "TT")  # a, then b: N is row-major, T is column-major
K_TAILS = (1, 15, 16, 17, 608, 617)  # around a K step of 16; 617 = 38 * 16 + 9
EDGE_SIZES = (1, 2, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 128, 129)

GUARD_BYTES = 4096  # a multiple of ALIGNMENT, and more than the widest stray access of a tile row
ALIGNMENT = 256  # bytes; offsets count from an address that is a multiple of it
SAME_VALUES_LIMIT = 2**26  # elements up to which values are drawn on the CPU, hence the same on every device

# Quiet NaNs whose payload no arithmetic produces.
_CANARY_BITS = {2: 0x7FDB, 4: 0x7FDBCAFE}
_POISON_BITS = {2: 0x7FE5, 4: 0x7FE5A5A5}
_BITS_DTYPE = {2: torch.int16, 4: torch.int32}


@dataclass(frozen=True)
class Problem:
    """c[m,n] = a[m,k] b[k,n], a and b of `dtype`, c float32 row-major. Lengths are in elements."""

    name: str
    m: int
    n: int
    k: int
    layout: str = "NT"
    dtype: str = "float16"
    pad_a: int = 0  # what a leading dimension has beyond the least possible
    pad_b: int = 0
    pad_c: int = 0
    offset_a: int = 0  # from a 256-byte aligned address
    offset_b: int = 0
    offset_c: int = 0
    step_a: int = 1  # from an element to the next along the contiguous dimension; 2 leaves none of unit stride
    step_b: int = 1
    distribution: str = "uniform"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.layout not in LAYOUTS or self.dtype not in DTYPES or self.distribution not in DISTRIBUTIONS:
            raise ValueError(
                f"{self}: layout, dtype and distribution must be one of {LAYOUTS}, "
                f"{tuple(DTYPES)} and {tuple(DISTRIBUTIONS)}"
            )

    @property
    def lda(self) -> int:
        """Elements between rows of a (columns, if it is column-major)."""
        return (self.k if self.layout[0] == "N" else self.m) * self.step_a + self.pad_a

    @property
    def ldb(self) -> int:
        """Elements between rows of b (columns, if it is column-major)."""
        return (self.n if self.layout[1] == "N" else self.k) * self.step_b + self.pad_b

    @property
    def ldc(self) -> int:
        """Elements between rows of c."""
        return self.n + self.pad_c

    def strides(self, operand: str) -> tuple[int, int]:
        """(row stride, column stride) of "a", "b" or "c"."""
        if operand == "c":
            return self.ldc, 1
        ld, step = (self.lda, self.step_a) if operand == "a" else (self.ldb, self.step_b)
        return (ld, step) if self.layout["ab".index(operand)] == "N" else (step, ld)

    def but(self, **changes: object) -> Problem:
        """The same problem with some fields replaced."""
        return dataclasses.replace(self, **changes)


@dataclass
class Buffer:
    """A matrix between guard bands. `storage` is the whole allocation, `matrix` the view that ops get."""

    storage: Tensor
    matrix: Tensor
    start: int  # of the matrix in storage, in elements
    snapshot: Tensor | None = None  # of storage, when nobody may write to the matrix either

    def damage(self) -> str:
        """Empty, or how many elements were overwritten that must not be, and where the first lies."""
        bits = _bits(self.storage)
        if self.snapshot is not None:
            changed = bits != _bits(self.snapshot)
        else:
            outside = torch.ones_like(self.storage, dtype=torch.bool)
            strides = self.matrix.stride()
            shape = [1 if stride == 0 else size for size, stride in zip(self.matrix.shape, strides)]
            outside.as_strided(shape, strides, self.start).fill_(False)
            changed = (bits != _CANARY_BITS[self.storage.element_size()]) & outside
        count = int(changed.sum())
        if count == 0:
            return ""
        first = int(changed.to(torch.uint8).argmax()) - self.start
        return f"{count} elements overwritten, the first at {first:+d} from the matrix's start"


@dataclass
class Built:
    """A problem in memory. `c` holds NaN until it is written."""

    problem: Problem
    buffers: dict[str, Buffer]

    a = property(lambda self: self.buffers["a"].matrix, doc="Tensor [m, k]")
    b = property(lambda self: self.buffers["b"].matrix, doc="Tensor [k, n]")
    c = property(lambda self: self.buffers["c"].matrix, doc="Tensor [m, n], float32")

    def damage(self) -> str:
        """Empty, or which buffers were written where they must not be."""
        found = [f"{name}: {text}" for name, buffer in self.buffers.items() if (text := buffer.damage())]
        return "; ".join(found)

    def unwritten(self) -> int:
        """Elements of c that still hold the NaN they started with."""
        return int((_bits(self.c) == _POISON_BITS[4]).sum())

    def poison(self) -> None:
        """Puts c back to its first state."""
        _bits(self.c).fill_(_POISON_BITS[4])


def build(problem: Problem, device: torch.device | str = "cpu") -> Built:
    """Allocates and fills the operands of `problem` on `device`."""
    p, dtype = problem, DTYPES[problem.dtype]
    shapes = {"a": (p.m, p.k), "b": (p.k, p.n), "c": (p.m, p.n)}
    offsets = {"a": p.offset_a, "b": p.offset_b, "c": p.offset_c}
    buffers = {}
    for name, shape in shapes.items():
        buffer = guarded(shape, p.strides(name), offsets[name], torch.float32 if name == "c" else dtype, device)
        if name != "c":
            buffer.matrix.copy_(values(p, name, device))
            buffer.snapshot = buffer.storage.clone()
        buffers[name] = buffer
    built = Built(problem, buffers)
    built.poison()
    return built


def guarded(
    shape: tuple[int, int], strides: tuple[int, int], offset: int, dtype: torch.dtype, device: torch.device | str
) -> Buffer:
    """A matrix of any non-negative strides, `offset` elements behind a 256-byte aligned address, between guards."""
    size = dtype.itemsize
    extent = 0 if 0 in shape else 1 + sum((length - 1) * stride for length, stride in zip(shape, strides, strict=True))
    guard, slack = GUARD_BYTES // size, ALIGNMENT // size
    storage = torch.empty(slack + guard + offset + extent + guard, dtype=dtype, device=device)
    _bits(storage).fill_(_CANARY_BITS[size])
    aligned = -storage.data_ptr() % ALIGNMENT // size
    start = aligned + guard + offset
    return Buffer(storage, storage.as_strided(shape, strides, start), start)


def values(problem: Problem, operand: str, device: torch.device | str = "cpu") -> Tensor:
    """The values of "a" [m, k] or "b" [k, n], contiguous, in the problem's dtype."""
    rows, cols = (problem.m, problem.k) if operand == "a" else (problem.k, problem.n)
    home = "cpu" if rows * cols <= SAME_VALUES_LIMIT else device
    generator = torch.Generator(device=home)
    generator.manual_seed(2 * problem.seed + (operand == "b"))
    dtype = DTYPES[problem.dtype]
    drawn = DISTRIBUTIONS[problem.distribution](rows, cols, operand, dtype, generator)
    return drawn.to(dtype).to(device)


def _bits(x: Tensor) -> Tensor:
    return x.view(_BITS_DTYPE[x.element_size()])


GATE_CASES = (
    Problem("unit", 16, 16, 16, distribution="integers", seed=1),
    Problem("onefrag", 16, 8, 16, distribution="integers", seed=2),
    Problem("small", 128, 128, 128, seed=3),
    Problem("odd", 611, 613, 617, seed=4),
    Problem("skinny", 4096, 16, 4096, seed=5),
    Problem("square", 1024, 1024, 1024, distribution="normal", seed=6),
    Problem("adversarial", 256, 256, 256, distribution="adversarial", seed=7),
    Problem("perf", 4096, 4096, 4096, seed=8),
)
BITWISE_CASES = ("unit", "onefrag")  # the others are judged by the tolerance


def random_problems(
    count: int, seed: int, dtypes: tuple[str, ...] = ("float16", "bfloat16"), largest: int = 300
) -> Iterator[Problem]:
    """Problems of sides 1..largest in every layout, with odd offsets and strides; k % 16 is 0, 1, 9 or 15."""
    draw = random.Random(seed)
    for number in range(count):
        tail = draw.choice((0, 1, 9, 15))
        yield Problem(
            name=f"random-{seed}-{number}",
            m=draw.randint(1, largest),
            n=draw.randint(1, largest),
            k=16 * draw.randint(1 if tail == 0 else 0, (largest - tail) // 16) + tail,
            layout=LAYOUTS[number % 4],
            dtype=draw.choice(dtypes),
            pad_a=draw.choice((0, 1, 3, 7, 8, 16)),
            pad_b=draw.choice((0, 1, 3, 7, 8, 16)),
            pad_c=draw.choice((0, 1, 4, 5)),
            offset_a=draw.choice((0, 0, 1, 3, 4, 8)),
            offset_b=draw.choice((0, 0, 1, 3, 4, 8)),
            offset_c=draw.choice((0, 0, 1, 2, 4)),
            step_a=draw.choice((1, 1, 1, 2)),
            step_b=draw.choice((1, 1, 1, 3)),
            distribution=draw.choice(("integers", "uniform", "normal", "unsigned")),
            seed=draw.randrange(2**30),
        )
