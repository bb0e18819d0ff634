"""python -m tcgemm emulate: a kernel on the CPU, lane by lane. The package is tcgemm.emulator."""

from tcgemm.emulator.cli import main

__all__ = ["main"]
