"""The emulator and the GPU give the same bits where sums are exact."""

from __future__ import annotations

import pytest
import torch

from bench.problems import Problem, build, random_problems
from tcgemm.emulator import emulated_algos, run_problem

EXACT = (
    Problem("aligned", 256, 128, 192, distribution="integers", seed=11),
    Problem("ragged", 161, 113, 217, distribution="integers", seed=12),
    *(problem.but(distribution="integers") for problem in random_problems(6, 13, ("float16",), 150)),
)


@pytest.mark.gpu
@pytest.mark.parametrize("algo", emulated_algos())
def test_same_bits_on_integers(algo: str) -> None:
    single = algo.startswith("simt")
    for problem in EXACT:
        here = build(problem.but(dtype="float32") if single else problem)
        there = build(here.problem, "cuda")
        assert torch.equal(there.a.cpu(), here.a) and torch.equal(there.b.cpu(), here.b)
        op = torch.ops.tcgemm.sgemm_out if single else torch.ops.tcgemm.mm_out
        op(there.a, there.b, out=there.c, algo=algo)
        result = run_problem(algo, here.a, here.b)
        assert result.findings == []
        assert torch.equal(there.c.cpu(), result.c), problem
