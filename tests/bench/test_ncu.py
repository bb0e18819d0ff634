import pytest

from bench import ncu
from bench.ncu import ABSENT, METRICS

SM, MEMORY, OCCUPANCY, NO_ELIGIBLE, ELIGIBLE, TENSOR, TIME = (name for name, _, _ in METRICS)
STAGED = "void tcgemm::<unnamed>::wmma_staged_kernel<__half, (Major)0>(Matrix<const __half>, long)"
GLOBAL = "void tcgemm::<unnamed>::wmma_global_kernel<__half, (Major)0>(Matrix<const __half>, long)"
LIBRARY = "nvjet_sm90_hss_256x128_64x4_1x2_h_bz_coopA_NNT"


def _details(path, values: list[tuple[str, str, str, str]]):
    """The export of `ncu --csv`: a line a metric, after ncu's own chatter."""
    head = '"ID","Process ID","Kernel Name","Section Name","Metric Name","Metric Unit","Metric Value"'
    lines = [
        f'"{i}","1","{kernel}","Command line profiler metrics","{metric}","{unit}","{value}"'
        for i, (kernel, metric, unit, value) in enumerate(values)
    ]
    path.write_text("\n".join(["==PROF== Connected to process 1", head, *lines]) + "\n")
    return path


def _raw(path, rows: dict[str, dict[str, str]], unit_of_time: str = "ns"):
    """The export of `ncu --csv --page raw`: a line a kernel, after a line of units."""
    columns = list(dict.fromkeys(name for row in rows.values() for name in row))
    units = [unit_of_time if name == TIME else "%" for name in columns]
    quoted = [["ID", "Kernel Name", *columns], ["", "", *units]]
    quoted += [
        [str(i), kernel, *(row.get(name, "") for name in columns)] for i, (kernel, row) in enumerate(rows.items())
    ]
    path.write_text(
        "==PROF== Disconnected\n" + "\n".join(",".join(f'"{cell}"' for cell in line) for line in quoted) + "\n"
    )
    return path


def test_the_details_page(tmp_path):
    path = _details(
        tmp_path / "x.csv", [(STAGED, SM, "%", "21.61"), (STAGED, TIME, "ns", "3,320,000"), (LIBRARY, SM, "%", "80.5")]
    )
    found = ncu.read(path)
    assert found["wmma_staged"][SM] == 21.61
    assert found["wmma_staged"][TIME] == 3320.0  # us
    assert found["cublasGemmEx"][SM] == 80.5
    assert found["wmma_staged"][MEMORY] is None


def test_the_raw_page(tmp_path):
    rows = {GLOBAL: {SM: "17.53", TIME: "7000"}, STAGED: {SM: "21.61", TIME: "3320"}}
    found = ncu.read(_raw(tmp_path / "x.csv", rows, "us"))
    assert (found["wmma_global"][SM], found["wmma_global"][TIME]) == (17.53, 7000.0)
    assert (found["wmma_staged"][SM], found["wmma_staged"][TIME]) == (21.61, 3320.0)


@pytest.mark.parametrize("nothing", ["n/a", "nan", "", "(!) nan", "-inf"])
def test_what_ncu_could_not_give_is_absent(tmp_path, nothing):
    found = ncu.read(_raw(tmp_path / "x.csv", {STAGED: {SM: "21.61", TENSOR: nothing}}))
    assert found["wmma_staged"][TENSOR] is None
    table = ncu.table(found, 2048)
    line = next(line for line in table.rows if line[0] == "Tensor pipe active")
    assert line == ["Tensor pipe active", ABSENT]
    assert any("Tensor pipe active: absent" in note for note in table.notes)


def test_a_value_of_zero_is_not_absent(tmp_path):
    found = ncu.read(_raw(tmp_path / "x.csv", {STAGED: {TENSOR: "0"}}))
    assert found["wmma_staged"][TENSOR] == 0
    assert ["Tensor pipe active", "0 %"] in ncu.table(found, 2048).rows


def test_the_first_launch_of_a_path_counts(tmp_path):
    found = ncu.read(_details(tmp_path / "x.csv", [(STAGED, SM, "%", "20"), (STAGED, SM, "%", "90")]))
    assert found["wmma_staged"][SM] == 20


def test_replay_times_are_labelled(tmp_path):
    table = ncu.table(ncu.read(_raw(tmp_path / "x.csv", {STAGED: {TIME: "3320000"}})), 2048)
    assert ["Replay time (not a benchmark time)", "3320 us"] in table.rows


def test_a_log_without_a_table_is_refused(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text("==ERROR== The user does not have permission\n")
    with pytest.raises(ValueError, match="no table"):
        ncu.read(path)


def _counters(**changes: float | None) -> dict:
    base = {OCCUPANCY: 24.9, NO_ELIGIBLE: 40.0, ELIGIBLE: 1.25, SM: 1.0, MEMORY: 1.0, TENSOR: None, TIME: 1.0}
    return base | changes


def test_the_paragraph_on_eligible_warps_holds_the_figures():
    paths = {"wmma_staged": _counters(), "wmma_global": _counters(**{OCCUPANCY: 97.3, NO_ELIGIBLE: 92.4})}
    text = ncu.eligible_paragraph(paths)
    for figure in ("24.9 %", "1.25 warps", "40.0 %", "97.3 %", "92.4 %"):
        assert figure in text
    assert "Low occupancy is acceptable" in text


def test_the_paragraph_follows_the_figures():
    paths = {"wmma_staged": _counters(**{NO_ELIGIBLE: 88.9}), "wmma_global": _counters(**{NO_ELIGIBLE: 60.0})}
    text = ncu.eligible_paragraph(paths)
    assert "Low occupancy is acceptable" not in text
    assert "do not cover the waits" in text


def test_without_the_counter_nothing_is_said():
    assert "is not said" in ncu.eligible_paragraph({"wmma_staged": _counters(**{ELIGIBLE: None})})
    assert "is not said" in ncu.eligible_paragraph({})
