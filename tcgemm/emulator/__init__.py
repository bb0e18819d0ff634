"""Kernels that run without a GPU, lane by lane, with every access checked and counted: docs/emulator.md.

python -m tcgemm emulate --algo wmma_staged --m 611 --n 613 --k 617
"""

from tcgemm.emulator.build import BuildError, emulated_algos, program, rungs
from tcgemm.emulator.run import Counts, Emulator, EmulatorError, Finding, Result, Row, run_problem

__all__ = [
    "BuildError",
    "Counts",
    "Emulator",
    "EmulatorError",
    "Finding",
    "Result",
    "Row",
    "emulated_algos",
    "program",
    "run_problem",
    "rungs",
]
