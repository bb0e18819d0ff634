"""Runs every rung's small gate cases under compute-sanitizer: out-of-bounds accesses and shared-memory races.

    python tests/sanitize.py [--tool memcheck racecheck synccheck initcheck] [--algo NAME ...]
    python tests/sanitize.py --forms build/cmake/tests/cpp/test_wgmma_forms [--tool ...] [--jobs N]

With --forms it is the tile forms of wgmma instead, of which the rung's small cases reach few: each in a process of its
own, N side by side, since racecheck takes four minutes for one that splits k.

Exit status 0: every tool ran, every result was right, nothing was found. Needs a GPU and compute-sanitizer
(part of the CUDA Toolkit).

Each operand fills an allocation of its own to the last byte, and torch's caching allocator is off: otherwise
a stray access would land in memory that CUDA has given out. Inputs come from the host and results go back to
it, so that only our kernels run on the GPU.
"""

import argparse
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

sys.path.extend(str(directory) for directory in Path(__file__).resolve().parents[:2])

from bench.problems import DTYPES, GATE_CASES, Problem, values
from support import HALF_RUNGS, RUNGS

FOUND = 86  # compute-sanitizer's exit status when it reports something
TOOLS = ("memcheck", "racecheck", "synccheck", "initcheck")
SMALL = 620  # the longest side of the cases that are run: unit, onefrag, small, odd, adversarial


def problems() -> Iterator[Problem]:
    for case in GATE_CASES:
        if max(case.m, case.n, case.k) > SMALL:
            continue
        yield case
        if case.name != "odd":  # the largest: one layout is enough
            yield case.but(layout="NN", offset_a=1, pad_b=3)  # element loads
            yield case.but(layout="TN", pad_a=8, pad_c=4)
        yield case.but(layout="TT", m=case.m // 3 + 1, n=case.n // 4 + 1, k=case.k // 2 + 1)


def run_cases(algos: list[str]) -> int:
    """The child process. Returns how many results were wrong."""
    import torch

    import tcgemm  # noqa: F401

    wrong = 0
    for rung in RUNGS:
        if rung.name not in algos:
            continue
        for problem in (case.but(dtype=name) for case in problems() for name in DTYPES if DTYPES[name] in rung.dtypes):
            host = {side: packed(values(problem, side), *layout(problem, side)) for side in "ab"}
            gpu = {side: to_gpu(x) for side, x in host.items()}
            out = torch.full((problem.m, problem.ldc), float("nan"))
            out = to_gpu(out.as_strided((problem.m, problem.n), (problem.ldc, 1)))
            op = torch.ops.tcgemm.sgemm_out if problem.dtype == "float32" else torch.ops.tcgemm.mm_out
            try:
                op(gpu["a"], gpu["b"], out=out, algo=rung.name)
            except RuntimeError as refused:
                print(f"{rung.name}: {problem.name} {problem.dtype} {problem.layout} refused: {refused}")
                continue
            c = out.untyped_storage().cpu()
            c = torch.empty(0).set_(c).as_strided(out.shape, out.stride()).double()
            a, b = host["a"].double(), host["b"].double()
            if not ((c - a @ b).abs() <= 1e-3 + 1e-2 * (a.abs() @ b.abs())).all():
                print(f"{rung.name}: WRONG {problem}")
                wrong += 1
        print(f"{rung.name}: done", flush=True)
    return wrong


def layout(problem: Problem, side: str) -> tuple[tuple[int, int], int]:
    return problem.strides(side), problem.offset_a if side == "a" else problem.offset_b


def packed(x, strides: tuple[int, int], offset: int):
    """x with these strides, in a storage that ends with its last element."""
    import torch

    extent = offset + 1 + sum((length - 1) * stride for length, stride in zip(x.shape, strides, strict=True))
    memory = torch.full((extent,), float("nan"), dtype=x.dtype)
    return memory.as_strided(x.shape, strides, offset).copy_(x)


def to_gpu(x):
    """The same storage and strides on the GPU, without a kernel: .cuda() would repack x there."""
    import torch

    end = (
        x.storage_offset() + 1 + sum((length - 1) * stride for length, stride in zip(x.shape, x.stride(), strict=True))
    )
    whole = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage())[:end].cuda()
    return whole.as_strided(x.shape, x.stride(), x.storage_offset())


def under(sanitizer: str, tool: str) -> list[str]:
    command = [sanitizer, "--tool", tool, "--error-exitcode", str(FOUND), "--print-limit", "20"]
    return command + (["--report-api-errors", "no"] if tool == "memcheck" else [])


def verdict(status: int) -> str:
    return {0: "clean", FOUND: "reported something", 1: "wrong results"}.get(status, f"exit status {status}")


def run_tool(sanitizer: str, tool: str, algos: list[str]) -> bool:
    command = under(sanitizer, tool)
    command += [sys.executable, str(Path(__file__).resolve()), "--child", "--algo", *algos]
    print(f"== {tool}", flush=True)
    status = subprocess.run(command, env=dict(os.environ, PYTORCH_NO_CUDA_MEMORY_CACHING="1"), check=False).returncode
    print(f"== {tool}: {verdict(status)}", flush=True)
    return status == 0


def run_forms(sanitizer: str, tool: str, test: Path, jobs: int) -> bool:
    """Each form of `test`, built from tests/cpp/test_wgmma_forms.cpp, under the tool: a line for each, as they end."""
    names = subprocess.run([test, "names"], check=True, capture_output=True, text=True).stdout.split()

    def run(name: str) -> bool:
        start = time.monotonic()
        done = subprocess.run([*under(sanitizer, tool), test, "few", name], check=False, capture_output=True, text=True)
        said = done.stdout.strip().splitlines()
        checks = next((line for line in said if " checks, " in line), "no checks")
        print(f"{tool} {name}: {verdict(done.returncode)}, {checks}, {time.monotonic() - start:.0f} s", flush=True)
        if done.returncode != 0:
            print(*said[:20], done.stderr, sep="\n", flush=True)
        return done.returncode == 0

    with ThreadPoolExecutor(jobs) as pool:
        clean = list(pool.map(run, names))
    print(f"== {tool}: {sum(clean)} of {len(clean)} forms clean", flush=True)
    return all(clean)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tool", nargs="+", choices=TOOLS, default=["memcheck", "racecheck"])
    parser.add_argument("--algo", nargs="+", choices=[rung.name for rung in RUNGS], default=[r.name for r in RUNGS])
    parser.add_argument("--forms", type=Path, metavar="TEST", help="the test_wgmma_forms that was built")
    parser.add_argument("--jobs", type=int, default=8, help="forms side by side (8)")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    assert HALF_RUNGS, "csrc/kernels.def lists no kernel"
    if options.child:
        return 1 if run_cases(options.algo) else 0
    places = [shutil.which("compute-sanitizer"), "/usr/local/cuda/bin/compute-sanitizer"]
    sanitizer = next((place for place in places if place and Path(place).is_file()), None)
    if sanitizer is None:
        print("compute-sanitizer is not on the PATH; it comes with the CUDA Toolkit", file=sys.stderr)
        return 2
    if options.forms:
        clean = [run_forms(sanitizer, tool, options.forms, options.jobs) for tool in options.tool]
    else:
        clean = [run_tool(sanitizer, tool, options.algo) for tool in options.tool]
    return 0 if all(clean) else 1


if __name__ == "__main__":
    sys.exit(main())
