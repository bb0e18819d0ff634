"""Keeps what ptxas says about each kernel: registers, spills, shared memory.

ptxas_report.py compile DIR COMMAND...     runs a compiler (through ccache or not); its ptxas lines go to
                                           DIR/<source>.txt, everything else it says to the screen
ptxas_report.py collect DIR OUT SOURCE...  reads those files and writes OUT, a JSON list with one row for each
                                           kernel and architecture
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

_INFO = re.compile(r"^(ptxas info\s*:|\s+\d+ bytes stack frame)")
_ENTRY = re.compile(r"Compiling entry function '(\w+)' for '(\w+)'")
_SPILLS = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers")
_SHARED = re.compile(r"(\d+) bytes smem")


def compile_source(folder: Path, command: list[str]) -> int:
    """Runs `command` and keeps the ptxas lines of its standard error. Returns its exit status."""
    run = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
    lines = run.stderr.splitlines(keepends=True)
    sys.stderr.write("".join(line for line in lines if not _INFO.match(line)))
    source = next((arg for arg in command if arg.endswith(".cu")), None)
    if run.returncode == 0 and source is not None:
        folder.mkdir(parents=True, exist_ok=True)
        text = "".join(line for line in lines if _INFO.match(line))
        (folder / f"{Path(source).name}.txt").write_text(text)
    return run.returncode


def demangle(names: list[str]) -> list[str]:
    """The names as C++ writes them, or unchanged where no demangler is installed."""
    tool = shutil.which("c++filt")
    if tool is None or not names:
        return names
    run = subprocess.run([tool], input="\n".join(names), capture_output=True, text=True, check=True)
    return run.stdout.splitlines()


def rows_of(source: str, text: str) -> list[dict]:
    """One row for each "Compiling entry function" of a source's ptxas lines."""
    rows: list[dict] = []
    for line in text.splitlines():
        if entry := _ENTRY.search(line):
            rows.append({"source": source, "function": entry[1], "arch": entry[2], "shared_bytes": 0})
        elif spills := _SPILLS.search(line):
            # Device functions that were not inlined have such a line too, before any kernel.
            if rows:
                keys = ("stack_bytes", "spill_store_bytes", "spill_load_bytes")
                rows[-1].update(zip(keys, map(int, spills.groups()), strict=True))
        elif used := _USED.search(line):
            shared = _SHARED.search(line)
            rows[-1]["registers"] = int(used[1])
            rows[-1]["shared_bytes"] = int(shared[1]) if shared else 0
    return rows


def collect(folder: Path, out: Path, sources: list[str]) -> None:
    """Writes the rows of all sources, and fails when one has none: a report that says nothing is no report."""
    rows: list[dict] = []
    for source in sources:
        found = rows_of(source, (folder / f"{Path(source).name}.txt").read_text())
        if not found or any("registers" not in row for row in found):
            raise SystemExit(f"ptxas_report: no complete figures for {source} in {folder}; rebuild it")
        rows += found
    for row, name in zip(rows, demangle([row["function"] for row in rows]), strict=True):
        row["kernel"] = name
    out.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    mode, directory = sys.argv[1], Path(sys.argv[2])
    if mode == "compile":
        sys.exit(compile_source(directory, sys.argv[3:]))
    collect(directory, Path(sys.argv[3]), sys.argv[4:])
