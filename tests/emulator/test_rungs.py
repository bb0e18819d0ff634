"""Every emulated rung: the gate's cases that a CPU can hold, random problems, and the path of hardware before sm_80."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.problems import BITWISE_CASES, GATE_CASES, Problem, build, random_problems
from tcgemm.emulator import Emulator, emulated_algos, program, rungs
from tcgemm.emulator.build import source_root
from tcgemm.emulator.report import verdict_of

CASES = {problem.name: problem for problem in GATE_CASES}
SHORT_SKINNY = CASES["skinny"].but(name="shortened skinny", m=1024, k=1024)
RUN = (*(CASES[name] for name in ("unit", "onefrag", "small", "odd", "adversarial")), SHORT_SKINNY)
RANDOM_PROBLEMS = 300  # a rung
LARGEST = 200


def row_of(algo: str) -> list[str]:
    """dtypes and oldest architecture of a rung."""
    table = (source_root() / "csrc/kernels.def").read_text()
    row = re.search(rf"^RUNG\({algo}, *\w+, *\w+, *([^,]+), *(\d+),", table, re.MULTILINE)
    assert row is not None
    return [row[1], row[2]]


def dtypes_of(algo: str) -> tuple[str, ...]:
    names = {"F16": "float16", "BF16": "bfloat16", "F32": "float32"}
    return tuple(names[name.strip()] for name in row_of(algo)[0].split("|"))


def takes_75(algo: str) -> bool:
    return int(row_of(algo)[1]) <= 75


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(program()) as running:
        yield running


@pytest.fixture(scope="module")
def emulator_75() -> Iterator[Emulator]:
    with Emulator(program(arch=75)) as running:
        yield running


def check(emulator: Emulator, algo: str, problem: Problem, order: str = "alternate", capability: int = 90) -> None:
    """No finding, the right result, every element written, no byte outside the operands touched."""
    built = build(problem)
    result = emulator.run(algo, built.a, built.b, out=built.c, order=order, capability=capability)
    assert result.findings == [], problem
    verdict = verdict_of(built, result)
    assert verdict.passed, (problem, verdict.text)
    assert built.unwritten() == 0
    assert built.damage() == ""


@pytest.mark.parametrize("problem", RUN, ids=lambda problem: problem.name.replace(" ", "-"))
@pytest.mark.parametrize("algo", emulated_algos())
def test_gate_case(emulator: Emulator, algo: str, problem: Problem) -> None:
    for dtype in dtypes_of(algo):
        if dtype == "bfloat16" and problem.name in (*BITWISE_CASES, "odd"):
            continue  # the seed asks for those of FP16; odd takes the longest, and differs in conversion alone
        check(emulator, algo, problem.but(dtype=dtype))


@pytest.mark.parametrize("algo", emulated_algos())
def test_random_problems(emulator: Emulator, algo: str) -> None:
    orders = ("ascending", "descending", "alternate")
    for number, problem in enumerate(random_problems(RANDOM_PROBLEMS, 5, dtypes_of(algo), LARGEST)):
        check(emulator, algo, problem, orders[number % 3])


@pytest.mark.parametrize("capability", [86, 90])
@pytest.mark.parametrize("algo", [algo for algo in emulated_algos() if algo.startswith("mma_sync")])
def test_blocks_that_touch_no_edge(emulator: Emulator, algo: str, capability: int) -> None:
    """They take a path of their own, for which a problem needs more than one tile; 8.6 has less shared memory."""
    for layout in ("NN", "NT", "TN", "TT"):
        for m, n, k in [(256, 128, 448), (300, 264, 456)]:
            problem = Problem("inside", m, n, k, layout=layout, distribution="integers")
            check(emulator, algo, problem, capability=capability)


def test_random_problems_cover_what_they_should() -> None:
    problems = list(random_problems(RANDOM_PROBLEMS, 5, largest=LARGEST))
    assert {problem.k % 16 for problem in problems} == {0, 1, 9, 15}
    assert {problem.layout for problem in problems} == {"NN", "NT", "TN", "TT"}
    assert any(problem.offset_a % 2 and problem.lda % 2 for problem in problems)


@pytest.mark.parametrize("algo", [algo for algo in emulated_algos() if takes_75(algo)])
def test_the_path_before_sm_80(emulator_75: Emulator, algo: str) -> None:
    """No cp.async; BF16 is for the FP32 rung alone there."""
    dtype = "float16" if "float16" in dtypes_of(algo) else "float32"
    for problem in (CASES["small"], CASES["onefrag"], SHORT_SKINNY.but(m=256, k=512)):
        check(emulator_75, algo, problem.but(dtype=dtype), capability=75)
    for problem in random_problems(40, 6, (dtype,), LARGEST):
        check(emulator_75, algo, problem, capability=75)


def test_odd_is_quick(emulator: Emulator) -> None:
    """611 x 613 x 617 on wmma_staged, with checks and counts, in 3 CPU seconds."""
    built = build(CASES["odd"])
    result = emulator.run("wmma_staged", built.a, built.b, out=built.c)
    assert result.cpu_seconds < 3


@pytest.mark.parametrize("case", ["adversarial", "odd"])  # by 16 bytes, and by element
def test_reads_are_those_that_the_kernel_declares(emulator: Emulator, case: str) -> None:
    for algo in emulated_algos():
        built = build(CASES[case].but(dtype=dtypes_of(algo)[0]))
        result = emulator.run(algo, built.a, built.b, out=built.c)
        assert result.counts.reads_per_thread == result.declared_reads, algo


def test_every_row_of_the_table_is_emulated_or_named_here() -> None:
    outside = {rung.algo for rung in rungs().values() if not rung.emulated}
    assert outside <= {"wgmma"}, "the emulator knows no TMA and no wgmma; all else it must run"


def test_the_sources_are_those_that_nvcc_compiles() -> None:
    kernels = Path(source_root() / "csrc/kernels")
    assert {rung.source for rung in rungs().values()} == set(kernels.glob("*.cu"))
