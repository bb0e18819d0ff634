"""What the tests share: layouts, float64 references with an error bound, subprocesses, memory readings."""

import os
import re
import resource
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
HALF = (torch.float16, torch.bfloat16)
DTYPES = (*HALF, torch.float32)


def short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


# ---------------------------------------------------------------- the table of kernels


@dataclass(frozen=True)
class Rung:
    """A row of csrc/kernels.def, read without loading any library."""

    name: str
    source: str
    family: str
    dtypes: tuple[torch.dtype, ...]
    min_arch: int
    min_arch_bf16: int
    max_capability: int
    tile: int
    batch_invariant: bool


def rungs() -> list[Rung]:
    text = (ROOT / "csrc" / "kernels.def").read_text()
    dtype_of = {"F16": torch.float16, "BF16": torch.bfloat16, "F32": torch.float32}
    rows = []
    for line in re.findall(r"^RUNG\((.*?),\s*\"", text, re.MULTILINE):
        name, source, family, dtypes, arch, bf16, newest, tile, invariant = [cell.strip() for cell in line.split(",")]
        rows.append(
            Rung(
                name,
                source,
                family,
                tuple(dtype_of[word.strip()] for word in dtypes.split("|")),
                int(arch),
                int(bf16),
                int(newest),
                int(tile),
                invariant == "true",
            )
        )
    return rows


RUNGS = rungs()
RUNG_NAMES = [rung.name for rung in RUNGS]
RUNG_DTYPES = [(rung, dtype) for rung in RUNGS for dtype in rung.dtypes]
RUNG_DTYPE_IDS = [f"{rung.name}-{short(dtype)}" for rung, dtype in RUNG_DTYPES]
HALF_RUNGS = [rung.name for rung in RUNGS if torch.float16 in rung.dtypes]


def why_not_here(rung: Rung, dtype: torch.dtype) -> str:
    """Empty, or why no problem of this dtype runs on GPU 0: its architecture, or that of the code built for it."""
    import tcgemm

    if not tcgemm._library.build_info()["archs"][rung.family]:
        return f"{rung.name}: none of the architectures that this library was built for has its instructions"
    facts = tcgemm._library.device_info(0)
    needed = rung.min_arch_bf16 if dtype is torch.bfloat16 else rung.min_arch
    if facts["code_arch"] < needed:
        return f"{rung.name} needs code for {needed} or newer, and GPU 0 runs code for {facts['code_arch']}"
    if 0 < rung.max_capability < facts["capability"]:
        return f"{rung.name} is for devices up to {rung.max_capability}, and GPU 0 has {facts['capability']}"
    return ""


def takes_everything(name: str | None) -> bool:
    """Whether a rung has no domain within its devices: auto has none, nor have the rungs of these families."""
    return name is None or RUNGS[RUNG_NAMES.index(name)].family in ("SIMT", "WMMA", "MMA")


def mm_or_skip(a: torch.Tensor, b: torch.Tensor, algo: str | None) -> torch.Tensor:
    """mm by `algo`. Skips the test where the rung is not for this device, or says that the problem is not for it."""
    if algo is not None and (reason := why_not_here(RUNGS[RUNG_NAMES.index(algo)], a.dtype)):
        pytest.skip(reason)
    try:
        return torch.ops.tcgemm.mm(a, b, algo=algo)
    except RuntimeError as error:
        if takes_everything(algo) or f"tcgemm::mm[{algo}]: " not in str(error):
            raise
        pytest.skip(str(error))


# ---------------------------------------------------------------- operands in every layout


def values(*size: int, dtype: torch.dtype, device: torch.device | str = "cpu") -> torch.Tensor:
    """Uniform in [-1, 1]."""
    return (torch.rand(size, device=device) * 2 - 1).to(dtype)


def integers(*size: int, dtype: torch.dtype, device: torch.device | str = "cpu", limit: int = 4) -> torch.Tensor:
    """Whole numbers in [-limit, limit]: with k * limit**2 < 2**24 every order of summation is exact."""
    return torch.randint(-limit, limit + 1, size, device=device).to(dtype)


def _inside_nan(rows: int, cols: int, left: int, pitch: int, make: Callable[..., torch.Tensor]) -> torch.Tensor:
    """rows x cols, row-major, `left` elements from the start, in memory that is NaN elsewhere."""
    inner = make(rows, cols)
    memory = torch.full((left + rows * pitch,), float("nan"), dtype=inner.dtype, device=inner.device)
    view = memory.as_strided((rows, cols), (pitch, 1), left)
    return view.copy_(inner)


def _spread(rows: int, cols: int, down: int, across: int, make: Callable[..., torch.Tensor]) -> torch.Tensor:
    """Every `down`th row and `across`th column of a matrix that is NaN elsewhere."""
    inner = make(rows, cols)
    memory = torch.full((rows * down, cols * across), float("nan"), dtype=inner.dtype, device=inner.device)
    return memory[::down, ::across].copy_(inner)


