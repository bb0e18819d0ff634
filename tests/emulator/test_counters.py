"""emulator.json: how the two sides are brought together, and that the committed file holds what it must."""

from __future__ import annotations

import copy
import csv
import io
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import compare_ncu
import jsonschema
import pytest

from support import ROOT

SCHEMA = json.loads((ROOT / "bench/schema/emulator.schema.json").read_text())
COMMITTED = sorted((ROOT / "bench/results").glob("*/emulator.json"))

COUNTS = {
    "load_sectors": 100, "store_sectors": 20, "wavefronts_per_instruction": 4.0, "shared_load_instructions": 10,
    "shared_load_wavefronts": 40, "shared_store_instructions": 5, "shared_store_wavefronts": 20,
}  # fmt: skip
WHERE = {"algo": "x", "m": 1, "n": 2, "k": 3}
META = dict.fromkeys(("gpu", "driver", "cuda", "torch", "date", "csrc_tree", "command"), "?")


def merged(**changes: int) -> tuple[dict[str, Any], list[str]]:
    theirs = copy.deepcopy(COUNTS) | changes
    counters = {"meta": META, "rows": [{**WHERE, "ncu": theirs}], "probe": {"probe_16_pairs": 4.0}}
    return compare_ncu.merge({"rows": [{**WHERE, "emulator": COUNTS}]}, counters)


def test_equal_counts_differ_in_nothing() -> None:
    document, differences = merged()
    assert differences == []
    jsonschema.validate(document, SCHEMA)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"load_sectors": 101}, "load_sectors 100 emulated, 101 counted"),
        ({"store_sectors": 19}, "store_sectors"),
        ({"shared_load_wavefronts": 43}, "shared load 4.00 emulated, 4.30 counted"),
        ({"shared_store_wavefronts": 18}, "shared store 4.00 emulated, 3.60 counted"),
    ],
)
def test_what_differs_is_said(changes: dict[str, int], said: str) -> None:
    (difference,) = merged(**changes)[1]
    assert said in difference and "x 1,2,3" in difference


def test_arbitration_noise_is_no_difference() -> None:
    assert merged(shared_load_wavefronts=42)[1] == []


def test_other_problems_are_refused() -> None:
    with pytest.raises(ValueError, match="different problems"):
        compare_ncu.merge(
            {"rows": [{**WHERE, "emulator": COUNTS}]}, {"rows": [{**WHERE, "m": 5, "ncu": COUNTS}], "probe": {}}
        )


def ncu_that_prints(folder: Path, rows: list[dict[str, str]]) -> Path:
    """A program that stands in for ncu: it lists two counters, and writes `rows` as its log."""
    table = io.StringIO()
    writer = csv.DictWriter(table, rows[0].keys(), quoting=csv.QUOTE_ALL)
    writer.writeheader()
    writer.writerows(rows)
    (folder / "log.csv").write_text("==PROF== Connected\n" + table.getvalue())
    program = folder / "ncu"
    program.write_text(
        "#!/usr/bin/env python3\nimport pathlib, sys\nif '--query-metrics' in sys.argv:\n"
        "    print('l1tex__t_sectors_pipe_lsu_mem_global_op_st Counter sectors\\nsmsp__inst_executed Counter inst')\n"
        "else:\n    log = pathlib.Path(sys.argv[sys.argv.index('--log-file') + 1])\n"
        f"    log.write_text(pathlib.Path({str(folder / 'log.csv')!r}).read_text())\n"
    )
    program.chmod(0o755)
    return program


def test_counters_are_asked_for_by_the_names_that_ncu_knows(tmp_path: Path) -> None:
    stores, inst = "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "smsp__inst_executed.sum"
    rows = [
        {"ID": "", "Kernel Name": "", stores: "sector", inst: "inst"},
        {"ID": "0", "Kernel Name": "void a_kernel<int>(int)", stores: "1,234", inst: "5"},
        {"ID": "1", "Kernel Name": "b_kernel()", stores: "7", inst: "n/a"},
    ]
    ncu = str(ncu_that_prints(tmp_path, rows))
    names = compare_ncu.counters_wanted(ncu)
    assert sorted(names) == [stores, inst]
    launches = compare_ncu.profile(ncu, ["true"], names, ranged=True)
    assert launches == [
        ("void a_kernel<int>(int)", {stores: 1234.0, inst: 5.0}),
        ("b_kernel()", {stores: 7.0, inst: 0.0}),
    ]


def test_a_failing_ncu_is_quoted(tmp_path: Path) -> None:
    failing = tmp_path / "ncu"
    failing.write_text("#!/bin/sh\necho no permission >&2\nexit 3\n")
    failing.chmod(0o755)
    with pytest.raises(RuntimeError, match="no permission"):
        compare_ncu.profile(str(failing), ["true"], ["a.sum"], ranged=False)


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
def test_the_committed_file(path: Path) -> None:
    """Global sectors equal exactly, wavefronts within a quarter an instruction, two sizes a rung, one ragged."""
    document = json.loads(path.read_text())
    jsonschema.validate(document, SCHEMA)
    halves = [{"rows": document["rows"]}, {**document}]
    assert compare_ncu.merge(*halves)[1] == []
    for algo in {row["algo"] for row in document["rows"]}:
        sizes = {(row["m"], row["n"], row["k"]) for row in document["rows"] if row["algo"] == algo}
        assert len(sizes) >= 2 and any(k % 16 for _, _, k in sizes)


def test_the_script_says_how_it_is_called() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(compare_ncu.__file__)), "merge", "a"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "merge takes three" in done.stderr
