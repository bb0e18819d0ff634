import synthetic

from bench import table
from bench.problems import Problem

CHECK = [{"m": 4096, "n": 4096, "k": 4096, "us": 185.0, "cv": 0.01, "error_bar": 0.01}]
CUBE = Problem("square", 4096, 4096, 4096)


def _cell(row: dict, head: str) -> str:
    made = table.main_table([row], CHECK)
    return made.rows[0][made.heads.index(head)]


def test_figures_keep_three_digits_and_no_exponent():
    assert [table.figure(x) for x in (1470.0, 185.6, 29.21, 5.812, 0.0123, 0.0, None)] == [
        "1470",
        "186",
        "29.2",
        "5.81",
        "0.012",
        "0",
        "-",
    ]
    assert table.figure(-393.7) == "-394"


def test_a_row_shows_time_ratio_and_distance_to_the_floor():
    row = synthetic.row(CUBE, "auto", 0.8, 200.0)
    assert _cell(row, "us") == "250"
    assert _cell(row, "cuBLAS us") == "200"
    assert _cell(row, "% cuBLAS") == "80.0"
    assert _cell(row, "% Lt") == "78.4"  # cublasLt's best takes 0.98 of cublasGemmEx's time
    without = row | {"cublaslt_ratio": None}
    assert "% Lt" not in table.main_table([without], []).heads
    assert table.main_table([row, without], []).rows[1][8] == "-"
    assert _cell(row, "TFLOP/s") == "550"  # 2 * 4096^3 / 250 us
    assert _cell(row, "% of floor") == "68.7"  # 171.8 us at 800 TFLOP/s
    assert _cell(row, "algo") == "auto > wmma_pipelined"


def test_differences_within_the_error_bar_are_marked():
    assert _cell(synthetic.row(CUBE, "auto", 1.005, 200.0), "% cuBLAS") == "100.5="
    assert _cell(synthetic.row(CUBE, "auto", 0.995, 200.0), "% cuBLAS") == "99.5="
    assert _cell(synthetic.row(CUBE, "auto", 1.02, 200.0), "% cuBLAS") == "102.0"


def test_noise_is_marked():
    assert _cell(synthetic.row(CUBE, "auto", 0.8, 200.0, cv=0.051), "% cuBLAS") == "80.0~"


def test_what_failed_its_check_has_no_time_and_says_why():
    row = synthetic.row(CUBE, "auto", 1.0, 1.0) | {"us": None, "ratio": None, "tflops": None, "failed": "3 elements"}
    made = table.main_table([row], CHECK)
    assert "FAILED" in made.rows[0] and len(made.rows[0]) == len(made.heads)
    assert any("3 elements" in note for note in made.notes)


def test_the_error_bar_stands_under_the_table():
    assert "4096^3 1.0 %" in table.main_table([], CHECK).notes[0]
    assert "not measured" in table.main_table([], []).notes[0]


def test_the_summary_takes_geometric_means_and_leaves_fp32_out():
    rows = [
        synthetic.row(CUBE, "auto", 0.5, 9.0),
        synthetic.row(CUBE, "auto", 2.0, 9.0),
        synthetic.row(CUBE.but(dtype="float32"), "auto", 0.1, 9.0),
    ]
    assert table.summary_table(rows).rows == [["square", "auto", "2", "100.0", "50.0", "200.0"]]


def test_the_summary_leaves_unsteady_times_out():
    rows = [synthetic.row(CUBE, "auto", 0.5, 9.0), synthetic.row(CUBE, "auto", 2.0, 9.0) | {"ratio_high": 4.0}]
    assert table.summary_table(rows).rows == [["square", "auto", "1", "50.0", "50.0", "50.0"]]
    assert len(table.main_table(rows, CHECK).rows) == 2
