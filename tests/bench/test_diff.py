import copy

import synthetic

from bench.diff import changes


def _pair():
    old = synthetic.document(("quick",))
    return old, copy.deepcopy(old)


def _scaled(row: dict, factor: float) -> None:
    row["ratio"] *= factor
    row["ratio_low"] *= factor
    row["ratio_high"] *= factor
    row["us"] /= factor


def test_a_file_does_not_differ_from_itself():
    old, new = _pair()
    table, slower = changes(old, new)
    assert table.rows == [] and slower == 0
    assert table.notes[0].startswith(f"{len(old['rows'])} rows")


def test_a_change_beyond_the_error_bar_shows_with_its_direction():
    old, new = _pair()
    _scaled(new["rows"][0], 0.8)
    _scaled(new["rows"][1], 1.5)
    table, slower = changes(old, new)
    assert [(line[2], line[-1]) for line in table.rows] == [
        (old["rows"][0]["algo"], "slower"),
        (old["rows"][1]["algo"], "faster"),
    ]
    assert table.rows[0][7] == "-20.0" and table.rows[1][7] == "+50.0"
    assert slower == 1


def test_a_change_within_the_error_bar_does_not_show():
    old, new = _pair()
    row = next(row for row in new["rows"] if row["m"] == 4096 and row["n"] == 4096)
    _scaled(row, 1.007)  # 0.4 % in each file at this size
    assert changes(old, new)[0].rows == []
    _scaled(row, 1.01)
    assert len(changes(old, new)[0].rows) == 1


def test_a_slower_machine_alone_is_no_change():
    """Times double, the ratio stays."""
    old, new = _pair()
    for row in new["rows"]:
        for name in ("us", "cublas_us"):
            row[name] *= 2
    assert changes(old, new)[0].rows == []


def test_a_row_that_was_lost_is_said_so():
    old, new = _pair()
    new["rows"][0] |= {"us": None, "ratio": None, "failed": "7 elements break the tolerance"}
    gone = new["rows"].pop(1)
    new["meta"]["torch"] = "9.9"
    notes = "\n".join(changes(old, new)[0].notes)
    assert "7 elements break the tolerance" in notes
    assert gone["algo"] in notes and "not measured" in notes
    assert "torch: 2.11.0 -> 9.9" in notes


def test_few_noisy_repeats_widen_the_bar():
    old, new = _pair()
    for document in (old, new):
        row = document["rows"][0]
        row |= {"repeats": 4, "ratio_low": row["ratio"] * 0.8, "ratio_high": row["ratio"] * 1.2}
    _scaled(new["rows"][0], 0.8)
    assert changes(old, new)[0].rows == []
