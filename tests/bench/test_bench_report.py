import re

import pytest
import synthetic

from bench import capstone, ncu, report
from bench.problems import Problem

SEED_ROWS = {  # N: (ms, GFLOP/s, % of cuBLAS) as the capstone printed them
    1024: [(1.412, 1521.0, 10.6), (1.569, 1368.5, 9.5), (0.487, 4412.7, 30.7), (0.149, 14393.6, 100.0)],
    2048: [(9.190, 1869.3, 5.9), (6.962, 2467.8, 7.8), (2.084, 8244.4, 25.9), (0.540, 31839.5, 100.0)],
}
GATE = {
    "rows": [
        {"algo": "wmma_staged", "case": "unit", "dtype": "float16", "passed": True},
        {"algo": "wmma_staged", "case": "odd", "dtype": "float16", "passed": False},
    ],
    "tier": {"wmma_staged": "none"},
    "sweep": [
        {
            "warp_tile": "32x64",
            "algo": "wmma_staged",
            "registers": 125,
            "local_bytes": 0,
            "blocks_per_sm": 2,
            "occupancy": 0.25,
        }
    ],
    "times": [{"algo": "wmma_staged", "n": 4096, "distribution": "uniform", "ms": 0.9}],
    "predictions": [
        {
            "id": "a",
            "question": "Which tile?",
            "prediction": "32x64",
            "reason": "registers",
            "outcome": "64x64 won",
            "held": False,
            "failed_assumption": "reuse counted for more",
        },
        {
            "id": "b",
            "question": "And the tail?",
            "prediction": "wrong",
            "reason": "reads on",
            "outcome": "",
            "held": None,
            "failed_assumption": "",
        },
    ],
}


@pytest.mark.parametrize("row", range(4))
@pytest.mark.parametrize("n", SEED_ROWS)
def test_the_arithmetic_reproduces_the_capstones_tables(n, row):
    """Within the rounding of what was printed, milliseconds and GFLOP/s."""
    ms, gflops, share = SEED_ROWS[n][row]
    assert capstone.gflops(n, ms - 0.0005) + 0.05 > gflops > capstone.gflops(n, ms + 0.0005) - 0.05
    cells = capstone.results_table(n, list(capstone.T4_TIMES[n]), "T4").rows[row]
    assert cells[1] == f"{ms:.3f}"
    assert float(cells[3]) == pytest.approx(share, abs=0.11)


def _measured(n: int) -> list[dict]:
    cube, rows = Problem("square", n, n, n), []
    rows.append(synthetic.row(cube.but(dtype="float32"), "simt_regtile_vec4", 0.1, 100.0))
    rows += [synthetic.row(cube, name, ratio, 100.0) for name, ratio in (("wmma_global", 0.2), ("wmma_staged", 0.5))]
    # Rows that must not be taken for the capstone's: another layout, padding, the FP32 kernel on halves.
    rows.append(synthetic.row(cube.but(layout="NN"), "wmma_staged", 9.0, 100.0))
    rows.append(synthetic.row(cube.but(pad_a=1), "wmma_staged", 9.0, 100.0))
    rows.append(synthetic.row(cube, "simt_regtile_vec4", 9.0, 100.0))
    return rows[::-1]


def test_the_results_tables_take_the_right_rows(tmp_path):
    document = synthetic.document(("quick",), rows=_measured(1024))
    text = report.text(document, tmp_path / "r.md")
    section = text.split("### Results at N = 1024")[1].split("###")[0]
    assert "| matmulRegTile2dVec4 (FP32 SIMT) | 1.000 | 2147.5 | 10.0 |" in section
    assert "| matmulWmmaGlobal (FP16 input, FP32 sum) | 0.500 | 4295.0 | 20.0 |" in section
    assert "| matmulWmmaStaged (FP16 input, FP32 sum) | 0.200 | 10737.4 | 50.0 |" in section
    assert "| cublasGemmEx (FP16 input, FP32 sum) | 0.100 | 21474.8 | 100.0 |" in section
    assert "not measured in this run" in text.split("### Results at N = 2048")[1].split("###")[0]


