import matplotlib.image
import numpy as np
import pytest
import synthetic

from bench import plots
from bench.__main__ import main
from bench.problems import Problem


@pytest.fixture(scope="module")
def whole():
    return synthetic.document()


def test_three_plots_are_drawn_in_two_formats(tmp_path, whole):
    written = plots.draw(whole, tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"{name}.{suffix}" for name in ("percent_of_cublas", "roofline", "alignment") for suffix in ("png", "svg")
    )
    for path in written:
        pixels = matplotlib.image.imread(path)
        assert min(pixels.shape[:2]) > 500
        assert (pixels[:, :, :3].min(axis=2) < 0.9).mean() > 0.005  # something is on it
        assert "<svg" in path.with_suffix(".svg").read_text()[:2000]


def test_the_percentages_are_where_they_belong(whole):
    figure = plots.percent_of_cublas(whole)
    axes = figure.axes[0]
    drawn = np.concatenate([np.asarray(c.get_offsets()) for c in axes.collections if len(c.get_offsets()) > 1])
    wanted = [row["ratio"] * 100 for row in whole["rows"] if row["op"] == "mm" and row["class"] != "boundary"]
    assert sorted(drawn[:, 0]) == pytest.approx(sorted(wanted))
    left, right = axes.get_xlim()
    assert left < min(wanted) and right > max(wanted)  # nothing is cut off
    assert {text.get_text() for text in figure.legends[0].texts} >= {"auto", "wmma_staged", "cublasGemmEx"}


def test_the_roofline_uses_the_measured_ceilings(whole):
    axes = plots.roofline(whole).axes[0]
    x, y = axes.lines[0].get_data()
    assert y[1] == y[2] == 800.0
    assert y[0] / x[0] == pytest.approx(4.0)
    assert x[1] == pytest.approx(200.0)  # where both meet


def test_the_roofline_ties_auto_to_cublas():
    problem = Problem("square", 1024, 1024, 1024)
    document = synthetic.document(("quick",), rows=[synthetic.row(problem, "auto", 0.5, 20.0)])
    axes = plots.roofline(document).axes[0]
    (tie,) = next(c for c in axes.collections if c.get_label() == "auto to cuBLAS, same problem").get_segments()
    # 2 * 1024^3 flop in 40 and 20 us, through 2 MB of each operand and 4 MB of C
    assert tie[:, 0] == pytest.approx([256.0, 256.0])
    assert tie[:, 1] == pytest.approx([53.687, 107.374], rel=1e-4)


def test_each_problem_has_its_error_bar():
    document = synthetic.document(("quick",), rows=[synthetic.row(Problem("square", 64, 64, 64), "auto", 0.5, 6.0)])
    axes = plots.percent_of_cublas(document).axes[0]
    bars = [c.get_paths()[0].vertices[:, 0] for c in axes.collections if c.get_paths() and len(c.get_offsets()) < 2]
    bars = [x for x in bars if x.max() > 100]
    assert [(x.min(), x.max()) for x in bars] == [pytest.approx((100 / 1.03, 103.0))]


def test_time_against_n_shows_both_sides_of_the_boundary(whole):
    axes = plots.alignment(whole).axes[0]
    by_label = {line.get_label(): line for line in axes.lines}
    x, y = by_label["cublasGemmEx"].get_data()
    assert list(x) == list(range(4090, 4105))
    times = {row["n"]: row["cublas_us"] for row in whole["rows"] if row["class"] == "boundary"}
    assert list(y) == [times[n] for n in x]
    assert "tcgemm, auto" in by_label


def test_no_plot_without_data(tmp_path):
    assert plots.draw(synthetic.document(("quick",), rows=[]), tmp_path) == []
    only_odd = synthetic.document(("odd",))
    assert [path.stem for path in plots.draw(only_odd, tmp_path)] == ["percent_of_cublas", "roofline"]


def test_the_command_draws_without_a_gpu(tmp_path, monkeypatch, capsys):
    from bench.results import save

    save(tmp_path / "compare.json", synthetic.document(("router",)))
    monkeypatch.setattr("sys.argv", ["bench", "plot", str(tmp_path / "compare.json"), "--out", str(tmp_path / "plots")])
    assert main() == 0
    assert (tmp_path / "plots" / "roofline.svg").is_file()
    assert "roofline.png" in capsys.readouterr().out


def test_without_matplotlib_a_line_says_so(tmp_path, monkeypatch, capsys, whole):
    import sys

    from bench.__main__ import draw

    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert draw(whole, str(tmp_path)) == 1
    assert "matplotlib is not installed" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "row_class"), [("percent_of_cublas", "square"), ("roofline", "square"), ("alignment", "boundary")]
)
def test_no_plot_shows_unsteady_times(name, row_class):
    row = synthetic.row(Problem(row_class, 1024, 1024, 1024), "auto", 0.5, 20.0)
    plot = getattr(plots, name)
    assert plot(synthetic.document(("quick",), rows=[row])) is not None
    assert plot(synthetic.document(("quick",), rows=[row | {"ratio_high": 1.0}])) is None
