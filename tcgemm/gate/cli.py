"""The command line of the gate."""

from __future__ import annotations

import argparse
import shlex
import sys
from pathlib import Path

import torch
from rich.console import Console

from tcgemm.emulator.build import BuildError
from tcgemm.gate import cases, output, predictions, report, run
from tcgemm.gate.subjects import rungs

WRONG, UNUSABLE = 1, 2  # exit states: a result is wrong; the gate could not run


def parser() -> argparse.ArgumentParser:
    """The options of `python -m tcgemm gate`."""
    made = argparse.ArgumentParser(
        prog="python -m tcgemm gate",
        description="Grades every rung, or your own solve(): eight cases, memory budget, speed beside cublasGemmEx, "
        "tier. Exit status 1 means that a result is wrong; slow is no failure.",
    )
    made.add_argument("--algo", action="append", metavar="NAME", help="a rung, or auto (default: all; repeatable)")
    made.add_argument(
        "--device",
        choices=("cuda", "emulator", "cpu"),
        help="default: cuda where there is a GPU; on cpu the op's CPU kernel stands for all, and nothing is timed",
    )
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results there")
    made.add_argument(
        "--unguarded",
        action="store_true",
        help="also build wmma_staged without its K guard (needs nvcc and csrc) and run it on odd",
    )
    made.add_argument(
        "--record",
        type=Path,
        metavar="FILE",
        help="run nothing; write the outcomes in this result file into predictions.toml",
    )
    made.add_argument("--predictions", type=Path, default=predictions.FILE, metavar="FILE", help=argparse.SUPPRESS)
    solve = made.add_argument_group("your own function")
    solve.add_argument(
        "--solve",
        type=Path,
        metavar="FILE.cu|LIB",
        help="grade the seed's solve() in this source file or shared library",
    )
    solve.add_argument("--tile", type=int, metavar="T", help="your declared tile size, for the memory budget")
    solve.add_argument(
        "--reads",
        type=int,
        metavar="N",
        help="global loads that your busiest thread issues at K = 4096, for the memory budget",
    )
    solve.add_argument("--timeout", type=float, default=60.0, metavar="SECONDS", help="for one call (default: 60)")
    return made


def main(argv: list[str] | None = None) -> int:
    """Returns the exit status: 0 all right, 1 a wrong result, 2 the gate could not run."""
    arguments = parser().parse_args(argv)
    words = ["python", "-m", "tcgemm", "gate", *(sys.argv[2:] if argv is None else argv)]
    # For `meta`, without the result file's folder, which says nothing about the run.
    command = shlex.join(Path(word).name if last == "--json" else word for last, word in zip(["", *words], words))
    try:
        judged = predictions.load(arguments.predictions)
        if arguments.record is not None:
            predictions.record(judged, arguments.record, arguments.predictions)
            return 0
        if arguments.device == "emulator" and arguments.solve is not None:
            raise Unusable("python -m tcgemm emulate --solve FILE.cu runs your function on the emulator")
        if arguments.device == "cuda" and not torch.cuda.is_available():
            raise Unusable("there is no CUDA device")
        if arguments.device is None:
            arguments.device = "cuda" if torch.cuda.is_available() else "cpu"
        if arguments.solve is not None:
            from tcgemm.gate.solve import grade

            return grade.main(arguments, command)
        return gate(arguments, judged, command)
    except (Unusable, predictions.PredictionError, ValueError, OSError, BuildError) as error:
        print(f"tcgemm gate: {error}", file=sys.stderr)
        return UNUSABLE


class Unusable(RuntimeError):
    """The gate cannot run here; the message says why."""


def gate(arguments: argparse.Namespace, judged: list[predictions.Prediction], command: str) -> int:
    """Grades the rungs, prints the report, writes the result file."""
    console = report.console_of()
    device = torch.device("cuda", torch.cuda.current_device()) if arguments.device == "cuda" else torch.device("cpu")
    emulated = arguments.device == "emulator"
    if emulated:
        from tcgemm.emulator import gate as emulator

    subjects = emulator.subjects(arguments.algo) if emulated else rungs(arguments.algo)
    monitor = output.monitor_of(device)
    with output.progress() as bar:
        task = bar.add_task("gate", total=run.steps(subjects, device) + len(cases.GATE_CASES))

        def tick(text: str) -> None:
            bar.update(task, advance=1, description=text)

        found = run.run(subjects, device, tick, monitor.sample if monitor else lambda: None)
        if device.type == "cuda" and arguments.algo is None:
            from tcgemm.gate.solve import own

            own.add_to(found, device, arguments.timeout, tick)
    found.predictions = judged
    predictions.settle(judged, found.times, _unguarded(arguments, console))
    show(console, found)
    if device.type == "cpu":
        left_out = ", ".join(cases.left_out(device) + (emulator.not_emulated() if emulated else []))
        who = "the emulator ran the rungs, lane by lane" if emulated else "the op's CPU kernel stood for every rung"
        report.say(console, f"No GPU: {who}. Not run: {left_out}; times; tiers.")
    if arguments.json:
        output.write(arguments.json, found.as_dict(output.meta_of(device, monitor, command)))
        report.say(console, f"results: {arguments.json}")
    return 0 if found.correct else WRONG


def show(console: Console, found: run.Report) -> None:
    """Prints the four parts that a submission consists of."""
    report.correctness(console, found.rows)
    report.sweep(console, found.shapes)
    report.times(console, found.times)
    for text in found.failures:
        report.say(console, f"not timed: {text}")
    report.tiers(console, found.tiers, found.capability)
    report.predictions(console, found.predictions)


def _unguarded(arguments: argparse.Namespace, console: Console) -> tuple[str, str] | None:
    if not arguments.unguarded:
        return None
    from tcgemm.gate.solve import unguarded

    console.print("building wmma_staged without its K guard")
    return unguarded.run(arguments.timeout)