def _overlapping(rows: int, cols: int, make: Callable[..., torch.Tensor]) -> torch.Tensor:
    """x[i, j] = memory[i + j]: neighbouring rows share all but one element."""
    return make(1, max(rows + cols - 1, 1)).flatten().as_strided((rows, cols), (1, 1))


Make = Callable[..., torch.Tensor]
LAYOUTS: dict[str, Callable[[int, int, Make], torch.Tensor]] = {
    "row_major": lambda r, c, make: make(r, c),
    "col_major": lambda r, c, make: make(c, r).t(),
    "padded_by_1": lambda r, c, make: _inside_nan(r, c, 0, c + 1, make),
    "padded_by_8_transposed": lambda r, c, make: _inside_nan(c, r, 0, r + 8, make).t(),
    "offset_1": lambda r, c, make: _inside_nan(r, c, 1, c, make),
    "offset_3_transposed": lambda r, c, make: _inside_nan(c, r, 3, r + 5, make).t(),
    "every_other_row": lambda r, c, make: _spread(r, c, 2, 1, make),
    "every_other_col": lambda r, c, make: _spread(r, c, 1, 2, make),
    "no_unit_stride": lambda r, c, make: _spread(r, c, 3, 2, make),
    "stride_0_rows": lambda r, c, make: make(1, c).expand(r, c),
    "stride_0_cols": lambda r, c, make: make(r, 1).expand(r, c),
    "stride_0_0": lambda r, c, make: make(1, 1).expand(r, c),
    "overlapping": _overlapping,
    "neg_view": lambda r, c, make: torch._neg_view(make(r, c)),
}


# ---------------------------------------------------------------- what is right


def reference(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.double() @ b.double()


def error_bound(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """The most that k truncated FP32 additions, in any order, can be off, element by element.

    FP32 products of halves are exact; a tensor core truncates, so one step loses up to 2**-23 of the sum of
    magnitudes. The last term covers results that FP32 holds as subnormals.
    """
    return (a.shape[1] + 4) * 2.0**-23 * (a.double().abs() @ b.double().abs()) + 2.0**-126


def assert_product(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, what: str = "") -> None:
    """c is the FP32 row-major product of a and b."""
    assert c.dtype is torch.float32 and c.device == a.device
    assert c.shape == (a.shape[0], b.shape[1])
    assert c.is_contiguous() and not c.is_neg(), f"{what}: strides {c.stride()}"
    assert_values(c, a, b, what)


def assert_values(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, what: str = "") -> None:
    wanted = reference(a, b)
    error = (c.double() - wanted).abs()
    wrong = ~(error <= error_bound(a, b))  # a NaN is wrong
    if wrong.any():
        i, j = (int(x) for x in wrong.nonzero()[0])
        raise AssertionError(
            f"{what}: {int(wrong.sum())} of {wrong.numel()} elements are wrong; "
            f"c[{i},{j}] is {float(c[i, j])!r} instead of {float(wanted[i, j])!r}"
        )


def assert_bitwise(x: torch.Tensor, y: torch.Tensor, what: str = "") -> None:
    """Equal in every bit, NaNs included."""
    assert x.dtype is y.dtype and x.shape == y.shape, f"{what}: {x.dtype} {x.shape}, {y.dtype} {y.shape}"
    differ = x.contiguous().view(torch.int32) != y.contiguous().view(torch.int32)
    if differ.any():
        at = tuple(int(i) for i in differ.nonzero()[0])
        raise AssertionError(f"{what}: {int(differ.sum())} elements differ; {at}: {float(x[at])!r}, {float(y[at])!r}")


def assert_exact(c: torch.Tensor, a: torch.Tensor, b: torch.Tensor, what: str = "") -> None:
    """c is the product of matrices of whole numbers. Either zero will do: +0 + -0 is +0, and a lone -0 is -0."""
    wanted = reference(a, b).float()
    wrong = c != wanted
    if wrong.any():
        i, j = (int(x) for x in wrong.nonzero()[0])
        raise AssertionError(f"{what}: {int(wrong.sum())} wrong; c[{i},{j}] is {float(c[i, j])}, not {wanted[i, j]}")


# ---------------------------------------------------------------- processes and memory


def run_python(
    program: str, *, path: Path | None = None, timeout: float = 240, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Runs `program` in a fresh interpreter, with `path` first on its import path. Fails with its output."""
    paths = [str(path)] if path else []
    env = dict(os.environ, PYTHONPATH=os.pathsep.join([*paths, str(ROOT), os.environ.get("PYTHONPATH", "")]))
    env.update(environment)
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=path or ROOT,
        env=env,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def output_of(command: Sequence[str | Path], timeout: float = 240) -> str:
    return subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, timeout=timeout, check=True
    ).stdout


def host_bytes() -> int:
    """Resident memory of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
