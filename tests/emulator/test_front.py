"""The front doors: the command line, the Python function, someone's own solve(), the gate."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from support import ROOT
from tcgemm.emulator import BuildError, Emulator, EmulatorError, program, run_problem

SOLVE = Path(__file__).with_name("own_solve.cu")


def command(*arguments: object) -> subprocess.CompletedProcess:
    line = [sys.executable, "-m", "tcgemm", *map(str, arguments)]
    return subprocess.run(line, cwd=ROOT, capture_output=True, text=True, timeout=600)


def test_the_command_prints_checks_and_counts(tmp_path: Path) -> None:
    out, trace = tmp_path / "out.json", tmp_path / "trace.json"
    done = command(
        "emulate", "--algo", "wmma_staged", "--m", 100, "--n", 70, "--k", 41, "--json", out, "--trace", trace
    )
    assert done.returncode == 0, done.stderr
    for text in ("wmma_staged.cu:", "fragment_load", "global_load", "findings: 0", "result: right", "4.00"):
        assert text in done.stdout
    answer = json.loads(out.read_text())
    assert answer["passed"] and answer["load_sectors"] > 0 and answer["findings"] == []
    assert json.loads(trace.read_text())["kernel"] == "wmma_staged"


def test_a_wrong_kernel_is_a_failure_with_its_place(tmp_path: Path) -> None:
    wrong = tmp_path / "solve.cu"
    wrong.write_text(SOLVE.read_text().replace("kk < k;", "kk <= k;"))
    done = command("emulate", "--solve", wrong, "--m", 9, "--n", 10, "--k", 11)
    assert done.returncode == 1
    line = (
        wrong.read_text()
        .splitlines()
        .index("    const float x = static_cast<float>(static_cast<__half>(a[row * k + kk]));")
    )
    assert f"out_of_bounds: solve.cu:{line + 1}: block 0, warp 2, lane" in done.stdout
    assert "A[99] (row 8, column 11) of 9x11" in done.stdout


def test_own_solve_with_either_linkage(tmp_path: Path) -> None:
    with_c = tmp_path / "with_c.cu"
    with_c.write_text(SOLVE.read_text().replace("void solve(", 'extern "C" void solve('))
    for source in (SOLVE, with_c):
        done = command("emulate", "--solve", source, "--m", 33, "--n", 20, "--k", 50)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "result: right" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--algo", "nothing"), "wmma_staged"),
        (("--m", 0), "nothing to run"),
        (("--solve", SOLVE, "--layout", "NN"), "column-major"),
        (("--solve", "missing.cu"), "missing.cu"),
        (("--algo", "wmma_staged", "--dtype", "float32"), "it does not multiply float32"),
    ],
)
def test_what_cannot_run_is_said(arguments: tuple, said: str) -> None:
    done = command("emulate", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_the_function_takes_tensors_as_they_are() -> None:
    """Strides, storage offsets and stride 0 count; the result is the product."""
    base = torch.randint(-3, 4, (40, 60)).half()
    for a, b in (
        (base[1:34, 3:50], torch.randint(-3, 4, (47, 21)).half()),
        (base.t()[:, 1:9], torch.randint(-3, 4, (21, 8)).half().t()),
        (torch.ones(1, dtype=torch.float16).expand(17, 33), torch.randint(-3, 4, (33, 5)).half()),
    ):
        result = run_problem("wmma_staged", a, b)
        assert result.findings == []
        assert torch.equal(result.c.double(), a.double() @ b.double())


def test_k_of_zero_gives_zeros() -> None:
    result = run_problem("wmma_staged", torch.empty(5, 0).half(), torch.empty(0, 7).half())
    assert result.findings == []
    assert torch.equal(result.c, torch.zeros(5, 7))


def test_a_program_that_dies_is_an_error(tmp_path: Path) -> None:
    wild = tmp_path / "wild.cu"
    wild.write_text(SOLVE.read_text().replace("  float sum = 0.0f;", "  float sum = *reinterpret_cast<float*>(8);"))
    a, b = torch.zeros(4, 4).half(), torch.zeros(4, 4).half().t()
    with Emulator(program([wild])) as emulator, pytest.raises(EmulatorError, match="signal 11"):
        emulator.run("solve", a, b)


def test_a_source_that_does_not_compile_shows_the_compilers_words(tmp_path: Path) -> None:
    broken = tmp_path / "broken.cu"
    broken.write_text(SOLVE.read_text().replace("c[i] = sum;", "c[i] += sum;"))
    with pytest.raises(BuildError, match=r"operator\+="):
        program([broken])


def test_the_gate_runs_on_the_emulator_and_names_what_it_leaves_out(tmp_path: Path) -> None:
    done = command("gate", "--device", "emulator", "--algo", "wmma_staged_64x64", "--json", tmp_path / "gate.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Not run: square, perf" in done.stdout
    rows = json.loads((tmp_path / "gate.json").read_text())["rows"]
    assert {row["case"] for row in rows if row["passed"]} == {
        "unit",
        "onefrag",
        "small",
        "odd",
        "skinny",
        "adversarial",
    }


def test_a_rung_that_finds_something_fails_the_gate(monkeypatch: pytest.MonkeyPatch) -> None:
    from bench.problems import GATE_CASES
    from tcgemm.emulator import gate
    from tcgemm.emulator.run import Finding
    from tcgemm.gate.cases import run_problem as run_case

    class Careless(Emulator):
        def run(self, *arguments: object, **options: object):
            result = super().run(*arguments, **options)
            result.findings.append(Finding("race", "made up", "kernels/x.cu", 1, 0, 0, 0, 0, 1))
            return result

    monkeypatch.setattr(gate, "Emulator", Careless)
    (row,) = run_case(GATE_CASES[0], gate.subjects(["wmma_staged"]), torch.device("cpu"))
    assert row.passed is False
    assert "race: kernels/x.cu:1" in row.verdict


def test_the_manual_lists_every_finding() -> None:
    source = (ROOT / "csrc/emulator/session.cpp").read_text()
    names = re.findall(r'return "(\w+)";', source)
    assert len(names) == 14
    manual = (ROOT / "docs/emulator.md").read_text()
    assert [name for name in names if f"`{name}`" not in manual] == []
