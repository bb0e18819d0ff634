"""python -m tcgemm COMMAND: a command is a module of this package with a function main(argv)."""

from __future__ import annotations

import importlib
import importlib.util
import sys

COMMANDS = {
    "info": "what is built, what is loaded, what is missing",
    "gate": "the correctness gate, for this package's kernels or your own solve()",
    "emulate": "a kernel on the CPU, lane by lane",
    "explain": "the page that shows what a kernel does",
}


def _built() -> dict[str, str]:
    return {name: text for name, text in COMMANDS.items() if importlib.util.find_spec(f"tcgemm.{name}")}


def main(argv: list[str] | None = None) -> int:
    """Runs the command that argv names with the arguments behind it. Returns its exit status."""
    arguments = sys.argv[1:] if argv is None else argv
    commands = _built()
    if not arguments or arguments[0] not in commands:
        asked_for_help = bool(arguments) and arguments[0] in ("-h", "--help")
        width = max(map(len, commands))
        lines = ["usage: python -m tcgemm COMMAND ...", ""]
        lines += [f"  {name:{width}}  {text}" for name, text in commands.items()]
        print("\n".join(lines), file=sys.stdout if asked_for_help else sys.stderr)
        return 0 if asked_for_help else 2
    return importlib.import_module(f"tcgemm.{arguments[0]}").main(arguments[1:]) or 0


if __name__ == "__main__":
    sys.exit(main())
