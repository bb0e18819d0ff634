"""The whole run on a made-up device: what is checked, what is timed, what the result file says."""

import pytest
import synthetic
import torch

from bench import compare, results
from bench.__main__ import main
from bench.problems import Problem
from bench.timing import Effort

CUBE = Problem("square", 48, 32, 40)


def _run(problems=(CUBE,), algos=None, total_seconds=None, path=None):
    session = compare.begin(algos, Effort(repeats=6), "python -m bench compare", say=lambda line: None)
    return compare.run(list(problems), session, path, total_seconds)


def _row(document, algo, **fields):
    found = [r for r in document["rows"] if r["algo"] == algo and all(r[name] == v for name, v in fields.items())]
    assert len(found) == 1
    return found[0]


def test_a_run_gives_a_valid_file(fake, tmp_path):
    document = _run([CUBE, Problem("odd", 7, 9, 11, layout="TN", pad_a=1, offset_b=3)], path=tmp_path / "x.json")
    assert results.load(tmp_path / "x.json") == document
    assert [row["algo"] for row in document["rows"]] == ["auto", "wmma_staged"] * 2
    assert document["unfit"] == [] and document["meta"]["complete"]


def test_gradients_are_not_recorded_while_timing(fake, monkeypatch):
    seen = []
    monkeypatch.setattr(compare.host, "per_call", lambda: seen.append(torch.is_grad_enabled()) or [])
    _run()
    assert seen == [False] and torch.is_grad_enabled()


def test_times_and_ratios(fake):
    row = _row(_run(), "wmma_staged")
    wanted = {"us": 40.0, "cublas_us": 10.0, "ratio": 0.25, "tflops": 2 * 48 * 32 * 40 / 40.0 / 1e6}
    wanted |= {"torch_us": 11.0, "cublaslt_us": 9.0, "torch_half_us": 11.0, "hot_us": 40.0, "cublas_hot_us": 10.0}
    wanted |= {"torch_ratio": 10 / 11, "cublaslt_ratio": 10 / 9}
    assert {name: row[name] for name in wanted} == pytest.approx(wanted)
    assert (row["repeats"], row["cv"]) == (6, pytest.approx(0, abs=1e-9))
    assert row["floor_us"] > 0 and row["checked"] == "every" and row["chosen"] == "wmma_staged"
    assert _row(_run(), "auto")["chosen"] == "wmma_staged"


def test_accuracy_is_of_an_fp32_product(fake):
    row = _row(_run(), "auto")
    for name in ("max_err", "cublas_max_err", "max_err_01", "cublas_max_err_01"):
        assert 0 < row[name] < 40
    assert abs(row["bias"]) < row["max_err"]


def test_what_is_wrong_is_not_timed(fake):
    fake.broken.add("wmma_staged")
    document = _run()
    row = _row(document, "wmma_staged")
    assert row["us"] is None and row["ratio"] is None and "1 elements" in row["failed"]
    assert fake.clock.log.count("wmma_staged") == 2  # its check on [-1, 1] and on [0, 1] data
    assert _row(document, "auto")["us"] == pytest.approx(20.0)
    assert results.problems_of("x", document) == []


def test_a_result_with_a_nan_is_wrong(fake, monkeypatch):
    import fake_device

    def spoiled(a, b):
        c = a.float() @ b.float()
        c[0, 0] = torch.nan
        return c

    matched = fake_device.calls.matched
    monkeypatch.setattr(fake_device.calls, "ours", lambda a, b, algo: lambda: spoiled(a, b))
    document = _run()
    assert fake_device.calls.matched is matched
    row = _row(document, "auto")
    assert row["us"] is None and row["max_err"] is None
    assert results.problems_of("x", document) == []


def test_a_wrong_baseline_ends_the_run(fake, tmp_path):
    fake.broken.add("cublas")
    document = _run(path=tmp_path / "x.json")
    assert document["rows"] == []
    assert any("cuBLAS itself is wrong" in text for text in document["unfit"])
    assert results.load(tmp_path / "x.json")["unfit"] == document["unfit"]


def test_a_wrong_proposal_of_cublaslt_does_not_count(fake):
    fake.broken.add("lt")
    assert _row(_run(), "auto")["cublaslt_us"] == pytest.approx(11.0)


def test_a_refusal_is_listed_with_its_reason(fake):
    skipped = _run([CUBE.but(pad_a=1)])["skipped"]
    assert [(entry["algo"], entry["reason"]) for entry in skipped] == [("wmma_global", "it does not like this")]
    assert skipped[0]["problem"].endswith(" lda+1")


def test_a_rung_that_takes_too_long_is_skipped(fake):
    fake.costs["wmma_staged"] = 0.6e6
    document = _run()
    assert {row["algo"] for row in document["rows"]} == {"auto"}
    assert any("600 ms" in entry["reason"] for entry in document["skipped"])


def test_a_call_that_cannot_be_captured_costs_a_column(fake, monkeypatch):
    def refuse(calls, count):
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(compare.timing, "hot", refuse)
    row = _row(_run(), "auto")
    assert row["hot_us"] is None and row["us"] == pytest.approx(20.0)


def test_only_auto_crosses_the_boundary(fake):
    document = _run([Problem("boundary", 32, n, 32, layout="NN") for n in (31, 32)])
    assert [(row["algo"], row["n"]) for row in document["rows"]] == [("auto", 31), ("auto", 32)]


