"""The command line of the emulator."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tcgemm.emulator import build, report
from tcgemm.emulator.run import Emulator, EmulatorError, Result

WRONG, UNUSABLE = 1, 2  # exit states: the kernel does something wrong; nothing could be run


def parser() -> argparse.ArgumentParser:
    """The options of `python -m tcgemm emulate`."""
    made = argparse.ArgumentParser(
        prog="python -m tcgemm emulate",
        description="Runs a kernel on the CPU, lane by lane: checks every access, compares the result with the "
        "float64 product, counts sectors and wavefronts. Exit status 1: something is wrong with the kernel.",
    )
    made.add_argument("--algo", metavar="NAME", default="wmma_staged", help="a rung (default: %(default)s)")
    made.add_argument(
        "--solve",
        type=Path,
        metavar="FILE.cu",
        help="run the seed's solve() in this file, which uses the vocabulary of csrc/device/",
    )
    problem = made.add_argument_group("the problem")
    for name in "mnk":
        problem.add_argument(f"--{name}", type=int, default=256, help="default: %(default)s")
    problem.add_argument("--dtype", choices=("float16", "bfloat16", "float32"), help="default: float16 if it can")
    problem.add_argument("--layout", choices=("NN", "NT", "TN", "TT"), default="NT", help="of a and b: N is row-major")
    for name in "abc":
        problem.add_argument(f"--pad-{name}", type=int, default=0, metavar="ELEMENTS", help="behind each line")
        problem.add_argument(
            f"--offset-{name}", type=int, default=0, metavar="ELEMENTS", help="from 256-byte alignment"
        )
    problem.add_argument("--distribution", default="uniform", help="of the values (default: %(default)s)")
    problem.add_argument("--seed", type=int, default=0)
    machine = made.add_argument_group("the machine")
    machine.add_argument("--arch", type=int, default=90, help="below 80: the path without cp.async (default: 90)")
    machine.add_argument(
        "--order", choices=("ascending", "descending", "alternate"), default="alternate", help="of warps"
    )
    machine.add_argument("--threads", type=int, help="of this computer (default: all)")
    output = made.add_argument_group("output")
    output.add_argument("--trace", type=Path, metavar="FILE.json", help="write one block's steps there")
    output.add_argument("--trace-block", type=int, default=0, metavar="NUMBER", help="which block (default: 0)")
    output.add_argument("--trace-warp", type=int, default=-1, metavar="NUMBER", help="one warp alone (default: all)")
    output.add_argument("--json", type=Path, metavar="FILE.json", help="write findings and counts there")
    return made


def main(argv: list[str] | None = None) -> int:
    """Returns the exit status: 0 all right, 1 the kernel is wrong, 2 it could not be run."""
    arguments = parser().parse_args(argv)
    console = Console(width=max(Console().width, 112))  # the table's least
    try:
        built = problem_of(arguments)
        algo = "solve" if arguments.solve else arguments.algo
        result = run(arguments, algo, built)
    except (build.BuildError, EmulatorError, ValueError, OSError) as error:
        print(f"tcgemm emulate: {error}", file=sys.stderr)
        return UNUSABLE
    verdict = report.verdict_of(built, result)
    report.show(console, algo, built.problem, result, verdict)
    if arguments.trace:
        console.print(f"trace of block {arguments.trace_block}: {arguments.trace}")
    if arguments.json:
        arguments.json.write_text(report.as_json(algo, built.problem, result, verdict))
    return 0 if verdict.passed and not result.findings else WRONG


def problem_of(arguments: argparse.Namespace):
    """The problem in memory. Raises ValueError when the options do not fit together."""
    # bench/ lies beside the package in the source tree, which the emulator needs anyway.
    sys.path.append(str(build.source_root()))
    from bench.problems import Problem
    from bench.problems import build as build_problem

    if min(arguments.m, arguments.n, arguments.k) < 1:
        raise ValueError(f"m, n, k = {arguments.m}, {arguments.n}, {arguments.k}: nothing to run")
    if arguments.solve and (arguments.layout != "NT" or (arguments.dtype or "float16") != "float16"):
        raise ValueError("solve() takes float16, A row-major and B column-major (layout NT)")
    padding = {
        name: getattr(arguments, name) for name in ("pad_a", "pad_b", "pad_c", "offset_a", "offset_b", "offset_c")
    }
    return build_problem(
        Problem(
            "emulate",
            arguments.m,
            arguments.n,
            arguments.k,
            layout=arguments.layout,
            dtype=arguments.dtype or "float16",
            distribution=arguments.distribution,
            seed=arguments.seed,
            **padding,
        )
    )


def run(arguments: argparse.Namespace, algo: str, built) -> Result:
    """Compiles what has changed and runs it, with a progress bar."""
    known = build.rungs()
    if algo != "solve" and (algo not in known or not known[algo].emulated):
        raise ValueError(
            f'algo="{algo}" is no rung that the emulator runs; it runs {", ".join(build.emulated_algos())}'
        )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, transient=True, console=Console(stderr=True)) as bar:
        task = bar.add_task("compiling", total=None)
        source = arguments.solve or known[algo].source
        if not source.is_file():
            raise ValueError(f"{source} is no file")
        start = time.monotonic()
        program = build.program([source], trace=arguments.trace is not None, arch=arguments.arch)
        compiled = time.monotonic() - start

        def progress(done: int, total: int) -> None:
            bar.update(task, description=algo, completed=done, total=total)

        with Emulator(program) as emulator:
            result = emulator.run(
                algo,
                built.a,
                built.b,
                out=built.c,
                order=arguments.order,
                threads=arguments.threads,
                trace=arguments.trace,
                trace_block=arguments.trace_block,
                trace_warp=arguments.trace_warp,
                capability=arguments.arch,
                progress=progress,
            )
    Console(stderr=True).print(f"compiled in {compiled:.1f} s, ran in {result.cpu_seconds:.2f} CPU seconds")
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
