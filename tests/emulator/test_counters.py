"""emulator.json: how the two sides are brought together, and that the committed file holds what it must."""

from __future__ import annotations

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

from bench.device import csrc_tree
from support import ROOT
from tcgemm.emulator.build import missing

SCHEMA = json.loads((ROOT / "bench/schema/emulator.schema.json").read_text())
COMMITTED = sorted((ROOT / "bench/results").glob("*/emulator.json"))

COUNTS = {
    "load_sectors": 100, "store_sectors": 20, "load_requests": 8, "store_requests": 2,
    "wavefronts_per_instruction": 4.0, "shared_load_instructions": 10, "shared_load_wavefronts": 40,
    "shared_store_instructions": 5, "shared_store_wavefronts": 20,
}  # fmt: skip
WHERE = {"algo": "x", "m": 1, "n": 2, "k": 3}
META = dict.fromkeys(("gpu", "driver", "cuda", "torch", "date", "csrc_tree", "command"), "?")


def raw_of(counts: dict[str, Any]) -> dict[str, float]:
    """Counters of which compare_ncu makes `counts`."""
    return {compare_ncu.COUNTERS[row][0][0]: x for row, x in counts.items() if row in compare_ncu.COUNTERS}


def merged(**changes: int) -> dict[str, Any]:
    raw = raw_of(COUNTS | changes)
    counters = {"meta": META, "rows": [{**WHERE, "raw": raw}], "probe": {"probe_16_pairs": 4.0}}
    return compare_ncu.merge({"rows": [{**WHERE, "emulator": COUNTS}]}, counters)


def test_equal_counts_differ_in_nothing() -> None:
    document = merged()
    assert compare_ncu.differences(document) == []
    jsonschema.validate(document, SCHEMA)


def test_what_counts_cp_async_twice_is_in_no_sum() -> None:
    """mma_sync at 512,384,256 on an H200, which has no shared load but ldmatrix."""
    row = compare_ncu.counted(
        {
            "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum": 36864.0,
            "smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum": 36864.0,
            "sm__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum": 36864.0,
            "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum": 39341.0,
            "smsp__inst_executed_op_shared_ld.sum": 4032.0,
            "smsp__sass_inst_executed_op_shared_ld.sum": 0.0,
            "smsp__inst_executed_op_ldsm.sum": 9792.0,
            "smsp__sass_inst_executed_op_ldsm.sum": 9792.0,
        }
    )
    assert row["load_sectors"] == 36864
    assert row["shared_load_instructions"] == 9792
    assert row["wavefronts_per_instruction"] == 4.0177


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"load_sectors": 101}, "load_sectors 100 emulated, 101 counted"),
        ({"store_sectors": 19}, "store_sectors"),
        ({"load_requests": 7}, "load_requests"),
        ({"store_requests": 3}, "store_requests"),
        ({"shared_load_wavefronts": 43}, "shared load 4.00 emulated, 4.30 counted"),
        ({"shared_store_wavefronts": 18}, "shared store 4.00 emulated, 3.60 counted"),
    ],
)
def test_what_differs_is_said(changes: dict[str, int], said: str) -> None:
    (difference,) = compare_ncu.differences(merged(**changes))
    assert said in difference and "x 1,2,3" in difference


def test_arbitration_noise_is_no_difference() -> None:
    assert compare_ncu.differences(merged(shared_load_wavefronts=42)) == []


def test_other_problems_are_refused() -> None:
    with pytest.raises(ValueError, match="different problems"):
        compare_ncu.merge(
            {"rows": [{**WHERE, "emulator": COUNTS}]}, {"rows": [{**WHERE, "m": 5, "raw": raw_of(COUNTS)}], "probe": {}}
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
    """Global sectors equal exactly, wavefronts within a quarter an instruction, every emulated rung at both sizes."""
    document = json.loads(path.read_text())
    jsonschema.validate(document, SCHEMA)
    assert compare_ncu.differences(document) == []
    assert [place_of(row) for row in document["rows"]] == [
        compare_ncu.place(algo, problem) for algo, problem in compare_ncu.problems()
    ]


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.parent.name)
@pytest.mark.skipif(bool(missing()), reason=missing())
def test_the_emulator_still_counts_what_is_committed(path: Path) -> None:
    """At the aligned size, which takes seconds; so that a change of the model is compared with the GPU anew."""
    document = json.loads(path.read_text())
    if document["meta"]["csrc_tree"] != csrc_tree():
        pytest.skip("the kernels have changed since they were measured")
    m, n, k = compare_ncu.SIZES[0]
    wanted = [(algo, problem) for algo, problem in compare_ncu.problems() if problem.m == m]
    committed = [row for row in document["rows"] if place_of(row) == {"algo": row["algo"], "m": m, "n": n, "k": k}]
    for row, now in zip(committed, compare_ncu.emulate(wanted), strict=True):
        assert now == {**place_of(row), "emulator": row["emulator"]}


def test_the_table_in_the_docs_is_the_file_of_the_h200() -> None:
    document = json.loads((ROOT / "bench/results/h200/emulator.json").read_text())
    rows = "\n".join(compare_ncu.table(document))
    assert rows in (ROOT / "docs/emulator.md").read_text(), f"the table should be:\n{rows}"


def place_of(row: dict[str, Any]) -> dict[str, Any]:
    return {name: row[name] for name in WHERE}


def test_the_script_says_how_it_is_called() -> None:
    done = subprocess.run(
        [sys.executable, str(Path(compare_ncu.__file__)), "merge", "a"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "merge takes three" in done.stderr
