"""pytest -m gate: the eight cases of every rung and of solve() on the GPU."""

from functools import lru_cache

import pytest
import torch

from bench.problems import GATE_CASES
from tcgemm import _library
from tcgemm.gate import cases, facts, sweep
from tcgemm.gate.run import DTYPES
from tcgemm.gate.solve.build import C_NAME, Solve
from tcgemm.gate.solve.grade import grade_solve
from tcgemm.gate.subjects import rungs
from tcgemm.gate.tiers import tier
from tcgemm.gate.timing import CUBLAS, FP32_NAME, compare

pytestmark = [pytest.mark.gate, pytest.mark.gpu]

RUNGS = rungs()
GRADED = [
    pytest.param(rung, problem.but(dtype=dtype), id=f"{rung.name}-{dtype}-{problem.name}")
    for dtype in DTYPES
    for problem in GATE_CASES
    for rung in RUNGS
    if dtype in rung.dtypes and (dtype != "bfloat16" or problem.name not in cases.BITWISE_CASES)
]


def gpu() -> torch.device:
    return torch.device("cuda", torch.cuda.current_device())


@lru_cache(maxsize=1)  # the rungs of a case follow one another
def outcomes(problem) -> dict[str, cases.Row]:
    takers = [rung for rung in RUNGS if problem.dtype in rung.dtypes]
    return {row.algo: row for row in cases.run_problem(problem, takers, gpu())}


@pytest.mark.parametrize("rung, problem", GRADED)
def test_case(rung, problem):
    row = outcomes(problem)[rung.name]
    if row.passed is None:
        pytest.skip(row.verdict)
    assert row.passed, row.verdict
    assert row.chosen == rung.name or rung.name == "auto"


def test_auto_takes_every_case():
    """A named rung may refuse what it cannot do; auto may not."""
    for problem in GATE_CASES:
        assert not facts.explain(None, problem, gpu()).refused, problem.name


def test_solve():
    grade = grade_solve(Solve(_library.path_of("tcgemm_cuda"), C_NAME), gpu(), timeout=60)
    assert [row.case for row in grade.rows] == [problem.name for problem in GATE_CASES]
    assert all(row.passed for row in grade.rows), [row.verdict for row in grade.rows]
    assert grade.notes == []
    assert {time.algo for time in grade.times} == {"solve", CUBLAS, FP32_NAME}


def test_times_are_taken_of_what_is_right_alone():
    from bench.timing import Timer

    class Broken:
        name = "broken"

        def explain(self, problem, device):
            return facts.explain(None, problem, device)

        def run(self, built):
            built.c.zero_()

    taken, failures = compare(512, "uniform", [*rungs(["wmma_staged"]), Broken()], gpu(), Timer())
    assert [time.algo for time in taken] == [CUBLAS, FP32_NAME, "wmma_staged"]
    assert len(failures) == 1 and failures[0].startswith("broken at 512, uniform: ")
    assert all(time.ms > 0 and time.repeats >= 50 for time in taken)
    assert taken[0].pct_cublas == 100 and taken[1].ratio_fp32 == 1


def test_the_three_shapes_fit_and_do_not_spill():
    shapes = sweep.shapes(gpu())
    assert [(s.warp_tile, s.threads) for s in shapes] == [("32x32", 512), ("32x64", 256), ("64x64", 128)]
    most = torch.cuda.get_device_properties(gpu()).max_threads_per_multi_processor
    for shape in shapes:
        assert shape.local_bytes == 0, f"{shape.algo} spills {shape.local_bytes} bytes a thread"
        assert 0 < shape.registers <= 255 and shape.blocks_per_sm >= 1
        assert shape.occupancy == pytest.approx(shape.blocks_per_sm * shape.threads / most)


def test_this_device_has_a_tier_or_says_so():
    capability = facts.device_info(gpu())["capability"]
    claimed = tier(
        capability, all_correct=True, faster_than_fp32=True, budget_met=True, pct_cublas=100.0, cv=0.0
    )  # fmt: skip
    assert claimed in ("gold", "no tier defined")