def test_the_capstones_parts_are_all_there(tmp_path):
    text = report.text(synthetic.document(("quick",)), tmp_path / "r.md", gate=GATE)
    for heading in (
        "The four paths",
        "Results at N = 1024",
        "Results at N = 2048",
        "Correctness",
        "The three warp tiles",
        "Predictions",
        "Counters",
        "For scale: the reference run on a Tesla T4",
    ):
        assert f"### {heading}" in text
    assert "| wmma_staged | 1 of 2 | odd float16 | - | none |" in text
    assert "| 32x64 | wmma_staged | 125 | 0 | 2 | 25.0 | 0.9000 |" in text
    assert "Outcome (**not as predicted**): 64x64 won" in text and "reuse counted for more" in text
    assert "Outcome (open): none recorded" in text
    assert "No ncu export was given" in text


def test_counters_are_shown_with_what_is_absent(tmp_path):
    counters = {path: {name: 50.0 for name, _, _ in ncu.METRICS} for path in ("wmma_staged", "wmma_global")}
    for values in counters.values():
        values[ncu.METRICS[5][0]] = None
    text = report.text(synthetic.document(("quick",)), tmp_path / "r.md", counters=counters)
    assert "### Counters at N = 2048" in text
    assert "| Tensor pipe active | absent | absent |" in text
    assert "Do the resident warps cover the waits?" in text


def test_every_row_of_the_file_is_in_the_report(tmp_path):
    document = synthetic.document(("odd",))
    text = report.text(document, tmp_path / "r.md")
    for row in document["rows"]:
        assert re.search(rf"\| odd \| {re.escape(report.table.label(row))} \| .*{row['algo']} ", text)


def test_an_unfit_run_says_so_first(tmp_path):
    document = synthetic.document(("quick",), unfit=["the device reported power brake during the run"])
    assert "unfit for claims" in report.text(document, tmp_path / "r.md").splitlines()[2]
    assert "power brake" in report.text(document, tmp_path / "r.md")
    assert "No reason was found to distrust" in report.text(synthetic.document(("quick",)), tmp_path / "r.md")


def test_plots_are_linked_relative_to_the_report(tmp_path):
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "roofline.png").write_bytes(b"")
    document = synthetic.document(("quick",))
    assert "](plots/roofline.png)" in report.text(document, tmp_path / "r.md", plots=tmp_path / "plots")
    assert "No plots" in report.text(document, tmp_path / "r.md", plots=tmp_path)


def test_what_was_skipped_is_listed(tmp_path):
    entry = {"problem": "large 8192^3", "algo": "wmma_global", "reason": "one call takes 900 ms"}
    text = report.text(synthetic.document(("quick",), skipped=[entry]), tmp_path / "r.md")
    assert "| large 8192^3 | wmma_global | one call takes 900 ms |" in text


@pytest.mark.parametrize(("tree", "told"), [("0" * 40, False), ("1" * 40, True)])
def test_a_gate_of_other_sources_is_named_as_such(tmp_path, tree, told):
    gate = GATE | {"meta": synthetic.META | {"csrc_tree": tree, "command": "python -m tcgemm gate --json g.json"}}
    gate["rows"] = [*GATE["rows"], {"algo": "wmma_staged", "case": "perf", "dtype": "bfloat16", "passed": None}]
    text = report.text(synthetic.document(("quick",)), tmp_path / "r.md", gate=gate)
    assert "| wmma_staged | 1 of 3 | odd float16 | perf bfloat16 | none |" in text
    assert f"csrc_tree {tree}, `python -m tcgemm gate --json g.json`." in text
    assert ("other sources than those that the comparison measured" in text) is told


def test_what_a_prediction_got_wrong_beside_its_bound_is_told(tmp_path):
    gate = GATE | {"predictions": [GATE["predictions"][1] | {"held": True, "failed_assumption": "more at 4096"}]}
    text = report.text(synthetic.document(("quick",)), tmp_path / "r.md", gate=gate)
    assert "Outcome (as predicted): none recorded\n- Assumption that failed: more at 4096" in text
