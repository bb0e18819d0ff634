"""The seed's practice 2: the warp tiles of wmma_staged, their registers and occupancy first, then their times."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import torch

from bench.problems import Problem
from tcgemm.gate import facts
from tcgemm.gate.subjects import Rung, rungs

WARP_TILES = {"wmma_staged_32x32": "32x32", "wmma_staged": "32x64", "wmma_staged_64x64": "64x64"}
ALWAYS_TIMED = ("wmma_global", *WARP_TILES)  # what the predictions are about


@dataclass(frozen=True)
class Shape:
    """What one warp tile costs, found out before any time is taken."""

    algo: str
    warp_tile: str
    registers: int
    local_bytes: int  # 0: no spills
    shared_bytes: int
    threads: int
    blocks_per_sm: int
    occupancy: float
    binary_arch: int

    def as_dict(self) -> dict:
        """For the result file."""
        return asdict(self)


def shapes(device: torch.device) -> list[Shape]:
    """The three shapes on this device, for the FP16 problem of solve() at 4096."""
    problem = Problem("sweep", 4096, 4096, 4096)
    found = []
    for algo, warp_tile in WARP_TILES.items():
        f = facts.footprint(algo, problem, device)
        found.append(
            Shape(
                algo,
                warp_tile,
                f.registers,
                f.local_bytes,
                f.shared_bytes,
                f.threads,
                f.blocks_per_sm,
                f.occupancy,
                f.binary_arch,
            )
        )
    return found


def timed_rungs(graded: list[Rung]) -> list[Rung]:
    """The rungs that take part in the interleaved run: the graded FP16 ones and those of the predictions."""
    names = dict.fromkeys([*ALWAYS_TIMED, *(rung.name for rung in graded if "float16" in rung.dtypes)])
    return rungs(list(names))
