"""Runs one matrix product on the emulator: the result, what was found wrong, and what was counted."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from tcgemm.emulator import build

ALIGNMENT = 256  # bytes; where an operand lies is told relative to a multiple of it
Progress = Callable[[int, int], None]  # blocks done, blocks in all


class EmulatorError(RuntimeError):
    """The problem could not be run at all: the kernel refuses it, or the program died."""


@dataclass(frozen=True)
class Finding:
    """Something that a kernel did wrong, where it did it first, and how often."""

    fault: str  # "race", "out_of_bounds", ...: docs/emulator.md lists them
    text: str
    file: str  # below csrc/
    line: int
    block: int
    warp: int
    lane: int
    index: int  # of the element in its operand or shared array
    times: int

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}: " if self.file else ""
        who = f"block {self.block}, warp {self.warp}, lane {self.lane} " if self.block >= 0 else ""
        return f"{self.fault}: {where}{who}{self.text}" + (f" ({self.times} times)" if self.times > 1 else "")


@dataclass(frozen=True)
class Row:
    """Traffic of one source line of one warp (its number in the block), summed over blocks."""

    access: str  # global_load, global_store, shared_load, shared_store, async_load, async_store, fragment_load, ...
    space: str  # A, B, C, or "shared 0"
    file: str
    line: int
    warp: int
    width: int  # bytes a lane
    instructions: int
    requests: int  # instructions with an active lane
    sectors: int  # 32 bytes, distinct within a request
    wavefronts: int  # of shared memory
    bytes: int


@dataclass(frozen=True)
class Counts:
    """What a launch did to memory. Sectors and wavefronts are sums over all warps and blocks."""

    rows: list[Row] = field(default_factory=list)
    distinct: dict[str, tuple[int, int]] = field(default_factory=dict)  # load, store sectors between two barriers
    reads_per_thread: int = 0  # load instructions of the busiest thread
    wmma: int = 0  # 16x16x16 products
    mma_k8: int = 0  # mma.sync m16n8k8
    mma_k16: int = 0  # and m16n8k16
    barriers: int = 0

    def total(self, what: str, *, access: Sequence[str] = (), space: Sequence[str] = ()) -> int:
        """The sum of a column of `rows`, over those of the accesses and spaces named (all, when none is)."""
        return sum(
            getattr(row, what)
            for row in self.rows
            if (not access or row.access in access) and (not space or row.space in space)
        )

    @property
    def load_sectors(self) -> int:
        return sum(row.sectors for row in self.rows if row.access in _GLOBAL_LOADS)

    @property
    def store_sectors(self) -> int:
        return sum(row.sectors for row in self.rows if row.access in _GLOBAL_STORES)


_GLOBAL_LOADS = ("global_load", "async_load", "fragment_load")
_GLOBAL_STORES = ("global_store", "fragment_store")


@dataclass(frozen=True)
class Result:
    c: Tensor  # [m, n], float32, contiguous
    findings: list[Finding]
    counts: Counts
    reached: int  # how often emulator::reached() ran, which tests put into kernels
    declared_reads: int  # what the kernel's own formula says about reads_per_thread; -1: it has none
    cpu_seconds: float


class Emulator:
    """A running program of build.program(); several problems may be sent to it, one after the other."""

    def __init__(self, program: Path) -> None:
        self._process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Emulator:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()

    def run(
        self,
        algo: str,
        a: Tensor,
        b: Tensor,
        *,
        out: Tensor | None = None,
        order: str = "alternate",
        threads: int | None = None,
        counts: bool = True,
        trace: Path | None = None,
        trace_block: int = 0,
        trace_warp: int = -1,
        capability: int = 90,
        progress: Progress | None = None,
    ) -> Result:
        """a [m,k] times b [k,n], CPU tensors of one dtype, at the strides and alignment that they have.

        With `out` (float32, [m,n]) C takes its strides and alignment, and its elements are overwritten; elements
        that the kernel never wrote become NaN. `order` is that of the warps: ascending, descending, or alternate.
        `trace`: a file for the steps of block `trace_block` (of warp `trace_warp` alone, unless it is -1).
        Raises EmulatorError when the kernel refuses the problem or the program dies.
        """
        m, k = a.shape
        n = b.shape[1]
        if b.shape[0] != k or a.dtype != b.dtype:
            raise EmulatorError(f"a is {tuple(a.shape)} {a.dtype}, b is {tuple(b.shape)} {b.dtype}: they do not fit")
        c = torch.empty(m, n, dtype=torch.float32) if out is None else out
        with tempfile.TemporaryDirectory(prefix="tcgemm-", dir=_fast_folder()) as folder:
            request: dict[str, object] = {
                "algo": algo, "dtype": str(a.dtype).removeprefix("torch."), "m": m, "n": n, "k": k,
                "order": order, "threads": threads or os.cpu_count() or 1, "counts": int(counts),
                "capability": capability, "progress": int(progress is not None),
            }  # fmt: skip
            for name, matrix in (("a", a), ("b", b), ("c", c)):
                path = Path(folder) / name
                if name != "c":
                    _write(path, matrix)
                offset = matrix.data_ptr() % ALIGNMENT // matrix.element_size()
                request |= {name: path, f"{name}_strides": "{},{}".format(*matrix.stride()), f"{name}_offset": offset}
            if trace is not None:
                request |= {"trace": Path(trace).absolute(), "trace_block": trace_block, "trace_warp": trace_warp}
            answer = self._ask(request, progress)
            if "error" in answer:
                findings = "".join(f"\n  {Finding(**each)}" for each in answer["findings"])
                raise EmulatorError(f"tcgemm::emulate[{algo}]: {answer['error']}{findings}")
            got = torch.empty(m, n, dtype=torch.float32)
            if got.numel():
                got = torch.frombuffer(bytearray((Path(folder) / "c").read_bytes()), dtype=torch.float32).view(m, n)
        if out is not None:
            out.copy_(got)
        return Result(
            got,
            [Finding(**each) for each in answer["findings"]],
            _counts(answer["counts"]),
            sum(each["times"] for each in answer["reached"]),
            answer["declared_reads"],
            answer["cpu_seconds"],
        )

    def _ask(self, request: dict[str, object], progress: Progress | None) -> dict[str, Any]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(" ".join(f"{key}={value}" for key, value in request.items()) + "\n")
            stdin.flush()
        except BrokenPipeError:
            raise EmulatorError(f"the emulator's program has ended with status {self._process.wait()}") from None
        for line in stdout:
            answer: dict[str, Any] = json.loads(line)
            if "progress" not in answer:
                return answer
            if progress is not None:
                progress(*answer["progress"])
        status = self._process.wait()
        raise EmulatorError(
            f"the emulator's program died with signal {-status}: the kernel runs wild, or its stack overflows"
            if status < 0
            else f"the emulator's program ended with status {status}"
        )


def run_problem(algo: str, a: Tensor, b: Tensor, **options: Any) -> Result:
    """a [m,k] times b [k,n] by the rung `algo`, lane by lane: Emulator.run with the same options.

    The rungs are compiled first, if their sources have changed. Raises EmulatorError, and BuildError.
    """
    with Emulator(build.program(trace=options.get("trace") is not None)) as emulator:
        return emulator.run(algo, a, b, **options)


def _fast_folder() -> str | None:
    return "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def _write(path: Path, matrix: Tensor) -> None:
    bits = torch.int16 if matrix.element_size() == 2 else torch.int32
    path.write_bytes(matrix.detach().contiguous().view(bits).numpy().tobytes())


def _counts(answer: dict[str, Any]) -> Counts:
    return Counts(
        [Row(**row) for row in answer["rows"]],
        {each["space"]: (each["load_sectors"], each["store_sectors"]) for each in answer["distinct"]},
        answer["reads_per_thread"],
        answer["wmma"],
        answer["mma_k8"],
        answer["mma_k16"],
        answer["barriers"],
    )