def test_named_rungs_alone_are_measured(fake):
    assert [row["algo"] for row in _run(algos=["wmma_staged"])["rows"]] == ["wmma_staged"]


def test_fp32_is_held_against_halves(fake):
    row = _row(_run([CUBE.but(dtype="float32")]), "auto")
    assert (row["op"], row["dtype"], row["baseline_dtype"]) == ("sgemm", "float32", "float16")


def test_the_baseline_is_compared_with_itself(fake):
    document = _run()
    assert tuple(check["m"] for check in document["self_check"]) == compare.SELF_CHECK_SIZES
    for check in document["self_check"]:
        assert len(check["ratios"]) == 2 * compare.SELF_CHECK_SERIES  # before and after
        assert check["error_bar"] == pytest.approx(0, abs=1e-9)


def _judged(**changes):
    """The verdict on a good run in which one figure is changed."""
    session = compare.begin(None, Effort(repeats=6), "python -m bench compare", say=lambda line: None)
    session.document = synthetic.document(("quick",))
    for place, change in changes.items():
        for entry in session.document[place]:
            entry.update(change)
    return compare.verdict(session)


def test_a_good_run_is_fit(fake):
    assert _judged() == []


def test_a_baseline_that_differs_from_itself_makes_the_run_unfit(fake):
    assert _judged(self_check={"error_bar": 0.019}) == []
    assert [text.split(" differs")[0] for text in _judged(self_check={"error_bar": 0.021})] == [
        "cuBLAS against itself at 2048^3",
        "cuBLAS against itself at 4096^3",
    ]


def test_a_noisy_baseline_makes_the_run_unfit(fake):
    assert _judged(rows={"cublas_cv": 0.049}) == []
    assert "CV is over 5%" in _judged(rows={"cublas_cv": 0.051})[0]


def test_a_time_limit_ends_the_run_and_says_so(fake):
    document = _run([CUBE] * 3, total_seconds=1e-9)
    assert document["rows"] == []
    assert any("3 problems were left out" in text for text in document["unfit"])


def test_a_fault_keeps_what_was_measured(fake, tmp_path, monkeypatch):
    real = compare.one_problem

    def faulty(problem, session):
        if problem.name == "odd":
            raise RuntimeError("CUDA error: an illegal memory access was encountered")
        real(problem, session)

    monkeypatch.setattr(compare, "one_problem", faulty)
    document = _run([CUBE, Problem("odd", 5, 5, 5)], path=tmp_path / "x.json")
    assert len(document["rows"]) == 2
    assert any("ended early, 1 of 2" in text and "illegal memory" in text for text in document["unfit"])
    assert results.load(tmp_path / "x.json") == document and not document["meta"]["complete"]


def test_a_problem_beyond_the_memory_is_left_out(fake, monkeypatch):
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (1000, 2**34))
    document = _run()
    assert document["rows"] == [] and "are free" in document["skipped"][0]["reason"]


def test_memory_that_runs_out_costs_one_problem(fake, monkeypatch):
    real = compare.Measurement

    def greedy(problem, session):
        if problem.name == "large":
            raise torch.OutOfMemoryError("no memory")
        return real(problem, session)

    monkeypatch.setattr(compare, "Measurement", greedy)
    document = _run([Problem("large", 5, 5, 5), CUBE])
    assert {row["class"] for row in document["rows"]} == {"square"} and document["meta"]["complete"]
    assert any(entry["reason"] == "the device's memory ran out" for entry in document["skipped"])


def test_the_command_measures_shows_and_writes(fake, tmp_path, monkeypatch, capsys):
    words = "compare --shape 16,24,32 --layout NN,TT --dtype bfloat16 --pad-a 1 --algo auto --repeats 6"
    words += f" --json {tmp_path}/x.json --report {tmp_path}/report.md --plots {tmp_path}/plots"
    monkeypatch.setattr("sys.argv", ["bench", *words.split()])
    assert main() == 0
    document = results.load(tmp_path / "x.json")
    assert [(row["layout"], row["lda"]) for row in document["rows"]] == [("NN", 33), ("TT", 17)]
    assert str(tmp_path) not in document["meta"]["command"] and "--json x.json" in document["meta"]["command"]
    out = capsys.readouterr().out
    assert "16,24,32 TT bf16 lda+1" in out and "Error bar" in out and "schema" not in out
    assert "](plots/percent_of_cublas.png)" in (tmp_path / "report.md").read_text()


def test_a_wrong_rung_shows_in_the_exit_status(fake, monkeypatch, capsys):
    fake.broken.add("auto")
    monkeypatch.setattr("sys.argv", ["bench", "compare", "--shape", "16,16,16"])
    assert main() == 1
    assert "FAILED" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--set nothing", "no set called"),
        ("--shape 1,2", "m,n,k"),
        ("--algo nothing", "no algo called"),
        ("--set router --layout TT", "no problem has"),
        ("--shape 1,2,3 --layout XX", "must be one of"),
    ],
)
def test_a_wrong_command_says_what_there_is(fake, monkeypatch, capsys, words, text):
    monkeypatch.setattr("sys.argv", ["bench", "compare", *words.split()])
    assert main() == 2
    assert text in capsys.readouterr().err


def test_without_a_gpu_nothing_is_measured_and_said_so(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr("sys.argv", ["bench", "compare", "--json", str(tmp_path / "x.json")])
    assert main() == 0
    assert "nothing was measured" in capsys.readouterr().out and not list(tmp_path.iterdir())
