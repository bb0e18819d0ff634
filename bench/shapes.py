"""Which problems are measured: named sets of bench.problems.Problem. A problem's `name` is its set's name."""

from __future__ import annotations

from dataclasses import dataclass

from bench.problems import DTYPES, GATE_CASES, LAYOUTS, Problem

AUTO_ONLY = ("boundary",)  # sets measured for `auto` alone unless rungs are named on the command line


@dataclass(frozen=True)
class Work:
    """What a problem costs at least."""

    flop: int
    bytes: int  # through device memory: a and b read once, c written once


def work(p: Problem) -> Work:
    size = DTYPES[p.dtype].itemsize
    return Work(2 * p.m * p.n * p.k, size * (p.m * p.k + p.k * p.n) + 4 * p.m * p.n)


def _cubes(name: str, *sizes: int, **how: object) -> list[Problem]:
    return [Problem(name, size, size, size, **how) for size in sizes]


def _square() -> list[Problem]:
    cases = _cubes("square", 256, 512, 1024, 2048, 4096)
    cases += _cubes("square", 1024, 2048, 4096, layout="NN")
    cases += [problem for layout in ("TN", "TT") for problem in _cubes("square", 2048, 4096, layout=layout)]
    cases += [problem for layout in LAYOUTS for problem in _cubes("square", 4096, layout=layout, dtype="bfloat16")]
    # The capstone's FP32 path goes to tcgemm::sgemm; its ratio is to cuBLAS on the same shape in FP16.
    return cases + _cubes("square", 1024, 2048, 4096, dtype="float32")


def _odd() -> list[Problem]:
    sizes = ((611, 613, 617), (1023, 1025, 1027), (2047, 2049, 2051), (4095, 4097, 4099))
    cases = [Problem("odd", *mnk, layout=layout) for mnk in sizes for layout in ("NT", "NN")]
    cases += [Problem("odd", 4095, 4097, 4099, layout=layout) for layout in ("TN", "TT")]
    cases.append(Problem("odd", 4095, 4097, 4099, dtype="bfloat16"))
    # 4096^3 with one thing changed: a leading dimension, where the storage starts, or N.
    cases += _cubes("odd", 4096, pad_a=8) + _cubes("odd", 4096, pad_a=4)
    cases += _cubes("odd", 4096, pad_a=1) + _cubes("odd", 4096, pad_b=1)
    cases += _cubes("odd", 4096, offset_a=1) + _cubes("odd", 4096, offset_b=4)
    return cases + [Problem("odd", 4096, 4097, 4096), Problem("odd", 64, 50257, 1601)]


def _router() -> list[Problem]:
    cases = [Problem("router", m, 256, 7168, dtype="bfloat16") for m in (1, 2, 4, 8, 16, 32, 64, 512)]
    return cases + [Problem("router", m, 128, 2048) for m in (1, 64)]


def _lm_head() -> list[Problem]:
    cases = [Problem("lm_head", m, 128256, 4096) for m in (1, 16, 32, 256)]
    cases.append(Problem("lm_head", 32, 50257, 1600, dtype="bfloat16"))
    return cases + [Problem("lm_head", 32, 50257, 1600, layout="NN")]  # rows of B start at odd addresses


def _boundary(*columns: int) -> list[Problem]:
    """Time against N where rows of B and C pass in and out of 16-byte alignment."""
    return [Problem("boundary", 4096, n, 4096, layout="NN") for n in columns]


SETS: dict[str, list[Problem]] = {
    "gate": [Problem("gate", case.m, case.n, case.k) for case in GATE_CASES],
    "square": _square(),
    "odd": _odd(),
    "skinny": [
        Problem("skinny", 4096, 16, 4096),
        Problem("skinny", 16, 4096, 4096),
        Problem("skinny", 256, 256, 65536),
        Problem("skinny", 65536, 64, 1024),
        Problem("skinny", 4096, 16, 4096, layout="NN", dtype="bfloat16"),
    ],
    "router": _router(),
    "lm_head": _lm_head(),
    "mlp": [
        Problem("mlp", 4096, 14336, 4096, dtype="bfloat16"),
        Problem("mlp", 4096, 4096, 14336, dtype="bfloat16"),
        Problem("mlp", 4096, 14336, 4096, layout="TN", dtype="bfloat16"),  # a weight gradient: x^T dy
        Problem("mlp", 512, 14336, 4096),
        Problem("mlp", 512, 4096, 14336),
    ],
    "large": [
        Problem("large", 8192, 8192, 8192),
        Problem("large", 8192, 8192, 8192, layout="NN"),
        Problem("large", 8192, 8192, 8192, dtype="bfloat16"),
        Problem("large", 8192, 28672, 8192),
    ],
    "boundary": _boundary(*range(4090, 4105)),
}
ALL = tuple(SETS)
SETS["quick"] = [
    *_cubes("square", 1024, 2048, 4096),
    *_cubes("square", 2048, layout="NN"),
    *_cubes("square", 4096, dtype="bfloat16"),
    *_cubes("square", 1024, 2048, dtype="float32"),
    Problem("odd", 611, 613, 617),
    Problem("odd", 2047, 2049, 2051),
    *_cubes("odd", 4096, pad_a=1),
    Problem("skinny", 4096, 16, 4096),
    Problem("router", 16, 256, 7168, dtype="bfloat16"),
    Problem("lm_head", 32, 128256, 4096),
    *_boundary(*range(4092, 4102)),
]


def select(names: list[str]) -> list[Problem]:
    """The problems of the named sets, in order, each once. 'all' is every set but quick. Raises ValueError."""
    problems: dict[Problem, None] = {}
    for name in names:
        if name != "all" and name not in SETS:
            raise ValueError(f"no set called {name!r}; there are: {', '.join(SETS)}, all")
        for each in ALL if name == "all" else (name,):
            problems.update(dict.fromkeys(SETS[each]))
    return list(problems)


def custom(shape: str, layouts: list[str], dtypes: list[str], **memory: int) -> list[Problem]:
    """Problems for `--shape m,n,k` in each layout and dtype. `memory`: pad_a, pad_b, offset_a, offset_b."""
    sizes = [int(part) for part in shape.split(",")]
    if len(sizes) != 3 or min(sizes) < 1:
        raise ValueError(f"--shape wants m,n,k, three positive numbers; got {shape!r}")
    return [Problem("shape", *sizes, layout=layout, dtype=dtype, **memory) for layout in layouts for dtype in dtypes]


def narrowed(problems: list[Problem], layouts: list[str] | None, dtypes: list[str] | None) -> list[Problem]:
    """The problems whose layout and dtype are among those given; None keeps all."""
    return [p for p in problems if (not layouts or p.layout in layouts) and (not dtypes or p.dtype in dtypes)]
