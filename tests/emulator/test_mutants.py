"""Kernels with one thing wrong: each must be caught, by the check that is there for it.

A mutant is made here, by replacing text in a copy of the sources. REACHED in the new text becomes a call that shows
that the case ran the changed line: a mutant that nobody executes proves nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import torch
from mutants import MUTANTS, WRONG_RESULT, Mutant

from bench.problems import Problem, build
from tcgemm.emulator import Emulator, program, rungs
from tcgemm.emulator.build import source_root


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for copies of csrc/."""
    return tmp_path_factory.mktemp("mutants")


def mutated(mutant: Mutant, folder: Path) -> Path:
    """The mutant's kernel file, in a copy of csrc/."""
    csrc = folder / "csrc"
    shutil.rmtree(csrc, ignore_errors=True)
    shutil.copytree(
        source_root() / "csrc", csrc, ignore=shutil.ignore_patterns("*.cpp", "torch", "reference", "baseline")
    )
    for file, old, new in mutant.changes:
        text = (csrc / file).read_text()
        assert text.count(old) == 1, f"{file} holds {text.count(old)} times: {old}"
        (csrc / file).write_text(text.replace(old, new))
    return csrc / "kernels" / rungs()[mutant.algo].source.name


def faults(executable: Path, algo: str, problem: Problem) -> tuple[set[str], int]:
    """What the run reports, with a wrong result among it, and how often the changed line ran."""
    built = build(problem)
    with Emulator(executable) as emulator:
        result = emulator.run(algo, built.a, built.b, out=built.c)
    found = {finding.fault for finding in result.findings}
    exact = built.a.double() @ built.b.double()
    if not torch.equal(built.c.double(), exact):
        found.add(WRONG_RESULT)
    return found, result.reached


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_mutant_is_caught(mutant: Mutant, tree: Path) -> None:
    found, reached = faults(program([mutated(mutant, tree)]), mutant.algo, mutant.problem)
    assert reached > 0, "the case does not reach the changed line"
    assert mutant.caught_by in found


@pytest.mark.parametrize("algo", sorted({mutant.algo for mutant in MUTANTS}))
def test_the_same_cases_pass_unchanged(algo: str) -> None:
    executable = program()
    for problem in {mutant.problem for mutant in MUTANTS if mutant.algo == algo}:
        assert faults(executable, algo, problem) == (set(), 0), problem
