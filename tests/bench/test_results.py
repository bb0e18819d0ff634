import json

import pytest
import synthetic

from bench import results
from bench.__main__ import command_line
from bench.problems import Problem

IDENTITY = ["op", "algo", "chosen", "class", "m", "n", "k", "layout", "dtype", "lda", "ldb", "ldc"]
IDENTITY += ["offset_a", "offset_b"]
MEASURED = ["us", "cv", "cublas_us", "cublaslt_us", "torch_us", "ratio", "tflops", "floor_us"]
MEASURED += ["max_err", "cublas_max_err"]
DESIGN_ROW = IDENTITY + MEASURED
DESIGN_META = ["gpu", "driver", "cuda", "torch", "cublas", "sm_clock_mhz", "date", "csrc_tree", "command"]


def _document():
    return synthetic.document(("gate",))


def test_the_schema_asks_for_every_field_of_the_design():
    schema = json.loads((results.SCHEMAS / "compare.schema.json").read_text())
    assert set(schema["$defs"]["row"]["required"]) == set(DESIGN_ROW)
    assert set(schema["$defs"]["meta"]["required"]) == set(DESIGN_META)


def test_a_good_file_is_valid_and_survives_writing(tmp_path):
    document = _document()
    results.save(tmp_path / "new" / "compare.json", document)
    assert results.load(tmp_path / "new" / "compare.json") == document
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["compare.json"]  # no half-written file stays


@pytest.mark.parametrize("field", DESIGN_ROW)
def test_a_row_without_a_field_is_named(field):
    document = _document()
    del document["rows"][3][field]
    found = results.problems_of("x.json", document)
    assert any(field in text and "rows/3" in text for text in found)


@pytest.mark.parametrize(
    ("change", "where"),
    [
        ({"layout": "XX"}, "layout"),
        ({"us": -1.0}, "us"),
        ({"us": None}, "ratio"),  # a row that was not timed has no ratio
        ({"failed": "12 elements"}, "failed"),  # and one that failed has no time
        ({"dtype": "float8"}, "dtype"),
        ({"speed": 1.0}, "speed"),
    ],
)
def test_a_wrong_value_is_found(change, where):
    document = _document()
    document["rows"][0] |= change
    assert any(where in text for text in results.problems_of("x.json", document))


def test_infinity_is_no_number_in_a_result_file(tmp_path):
    document = _document()
    document["rows"][0]["max_err"] = float("inf")
    with pytest.raises(ValueError, match="JSON"):
        results.save(tmp_path / "x.json", document)
    assert not list(tmp_path.iterdir())


COMMITTED = sorted((results.SCHEMAS.parents[1] / "bench" / "results").glob("*/compare*.json"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_committed_results_are_valid_and_whole(path):
    document = results.load(path)
    assert document["meta"]["complete"] and "unknown" not in (document["meta"]["csrc_tree"], document["meta"]["cublas"])
    assert all(row["failed"] is None for row in document["rows"])


def test_the_command_in_a_file_names_no_folder():
    words = [
        "compare",
        "--json",
        "/tmp/x/c.json",
        "--gate",
        "/tmp/x/gate.json",
        "--ncu",
        "/tmp/ncu.csv",
        "--set",
        "odd",
    ]
    assert command_line(words) == "python -m bench compare --json c.json --gate gate.json --ncu ncu.csv --set odd"


def test_load_says_what_is_wrong(tmp_path):
    with pytest.raises(ValueError, match="cannot be read"):
        results.load(tmp_path / "none.json")
    document = _document()
    document["meta"]["csrc_tree"] = "somewhere"
    results.save(tmp_path / "x.json", document)
    with pytest.raises(ValueError, match="csrc_tree"):
        results.load(tmp_path / "x.json")


def test_missing_fields_are_found_without_jsonschema(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "jsonschema", None)
    document = _document()
    assert results.problems_of("x", document) == []
    del document["rows"][0]["cv"]
    del document["meta"]["gpu"]
    assert results.problems_of("x", document) == ["x: meta: 'gpu' is missing", "x: rows/0: 'cv' is missing"]


def test_a_label_names_what_is_unusual():
    plain = synthetic.row(Problem("odd", 4096, 4096, 4096), "auto", 1.0, 100.0)
    assert results.label(plain) == "4096^3 NT f16"
    padded = synthetic.row(
        Problem("odd", 3, 5, 7, layout="TN", dtype="bfloat16", pad_a=1, pad_b=8, offset_b=4), "auto", 1.0, 100.0
    )
    assert results.label(padded) == "3,5,7 TN bf16 lda+1 ldb+8 b[4:]"


def test_rows_that_differ_in_memory_are_different_measurements():
    rows = [
        synthetic.row(Problem("odd", 64, 64, 64, **how), "auto", 1.0, 9.0)
        for how in ({}, {"pad_a": 1}, {"pad_b": 1}, {"offset_a": 1}, {"offset_b": 1}, {"layout": "NN"})
    ]
    assert len({results.key(row) for row in rows}) == len(rows)
