import json
import shutil

import pytest
import synthetic

from bench import plot_style, publish, results
from bench.problems import Problem
from support import RUNGS

GATE = {
    "meta": synthetic.META,
    "rows": [
        {"algo": "wmma_staged", "case": "unit", "dtype": "float16", "passed": True},
        {"algo": "wmma_staged", "case": "odd", "dtype": "float16", "passed": False},
        {"algo": "wgmma", "case": "odd", "dtype": "float16", "passed": None},
        {"algo": "wgmma", "case": "odd", "dtype": "bfloat16", "passed": None},
    ],
    "tier": {"wmma_staged": "bronze", "wgmma": "none"},
    "times": [
        {"algo": algo, "n": n, "distribution": "uniform", "ms": ms, "pct_cublas": share}
        for n, ms in ((1024, 0.01), (2048, 0.1), (4096, 0.5))
        for algo, share in (("cublasGemmEx", 100.0), ("wmma_staged", 18.66))
    ],
    "predictions": [],
}


def _auto(ratio: float, *mnk: int, name: str = "router", **how: object) -> dict:
    return synthetic.row(Problem(name, *mnk, **how), "auto", ratio, 100.0, hot_us=50.0, cublas_hot_us=25.0)


def test_lines_gather_what_differs_in_layout_type_and_few_rows():
    rows = [_auto(0.4, 1, 256, 512), _auto(0.5, 64, 256, 512, layout="NN", dtype="bfloat16"), _auto(0.6, 512, 256, 512)]
    rows.append(_auto(0.2, 1, 256, 512, pad_a=4))
    rows += [_auto(1.2, 4096, n, 4096, name="boundary", layout="NN") for n in (4095, 4096, 4097)]
    rows.append(_auto(9.0, 8, 256, 512, dtype="float32"))  # another op
    rows.append(synthetic.row(Problem("router", 1, 256, 512), "wmma_staged", 9.0, 100.0))
    rows.append(_auto(9.0, 64, 64, 64, name="gate"))
    assert publish.auto_lines(synthetic.document(("quick",), rows=rows)) == [
        "| router | 1 to 64, 256, 512 | NT NN f16 bf16 | yes | 2 | `wmma_pipelined` | 40.0 to 50.0 | 50.0 |",
        "| router | 512, 256, 512 | NT f16 | yes | 1 | `wmma_pipelined` | 60.0 | 50.0 |",
        "| router | 1, 256, 512 | NT f16 lda+4 | no | 1 | `wmma_pipelined` | 20.0 | 50.0 |",
        "| boundary | 4096, 4095 to 4097, 4096 | NN f16 | no | 2 | `wmma_pipelined` | 120.0 | 50.0 |",
        "| boundary | 4096, 4096, 4096 | NN f16 | yes | 1 | `wmma_pipelined` | 120.0 | 50.0 |",
    ]


def test_unsteady_rows_are_left_out_and_counted(tmp_path):
    rows = [_auto(1.2, 16, 256, 512), _auto(9.0, 2, 256, 512)]
    rows[1] |= {"ratio_low": 6.0, "ratio_high": 12.0}
    document = synthetic.document(("quick",), rows=rows)
    assert publish.auto_lines(document) == [
        "| router | 16, 256, 512 | NT f16 | yes | 1 | `wmma_pipelined` | 120.0 | 50.0 |"
    ]
    assert publish.verdicts(document) == {"faster": 1, "equal": 0, "slower": 0}
    assert "Left out for unsteady times: 1." in " ".join(publish.compare_block(document, tmp_path, tmp_path).split())
    del document["rows"][1]
    assert "unsteady" not in publish.compare_block(document, tmp_path, tmp_path)


@pytest.mark.parametrize(
    ("how", "even"),
    [
        ({}, True),
        ({"pad_a": 8}, True),
        ({"pad_b": 4}, False),
        ({"offset_a": 1}, False),
        ({"offset_b": 4}, False),
        ({"offset_b": 8}, True),
    ],
)
def test_aligned_means_16_bytes(how, even):
    assert publish.aligned(_auto(1.0, 64, 64, 64, **how)) is even


def test_faster_and_slower_are_counted_beyond_the_error_bar():
    rows = [_auto(ratio, 64, 64, 64) for ratio in (1.005, 1.007, 0.995, 0.99, 0.98)]
    document = synthetic.document(("quick",), rows=rows)  # 100 us: nearest in time is 4096^3, whose bar is 0.4 %
    document["self_check"][-1]["error_bar"] = 0.006
    assert publish.verdicts(document) == {"faster": 1, "equal": 2, "slower": 2}


def test_the_gates_block_says_what_was_wrong_and_what_refused():
    text = publish.gate_block(GATE, "[g](g)")
    assert "(214.7, 171.8 and 274.9 TFLOP/s)" in text
    assert "| `wmma_staged` | 18.7 | 18.7 | 18.7 | bronze |\n| `wgmma` |  |  |  | none |\n" in text
    assert text.endswith("1 of 2 results are right, FP16, BF16 and FP32; refused: `wgmma` odd.")


def test_a_text_without_its_marks_is_refused():
    assert publish.filled("a\n<!-- x -->\nold\n<!-- /x -->\nb", {"x": "new"}) == "a\n<!-- x -->\nnew\n<!-- /x -->\nb"
    with pytest.raises(ValueError, match=r"<!-- y --> stands 0 times"):
        publish.filled("a", {"y": "new"})


def test_one_command_makes_everything_and_then_changes_nothing(tmp_path, monkeypatch, capsys):
    from bench.__main__ import main
    from tcgemm.gate import predictions

    directory, outcomes = tmp_path / "bench" / "results" / "made-up", tmp_path / "tcgemm" / "gate" / "predictions.toml"
    results.save(directory / "compare.json", synthetic.document(("quick",)))
    settled = {"id": "warp_tile", "outcome": "the seventh tile won", "held": True, "failed_assumption": ""}
    settled |= {"question": "Which?", "prediction": "The seventh.", "reason": "luck"}
    (directory / "gate.json").write_text(json.dumps(GATE | {"predictions": [settled]}))
    outcomes.parent.mkdir(parents=True)
    shutil.copy(predictions.FILE, outcomes)
    blocks = "".join(f"<!-- {name}.json -->\n<!-- /{name}.json -->\n" for name in ("gate", "compare"))
    (tmp_path / "README.md").write_text(f"before\n{blocks}after\n")
    monkeypatch.setattr(publish, "ROOT", tmp_path)
    monkeypatch.setattr(predictions, "FILE", outcomes)
    monkeypatch.setattr("sys.argv", ["bench", "publish", str(directory)])
    assert main() == 0
    written = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert {path.name for path in written} >= {"README.md", "report.md", "roofline.png", "percent_of_cublas.png"}
    assert "the seventh tile won" in outcomes.read_text()
    assert "[compare.json](compare.json), [gate.json](gate.json)." in (directory / "report.md").read_text()
    assert plot_style.measured(synthetic.META).encode() in written[directory / "roofline.png"]
    assert main() == 0
    assert {path: path.read_bytes() for path in written} == written
    assert "wrote" in capsys.readouterr().out


def test_every_rung_has_a_colour_and_a_mark_of_its_own():
    styles = plot_style.styles([{"algo": rung.name} for rung in RUNGS])
    assert len({colour for colour, _ in styles.values()}) == len({mark for _, mark in styles.values()}) == len(styles)
