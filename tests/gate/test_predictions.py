"""The predictions: required, reasoned, held against the results, explained in the seed's terms."""

import json
import shutil

import pytest

from tcgemm.gate import main, predictions
from tcgemm.gate.predictions import Prediction, PredictionError, lint, load, settle
from tcgemm.gate.timing import FP32_NAME, Time


def time(algo: str, n: int, ms: float, distribution: str = "uniform") -> Time:
    return Time(algo, n, distribution, ms, 0.01, 60, 1.0, 1.0, 1.0)


TIMES = [
    time("wmma_global", 1024, 0.2),
    time("wmma_global", 2048, 0.9),
    time("wmma_staged", 2048, 0.3),
    time(FP32_NAME, 1024, 0.3),
    time(FP32_NAME, 2048, 0.8),
    time("wmma_staged", 4096, 1.0),
    time("wmma_staged_32x32", 4096, 1.2),
    time("wmma_staged_64x64", 4096, 1.1),
    time("wmma_staged_64x64", 4096, 0.1, "normal"),
]


@pytest.fixture
def copy(tmp_path):
    return shutil.copy(predictions.FILE, tmp_path / "predictions.toml")


def test_the_committed_file_is_fit():
    loaded = load()
    assert [p.id for p in loaded] == ["global_beats_fp32", "staging_gain", "warp_tile", "unguarded_tail"]
    assert all(p.reason and p.expects for p in loaded)


def test_the_gate_refuses_to_run_without_predictions(tmp_path, capsys):
    assert main(["--device", "cpu", "--predictions", str(tmp_path / "none.toml")]) == 2
    said = capsys.readouterr()
    assert "write down your four predictions" in said.err and said.out == ""


def test_a_prediction_without_a_reason_is_refused(copy):
    lines = copy.read_text().splitlines()
    copy.write_text("\n".join('reason = " "' if line.startswith("reason") else line for line in lines))
    with pytest.raises(PredictionError, match="has no reason"):
        load(copy)


def test_a_missing_question_is_refused(copy):
    copy.write_text(copy.read_text().replace("[warp_tile]", "[another]"))
    with pytest.raises(PredictionError, match=r"\[warp_tile\] has no question"):
        load(copy)


def test_a_broken_file_is_refused(copy):
    copy.write_text("[warp_tile\n")
    with pytest.raises(PredictionError, match=r"predictions\.toml"):
        load(copy)


@pytest.mark.parametrize("text", ["It was launch overhead.", "Overheads"])
def test_the_banned_word_is_no_explanation(copy, text):
    assert lint([Prediction("warp_tile", "q", "p", "r", {}, failed_assumption=text)]) != []
    copy.write_text(copy.read_text().replace('failed_assumption = ""', f'failed_assumption = "{text}"', 1))
    with pytest.raises(PredictionError, match="overhead"):
        load(copy)


def test_an_explanation_in_the_seeds_terms_is_fine():
    text = "64x64 holds 128 accumulators a lane, yet the registers still let two blocks stay on an SM."
    assert lint([Prediction("warp_tile", "q", "p", "r", {}, failed_assumption=text)]) == []


def test_outcomes_come_from_the_results():
    loaded = load()
    settle(loaded, TIMES, ("wrong", "374543 of 374543 elements wrong"))
    held = {p.id: p.held for p in loaded}
    assert held == {
        "global_beats_fp32": False,  # 0.9 ms against 0.8 at 2048
        "staging_gain": True,  # 3 times
        "warp_tile": True,
        "unguarded_tail": True,
    }
    outcome = {p.id: p.outcome for p in loaded}
    assert outcome["global_beats_fp32"].startswith("1024: wmma_global 0.200 ms, FP32 0.300 ms; 2048: wmma_global 0.9")
    assert outcome["staging_gain"] == "2048: 3.00 times"
    assert outcome["warp_tile"] == "4096: 32x32 1.200 ms, 32x64 1.000 ms, 64x64 1.100 ms"
    assert outcome["unguarded_tail"] == "wrong: 374543 of 374543 elements wrong"


def test_another_winner_fails_the_prediction():
    loaded = load()
    settle(loaded, [*TIMES[:5], time("wmma_staged", 4096, 1.0), time("wmma_staged_32x32", 4096, 0.9),
                    time("wmma_staged_64x64", 4096, 1.1)], None)  # fmt: skip
    assert {p.id: p.held for p in loaded}["warp_tile"] is False


def test_what_was_not_measured_stays_open():
    loaded = load()
    settle(loaded, [], None)
    assert all(p.held is None for p in loaded)
    assert "not measured" in loaded[0].outcome and "--unguarded" in loaded[3].outcome


def test_record_writes_outcomes_and_nothing_else(copy, tmp_path):
    before = copy.read_text().splitlines()
    settled = load(copy)
    settle(settled, TIMES, ("wrong", 'it said "no"'))
    results = tmp_path / "gate.json"
    results.write_text(json.dumps({"predictions": [p.as_dict() for p in settled]}))
    assert main(["--record", str(results), "--predictions", str(copy)]) == 0
    changed = [(old, new) for old, new in zip(before, copy.read_text().splitlines(), strict=True) if old != new]
    assert len(changed) == 4 and all(old.startswith("outcome = ") for old, _ in changed)
    again = {p.id: p.outcome for p in load(copy)}
    assert again["warp_tile"].startswith("as predicted. 4096: 32x32")
    assert again["global_beats_fp32"].startswith("not as predicted. ")
    assert again["unguarded_tail"] == 'as predicted. wrong: it said "no"'


def test_record_leaves_what_was_not_settled(copy, tmp_path):
    before = copy.read_text()
    results = tmp_path / "gate.json"
    results.write_text(json.dumps({"predictions": [p.as_dict() for p in load(copy)]}))
    assert main(["--record", str(results), "--predictions", str(copy)]) == 0
    assert copy.read_text() == before


def test_record_without_a_file_is_no_stack_trace(copy, capsys):
    assert main(["--record", "/nonexistent/gate.json", "--predictions", str(copy)]) == 2
    assert "/nonexistent/gate.json" in capsys.readouterr().err


def test_the_reader_is_asked_first(monkeypatch):
    from tcgemm.gate.report import console_of
    from tcgemm.gate.solve.grade import ask

    answers = iter(["yes", "more SMs", "", "32x64", "registers", "wrong sums", "the next row"])
    console = console_of()
    monkeypatch.setattr(console, "input", lambda text: next(answers))
    assert [(p.id, p.prediction, p.reason) for p in ask(console)] == [
        ("global_beats_fp32", "yes", "more SMs"),
        ("warp_tile", "32x64", "registers"),
        ("unguarded_tail", "wrong sums", "the next row"),
    ]
