"""The 12 legend states of a page that draws a trace, and in which of its steps each can be seen.

docs/emulator.md says the same in words. The page itself chooses a warp and a lane; here every choice counts.
"""

from __future__ import annotations

from collections import defaultdict
from enum import IntEnum
from typing import Any

Step = dict[str, Any]

_MEMORY_LOADS = ("global_load", "shared_load", "async_load")
_MEMORY = (*_MEMORY_LOADS, "global_store", "shared_store", "async_store")


class State(IntEnum):
    """What a cell of the page can show."""

    DISTINCT = 1  # a warp reads or writes distinct addresses
    BROADCAST = 2  # all 32 lanes at one address
    ACCUMULATING = 3  # in registers
    STORED_TO_C = 4
    ZERO_FILLED = 5  # outside the matrix, or padding
    IN_FRAGMENT = 6  # held in a WMMA fragment, lane mapping unspecified
    SECTOR = 7  # a 32-byte sector is fetched
    SELECTED_LANE = 8
    HELD = 9  # in a register, untouched this step
    LOADED_BEFORE = 10  # on an earlier pass
    OTHER_WARPS = 11  # what they do in the same stretch between barriers
    OWNED = 12  # a cell of C that some warp stores


def states(trace: dict[str, Any]) -> dict[State, list[int]]:
    """For each state, the numbers of the steps at which a page would show it."""
    found: dict[State, list[int]] = {state: [] for state in State}
    watch = _Watch(trace)
    for number, step in enumerate(trace["steps"]):
        for state in watch.see(step):
            found[state].append(number)
    return found


class _Watch:
    """What has happened up to a step, as far as the legend asks for it."""

    def __init__(self, trace: dict[str, Any]) -> None:
        self.outputs = {operand["name"] for operand in trace["operands"] if operand["output"]}
        self.loaded: dict[str, set[int]] = defaultdict(set)  # elements of operands, up to the last barrier
        self.this_pass: dict[str, set[int]] = defaultdict(set)
        self.registers: dict[int, set[tuple[int, int]]] = defaultdict(set)  # of each warp: (array, element) written
        self.fragments: dict[int, set[int]] = defaultdict(set)
        self.active_warps: set[int] = set()  # since the last barrier
        self.line_reads: dict[int, tuple[int, list[Any]]] = {}  # of each warp: a line, and what it has read there

    def see(self, step: Step) -> set[State]:
        access, warp = step["access"], step["warp"]
        shown = self._memory(step) | self._registers(step)
        if len(self.active_warps - {warp}) > 0:
            shown.add(State.OTHER_WARPS)
        self.active_warps.add(warp)
        if access == "block_barrier":
            self.active_warps = set()
            for space, elements in self.this_pass.items():
                self.loaded[space] |= elements
            self.this_pass.clear()
        return shown

    def _memory(self, step: Step) -> set[State]:
        access, space = step["access"], step.get("space")
        shown = set()
        if access in _MEMORY and step["index"]:
            shown.add(State.SELECTED_LANE)
            same = len(set(step["index"])) == 1
            shown.add(State.BROADCAST if same and len(step["lanes"]) == 32 else State.DISTINCT)
        valid = zip(step.get("valid", []), step.get("values", []), strict=False)
        if access in _MEMORY_LOADS and (step["inactive"] or any(count < len(values) for count, values in valid)):
            shown.add(State.ZERO_FILLED)
        if step.get("sectors") and access in _MEMORY_LOADS:
            shown.add(State.SECTOR)
            if self.loaded[space] & set(step["index"]):
                shown.add(State.LOADED_BEFORE)
            self.this_pass[space] |= set(step["index"])
        if space in self.outputs and access in ("global_store", "fragment_store"):
            shown |= {State.STORED_TO_C, State.OWNED}
        return shown

    def _registers(self, step: Step) -> set[State]:
        access, warp = step["access"], step["warp"]
        shown = set()
        touched: set[tuple[int, int]] = set()
        if access in ("register_read", "register_write"):
            shown.add(State.SELECTED_LANE)
            touched = {(step["array"], element) for element in step["index"]}
            line, reads = self.line_reads.get(warp, (0, []))
            reads = reads if line == step["line"] else []
            if access == "register_read":
                self.line_reads[warp] = (step["line"], [*reads, (step["array"], step["index"])])
            else:
                if (step["array"], step["index"]) in reads:  # x = f(..., x)
                    shown.add(State.ACCUMULATING)
                self.line_reads[warp] = (step["line"], [])
                self.registers[warp] |= touched
        if self.registers[warp] - touched:
            shown.add(State.HELD)
        if access in ("fragment_load", "fragment_fill"):
            self.fragments[warp].add(step["fragment"])
        if access in ("multiply", "mma"):
            shown.add(State.ACCUMULATING)
        if self.fragments[warp]:
            shown.add(State.IN_FRAGMENT)
        return shown
