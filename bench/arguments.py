"""The options that say which problems are measured, the same for every command that measures."""

from __future__ import annotations

import argparse

from bench import shapes
from bench.problems import Problem


def add(command: argparse.ArgumentParser) -> None:
    command.add_argument("--set", default="quick", help="comma-separated sets of shapes, or all (see: sets)")
    command.add_argument("--shape", action="append", metavar="M,N,K", help="measure this product instead of a set")
    command.add_argument("--layout", help="comma-separated: NN, NT, TN, TT (with --shape: default NT)")
    command.add_argument("--dtype", help="comma-separated: float16, bfloat16, float32 (with --shape: default float16)")
    for name, what in (("pad", "elements added to a leading dimension"), ("offset", "elements before the first")):
        for operand in "ab":
            command.add_argument(f"--{name}-{operand}", type=int, default=0, help=f"with --shape: {what} of {operand}")


def listed(text: str | None) -> list[str] | None:
    return text.split(",") if text else None


def problems(options: argparse.Namespace) -> list[Problem]:
    """The problems that `options` name. Raises ValueError where there is none."""
    layouts, dtypes = listed(options.layout), listed(options.dtype)
    if options.shape:
        memory = {name: getattr(options, name) for name in ("pad_a", "pad_b", "offset_a", "offset_b")}
        return [
            problem
            for shape in options.shape
            for problem in shapes.custom(shape, layouts or ["NT"], dtypes or ["float16"], **memory)
        ]
    found = shapes.narrowed(shapes.select(options.set.split(",")), layouts, dtypes)
    if not found:
        raise ValueError("no problem has that layout and dtype in the chosen sets")
    return found
