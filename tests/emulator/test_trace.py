"""Traces: their schema, the 12 legend states, and what a block of a real kernel does."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import torch

import tcgemm.emulator
from bench.problems import Problem, build
from tcgemm.emulator import Emulator, program
from tcgemm.emulator.build import source_root
from tcgemm.emulator.legend import State, states

SCHEMA = json.loads(Path(tcgemm.emulator.__file__).with_name("trace.schema.json").read_text())
EXAMPLE = Path(__file__).with_name("legend_example.json")
SMALL = Problem("one step", 32, 64, 16, layout="NN", distribution="integers")
TAIL = Problem("tail", 20, 24, 41, layout="NT", pad_a=7, pad_b=7, distribution="integers")


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    with Emulator(program(trace=True)) as running:
        yield running


def trace_of(emulator: Emulator, algo: str, problem: Problem, folder: Path, **options: Any) -> dict[str, Any]:
    built = build(problem)
    result = emulator.run(algo, built.a, built.b, out=built.c, trace=folder / "trace.json", **options)
    assert result.findings == []
    assert torch.equal(built.c.double(), built.a.double() @ built.b.double())
    trace = json.loads((folder / "trace.json").read_text())
    jsonschema.validate(trace, SCHEMA)
    return trace


def test_the_example_shows_every_legend_state() -> None:
    trace = json.loads(EXAMPLE.read_text())
    jsonschema.validate(trace, SCHEMA)
    found = states(trace)
    assert [state.name for state in State if not found[state]] == []
    # Where each state shows is written out, so that a state that shows everywhere would not pass.
    assert found[State.BROADCAST] == [7]
    assert found[State.ACCUMULATING] == [9, 13]
    assert found[State.ZERO_FILLED] == [16]
    assert found[State.LOADED_BEFORE] == [17]
    assert found[State.STORED_TO_C] == found[State.OWNED] == [18, 19]
    assert found[State.SECTOR] == [0, 2, 16, 17]
    assert found[State.IN_FRAGMENT][0] == 10 and 9 not in found[State.IN_FRAGMENT]
    assert found[State.HELD][0] == 7
    assert 0 not in found[State.OTHER_WARPS] and 2 in found[State.OTHER_WARPS]


@pytest.mark.parametrize("broken", ["access", "lanes", "extra"])
def test_the_schema_refuses_what_is_no_trace(broken: str) -> None:
    trace = json.loads(EXAMPLE.read_text())
    step = trace["steps"][0]
    if broken == "extra":
        step["colour"] = "red"
    elif broken == "lanes":
        step["lanes"] = [32]
    else:
        step["access"] = "multiply"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(trace, SCHEMA)


def test_one_k_step_of_a_warp_tile(emulator: Emulator, tmp_path: Path) -> None:
    """The 32x64 warp tile: 8 products, each A fragment in 4 of them, each B fragment in 2."""
    trace = trace_of(emulator, "wmma_staged", SMALL, tmp_path)
    steps = [step for step in trace["steps"] if step["warp"] == 0]
    products = [step for step in steps if step["access"] == "multiply"]
    assert len(products) == 8
    assert sorted(Counter(step["a"] for step in products).values()) == [4, 4]
    assert sorted(Counter(step["b"] for step in products).values()) == [2, 2, 2, 2]
    assert len({step["acc"] for step in products}) == 8
    loads = [step["fragment"] for step in steps if step["access"] == "fragment_load"]
    assert set(loads) == {step["a"] for step in products} | {step["b"] for step in products}


def test_a_trace_tells_addresses_values_and_lines(emulator: Emulator, tmp_path: Path) -> None:
    built = build(SMALL)
    trace = trace_of(emulator, "wmma_staged", SMALL, tmp_path)
    loads = [step for step in trace["steps"] if step["access"] == "global_load" and step["space"] == "A"]
    read: dict[int, float] = {}
    for step in loads:
        for index, values in zip(step["index"], step["values"], strict=True):
            read |= {index + e: value for e, value in enumerate(values)}
            assert {(index * 2 + e * 2) // 32 for e in range(len(values))} <= set(step["sectors"])
    assert [read[i] for i in range(32 * 16)] == built.a.float().flatten().tolist()
    for step in trace["steps"]:
        line = (source_root() / "csrc" / step["file"]).read_text().splitlines()[step["line"] - 1]
        assert line.strip() and not line.strip().startswith("//"), step
    barriers = [step["warp"] for step in trace["steps"] if step["access"] == "block_barrier"]
    assert Counter(barriers) == dict.fromkeys(range(8), 2)


def test_zero_filled_loads_show_as_inactive_lanes(emulator: Emulator, tmp_path: Path) -> None:
    for algo in ("wmma_staged", "wmma_pipelined"):
        found = states(trace_of(emulator, algo, TAIL, tmp_path))
        for state in (State.ZERO_FILLED, State.SECTOR, State.IN_FRAGMENT, State.STORED_TO_C, State.OTHER_WARPS):
            assert found[state], (algo, state)


def test_partly_valid_copies_are_marked(emulator: Emulator, tmp_path: Path) -> None:
    trace = trace_of(emulator, "wmma_pipelined", TAIL, tmp_path)
    valid = {count for step in trace["steps"] if step["access"] == "async_load" for count in step["valid"]}
    assert valid == {8, 1}  # 41 = 5 * 8 + 1


def test_register_arrays_are_traced(emulator: Emulator, tmp_path: Path) -> None:
    problem = Problem("registers", 8, 8, 3, layout="NN", dtype="float32", distribution="integers")
    trace = trace_of(emulator, "simt_regtile_vec4", problem, tmp_path, trace_warp=0)
    found = states(trace)
    for state in (State.ACCUMULATING, State.HELD, State.DISTINCT, State.STORED_TO_C, State.ZERO_FILLED):
        assert found[state], state
    assert {step["warp"] for step in trace["steps"]} == {0}
    assert found[State.OTHER_WARPS] == []
    accumulated = [trace["steps"][number] for number in found[State.ACCUMULATING]]
    assert len(accumulated) == 64 * 8  # accumulators times the K step
