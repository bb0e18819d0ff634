"""python -m bench compare | plot | report | diff | validate | sets | profile | publish | tune"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from bench import arguments, results

FILES = ("--json", "--report", "--plots", "--gate", "--ncu")
NO_GPU = """\
No CUDA device here: nothing was measured, and no result file, plot or report was written.
Not measured: times, ratios to cuBLAS, accuracy on the device, the roofline, host time per call.
What runs without a GPU: python -m bench plot, report, diff and validate, on a result file such as those under
bench/results/."""
FEW_ROWS = 60  # up to this many, the terminal shows every row; above it, those of auto


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="python -m bench", description="Compares tcgemm with cuBLAS and torch.matmul.")
    commands = top.add_subparsers(dest="command", required=True)
    compare = commands.add_parser("compare", help="measure (needs a CUDA device)")
    arguments.add(compare)
    compare.add_argument("--algo", help="comma-separated rungs, or auto (default: every rung and auto)")
    compare.add_argument("--peers", nargs="?", const="all", metavar="NAMES", help="measure cutlass and quack as well")
    compare.add_argument("--repeats", type=int, default=50, help="rounds a measurement (default 50)")
    compare.add_argument("--seconds", type=float, default=0.3, help="but no longer than this for one (0.3; auto: 4x)")
    compare.add_argument("--total-seconds", type=float, help="start no further problem after this long")
    compare.add_argument("--json", metavar="FILE", help="write the result file")
    compare.add_argument("--plots", metavar="DIR", help="draw plots there")
    compare.add_argument("--rows", choices=("auto", "all"), help="which rows the terminal shows")
    for command in (compare, commands.add_parser("report", help="write the markdown report of a result file")):
        command.add_argument("--gate", metavar="FILE", help="gate.json, for the report")
        command.add_argument("--ncu", metavar="FILE", help="ncu export (see: profile), for the report")
        command.add_argument("--ncu-size", type=int, default=2048, help="N of that export (default 2048)")
    compare.add_argument("--report", metavar="FILE", help="write a markdown report")
    commands.choices["report"].add_argument("file")
    commands.choices["report"].add_argument("--out", required=True, metavar="FILE")
    commands.choices["report"].add_argument("--plots", metavar="DIR", help="where its plots lie")
    plot = commands.add_parser("plot", help="draw the plots of a result file; needs no GPU")
    plot.add_argument("file")
    plot.add_argument("--out", metavar="DIR", help="default: beside the file")
    diff = commands.add_parser("diff", help="what changed beyond the error bar; exit status 1 when something is slower")
    diff.add_argument("old")
    diff.add_argument("new")
    commands.add_parser("validate", help="check result files against the schema").add_argument("file", nargs="+")
    commands.add_parser("sets", help="list the sets of shapes")
    publish = commands.add_parser("publish", help="make plots, report and the README's figures from a committed run")
    publish.add_argument("dir", nargs="?", default="bench/results/h200", help="default: bench/results/h200")
    profile = commands.add_parser("profile", help="collect ncu counters of the capstone's paths (needs a GPU and ncu)")
    profile.add_argument("--size", type=int, default=2048)
    profile.add_argument("--csv", default="bench/out/ncu.csv", metavar="FILE")
    profile.add_argument("--ncu", default="ncu", help="the program (default: ncu)")
    tune = commands.add_parser("tune", help="hold auto's choice against every rung (needs a CUDA device)")
    arguments.add(tune)
    tune.add_argument("--repeats", type=int, default=30, help="rounds a problem (default 30)")
    tune.add_argument("--seconds", type=float, default=0.3, help="but no longer than this a problem (0.3)")
    return top


def command_line(words: list[str]) -> str:
    """The command for `meta`: without directories of files, which say nothing about the measurement."""
    shown = [Path(word).name if previous in FILES else word for previous, word in zip(["", *words], words)]
    return "python -m bench " + shlex.join(shown)


def _progress(problems: Iterable) -> Iterator:
    """A progress bar on a terminal; elsewhere the lines that compare prints are enough."""
    try:
        from rich.progress import track
    except ImportError:
        return iter(problems)
    return iter(track(problems, description="measuring")) if sys.stdout.isatty() else iter(problems)


def compare(options: argparse.Namespace) -> int:
    import torch

    problems = arguments.problems(options)
    if not torch.cuda.is_available():
        print(NO_GPU)
        return 0
    from bench import calls, peers
    from bench import compare as comparison
    from bench.timing import Effort

    algos = arguments.listed(options.algo)
    calls.check_names(algos or [])
    session = comparison.begin(
        algos,
        Effort(options.repeats, options.seconds),
        command_line(sys.argv[1:]),
        say=lambda line: print(line, flush=True),
        peer_names=peers.chosen(options.peers),
    )
    document = comparison.run(problems, session, options.json, options.total_seconds, _progress)
    show(document, options.rows)
    outputs(document, options)
    failed = any(row["failed"] for row in document["rows"] if not row.get("peer"))
    return 1 if failed or not document["meta"]["complete"] or not results.timed(document["rows"]) else 0


def show(document: dict, which: str | None) -> None:
    """Tables on the terminal, the summary and what makes the run unfit last."""
    from bench import render, table

    rows = document["rows"]
    if which == "auto" or (which is None and len(rows) > FEW_ROWS):
        rows = [row for row in rows if row["algo"] == "auto" or row["failed"] or row.get("peer")]
    tables = [
        table.main_table(rows, document["self_check"]),
        table.more_table([row for row in rows if row["algo"] == "auto" or row.get("peer")]),
    ]
    tables += [table.host_table(document["host"])] if document["host"] else []
    render.printer()([*tables, table.summary_table(document["rows"])])
    print(table.error_bar_note(document["self_check"]))
    if document["skipped"]:
        print(f"{len(document['skipped'])} measurements were skipped; the result file and the report say why.")
    for reason in document["unfit"]:
        print(f"UNFIT for claims: {reason}")


def outputs(document: dict, options: argparse.Namespace) -> None:
    """Plots, report and the validity of what was written."""
    for complaint in results.problems_of(options.json or "the result", document)[:10]:
        print(f"schema: {complaint}")
    if options.json:
        print(f"wrote {options.json}")
    if options.plots:
        draw(document, options.plots)
    if options.report:
        write_report(document, options, options.json, options.report)


def draw(document: dict, directory: str) -> int:
    from bench import plots

    try:
        written = plots.draw(document, directory)
    except ImportError:
        print("no plots: matplotlib is not installed (python -m bench plot draws them from the result file)")
        return 1
    print("\n".join(f"wrote {path} and .svg" for path in written) or "no plots: nothing was timed")
    return 0


def write_report(document: dict, options: argparse.Namespace, source: str | None, target: str) -> int:
    from bench import ncu, report

    gate = json.loads(Path(options.gate).read_text()) if options.gate else None
    counters = ncu.read(options.ncu) if options.ncu else None
    report.write(
        target,
        document,
        gate=gate,
        counters=counters,
        counters_size=options.ncu_size,
        plots=Path(options.plots) if options.plots else None,
        files=[Path(name) for name in (source, options.gate, options.ncu) if name],
    )
    print(f"wrote {target}")
    return 0


def diff(options: argparse.Namespace) -> int:
    from bench.diff import changes
    from bench.render import printer

    table, slower = changes(results.load(options.old), results.load(options.new))
    printer()([table])
    return 1 if slower else 0


def validate(options: argparse.Namespace) -> int:
    found = [text for path in options.file for text in results.problems_of(path, json.loads(Path(path).read_text()))]
    try:
        import jsonschema  # noqa: F401
    except ImportError:
        print("jsonschema is not installed: only the presence of fields was checked")
    print("\n".join(found) or "valid")
    return 1 if found else 0


def sets(options: argparse.Namespace) -> int:
    from bench.shapes import SETS

    for name, problems in SETS.items():
        print(f"{name}:", "; ".join(results.label(vars(p) | {"lda": p.lda, "ldb": p.ldb}) for p in problems))
    return 0


def publish(options: argparse.Namespace) -> int:
    from bench.publish import main as make

    return make(options.dir)


def profile(options: argparse.Namespace) -> int:
    from bench import ncu, render
    from bench.profile import collect

    if problem := collect(options.ncu, options.size, Path(options.csv)):
        print(problem)
        return 1
    print(render.plain(ncu.table(ncu.read(options.csv), options.size)))
    print(f"wrote {options.csv}")
    return 0


def tune(options: argparse.Namespace) -> int:
    import torch

    problems = arguments.problems(options)
    if not torch.cuda.is_available():
        print(NO_GPU)
        return 0
    from bench import calls, render, timing, tuning

    calls.require()
    found = tuning.run(_progress(problems), timing.Timer(), timing.Effort(options.repeats, options.seconds))
    render.printer()([tuning.table(found)])
    print("\n".join(tuning.losses(found)))
    return 0


def main() -> int:
    options = parser().parse_args()
    try:
        return {
            "compare": compare,
            "diff": diff,
            "validate": validate,
            "sets": sets,
            "profile": profile,
            "publish": publish,
            "tune": tune,
            "plot": lambda o: draw(results.load(o.file), o.out or str(Path(o.file).parent)),
            "report": lambda o: write_report(results.load(o.file), o, o.file, o.out),
        }[options.command](options)
    except (ValueError, RuntimeError) as error:
        print(f"python -m bench {options.command}: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
