"""How one case becomes a row: planted subjects that are wrong in one way each, and the op on CPU tensors."""

import pytest
import torch

from bench.problems import Problem
from tcgemm.gate import cases
from tcgemm.gate.cases import Row
from tcgemm.gate.check import length_term
from tcgemm.gate.subjects import rungs

CPU = torch.device("cpu")


class Planted:
    """A subject that does something to the problem in memory."""

    name = "planted"

    def __init__(self, run):
        self.run = run

    def explain(self, problem, device):
        return rungs(["auto"])[0].explain(problem, device)


def only(problem: Problem, run) -> Row:
    (row,) = cases.run_problem(problem, [Planted(run)], CPU)
    return row


def right(built):
    built.c.copy_(built.a.double() @ built.b.double())


UNIT, ODD = (Problem("unit", 16, 16, 16, distribution="integers"), Problem("small", 11, 13, 17))


@pytest.mark.parametrize("problem", [UNIT, ODD])
def test_a_right_result_passes(problem):
    row = only(problem, right)
    assert row.passed is True and row.verdict == "right"
    assert row.length_term == length_term(problem.k)


def test_a_wrong_element_fails():
    def run(built):
        right(built)
        built.c[10, 12] += 0.1

    row = only(ODD, run)
    assert row.passed is False and "1 of 143 elements wrong, the first at [10, 12]" in row.verdict


def test_an_unwritten_element_fails():
    def run(built):
        built.c[:10].copy_((built.a.double() @ built.b.double())[:10])

    assert only(ODD, run).verdict == "13 elements of the result were never written"


def test_a_stray_write_fails_and_does_not_taint_the_next():
    def run(built):
        right(built)
        built.buffers["c"].storage[-1] = 0.0

    first, second = cases.run_problem(ODD, [Planted(run), Planted(right)], CPU)
    assert first.passed is False and first.verdict.startswith("out of bounds: c: 1 elements")
    assert second.passed is True


def test_an_exception_fails_with_its_first_line():
    def run(built):
        raise RuntimeError("tcgemm::mm: no\nmore")

    assert only(ODD, run).verdict == "raised: tcgemm::mm: no"


@pytest.mark.parametrize("name", ["auto", "wmma_staged", "simt_regtile_vec4"])
def test_the_op_passes_on_cpu(name):
    (rung,) = rungs([name])
    for dtype in rung.dtypes:
        for problem in cases.cases(dtype, CPU):
            if problem.name not in ("odd", "skinny"):
                (row,) = cases.run_problem(problem, [rung], CPU)
                assert row.passed is True, row


def test_bf16_has_the_tolerance_cases():
    device = torch.device("meta")
    assert [p.name for p in cases.cases("bfloat16", device)] == [
        "small", "odd", "skinny", "square", "adversarial", "perf",
    ]  # fmt: skip
    assert len(cases.cases("float16", device)) == len(cases.cases("float32", device)) == 8


def test_an_unknown_rung_lists_the_known():
    with pytest.raises(ValueError, match=r"no kernel is called nonsense; there are .*wmma_staged.*auto"):
        rungs(["nonsense"])
