"""The command line, end to end on CPU tensors, and the result file against its schema."""

import json
from pathlib import Path

import jsonschema
import pytest
import torch

import tcgemm.gate
from tcgemm.gate import cases, main, run
from tcgemm.gate.cases import Row
from tcgemm.gate.predictions import load
from tcgemm.gate.run import Report
from tcgemm.gate.subjects import rungs
from tcgemm.gate.sweep import Shape
from tcgemm.gate.timing import CUBLAS, FP32_NAME, Time

SCHEMA = json.loads((Path(tcgemm.gate.__file__).parent / "gate.schema.json").read_text())
ROOT = Path(__file__).resolve().parents[2]


def problems_of(document: dict) -> list[str]:
    return [error.message for error in jsonschema.Draft202012Validator(SCHEMA).iter_errors(document)]


@pytest.fixture
def two_cases(monkeypatch):
    monkeypatch.setattr(cases, "CPU_LARGEST", 16**3)  # unit and onefrag


def test_a_run_writes_a_valid_file(two_cases, tmp_path, capsys):
    file = tmp_path / "out" / "gate.json"
    assert main(["--device", "cpu", "--algo", "wmma_staged", "--algo", "auto", "--json", str(file)]) == 0
    document = json.loads(file.read_text())
    assert problems_of(document) == []
    assert document["meta"]["command"].endswith(" --algo auto --json gate.json")
    assert [(row["algo"], row["case"], row["passed"]) for row in document["rows"]] == [
        ("wmma_staged", "unit", True),
        ("wmma_staged", "onefrag", True),
        ("auto", "unit", True),
        ("auto", "onefrag", True),
    ]
    assert document["tier"] == {} and [p["held"] for p in document["predictions"]] == [None] * 4
    said = capsys.readouterr().out
    assert "K = 16: term = 4 * 2^-23 * 4 = 1.907e-06" in said and "Predictions" in said and "No GPU" in said


def test_a_wrong_result_fails_the_gate(two_cases, monkeypatch):
    monkeypatch.setattr("tcgemm.gate.subjects.Rung.run", lambda self, built: built.c.zero_())
    assert main(["--device", "cpu", "--algo", "auto"]) == 1


def test_an_unknown_rung_is_no_stack_trace(capsys):
    assert main(["--device", "cpu", "--algo", "nonsense"]) == 2
    assert capsys.readouterr().err.startswith("tcgemm gate: no kernel is called nonsense; there are ")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_cuda_without_a_device(capsys):
    assert main(["--device", "cuda"]) == 2
    assert capsys.readouterr().err == "tcgemm gate: there is no CUDA device\n"


# ---------------------------------------------------------------- claims


def rows(algo: str = "auto", dtype: str = "float16", reads: int = 512, **wrong: bool | None) -> list[Row]:
    return [
        Row(algo, "k", p.name, dtype, p.m, p.n, p.k, wrong.get(p.name, True), "right", 0.0, 0.0, 1e-6, reads, 528.0)
        for p in cases.GATE_CASES
    ]


def claimed(all_rows: list[Row], pct: float = 60.0, ratio: float = 5.0, cv: float = 0.01, capability: int = 90) -> str:
    times = [
        Time(CUBLAS, 4096, "uniform", 1.0, 0.01, 60, 1.0, 100.0, ratio),
        Time("auto", 4096, "uniform", 1.0, cv, 60, 1.0, pct, ratio),
        Time("auto", 4096, "normal", 1.0, 9.0, 60, 1.0, 1.0, 0.1),
        Time("auto", 1024, "uniform", 1.0, 9.0, 60, 1.0, 1.0, 0.1),
    ]
    report = Report(capability, rows=all_rows, times=times)
    run.claim(report, rungs(["auto"]))
    return report.tiers["auto"]


def test_the_claim_is_made_on_perf():
    assert claimed(rows()) == "gold"
    assert claimed(rows(), cv=0.05) == "silver"
    assert claimed(rows(reads=529)) == "bronze"
    assert claimed(rows(), pct=29.9) == "bronze"
    assert claimed(rows(), ratio=1.0) == "pass"
    assert claimed(rows(odd=False)) == "none"
    assert claimed(rows(odd=None)) == "none", "a refused case is not met"
    assert claimed(rows()[:-1]) == "none", "all eight"
    assert claimed(rows(), capability=86) == "no tier defined"


def test_a_refusal_does_not_fail_the_gate_and_a_wrong_case_does():
    assert Report(90, rows=rows(odd=None)).correct
    assert not Report(90, rows=rows(odd=False)).correct
    assert not Report(90, rows=rows(), failures=["cublasGemmEx at 1024: wrong"]).correct


# ---------------------------------------------------------------- the schema


def document() -> dict:
    meta = {
        "gpu": "NVIDIA H200", "driver": "580", "cuda": "13.0", "torch": "2.11.0", "cublas": "13.1.0",
        "sm_clock_mhz": 1980, "date": "2026-11-30T00:00:00Z", "csrc_tree": "0" * 40, "command": "python -m tcgemm gate",
    }  # fmt: skip
    report = Report(
        90,
        rows=rows(),
        shapes=[Shape("wmma_staged", "32x64", 127, 0, 14000, 256, 2, 0.25, 90)],
        times=[Time(FP32_NAME, 1024, "uniform", 1.0, 0.01, 60, 1.0, 10.0, 1.0)],
        tiers={"auto": "gold"},
        predictions=load(),
    )
    return json.loads(json.dumps(report.as_dict(meta)))


def test_a_full_document_is_valid():
    assert problems_of(document()) == []


@pytest.mark.parametrize(
    "change",
    [
        lambda d: d.pop("tier"),
        lambda d: d["meta"].pop("driver"),
        lambda d: d["rows"][0].pop("limit"),
        lambda d: d["rows"][0].update(dtype="float64"),
        lambda d: d["rows"][0].update(max_err="NaN"),
        lambda d: d["tier"].update(auto="platinum"),
        lambda d: d["times"][0].update(repeats=49),
        lambda d: d["sweep"][0].update(registers=256),
        lambda d: d["predictions"][0].pop("failed_assumption"),
        lambda d: d.update(extra=1),
    ],
)
def test_a_broken_document_is_not(change):
    broken = document()
    change(broken)
    assert len(problems_of(broken)) == 1


COMMITTED = sorted(ROOT.glob("bench/results/*/gate.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=str)
def test_committed_results_are_valid(path):
    assert problems_of(json.loads(path.read_text())) == []
