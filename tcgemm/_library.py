"""Loads the C++ libraries, and knows why one could not be loaded. The only file that does.

    libtcgemm.so           schemas, autograd front, CPU kernels: without it there is no tcgemm
    libtcgemm_cuda.so      the CUDA kernels, and the C functions of csrc/introspect.h
    libtcgemm_baseline.so  cuBLAS, for comparison

Loading creates no CUDA context and needs neither a GPU nor a driver.
"""

from __future__ import annotations

import ctypes
import json
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import torch

FOLDER = Path(__file__).resolve().parent / "lib"
_BUILD = "pip install --no-build-isolation -e . in tcgemm's source tree builds it"


def path_of(name: str) -> Path:
    """Where the library `name` ("tcgemm", "tcgemm_cuda", "tcgemm_baseline") should lie."""
    return FOLDER / f"lib{name}.so"


def _load(name: str) -> tuple[ctypes.CDLL | None, str | None]:
    """The library, or why there is none."""
    path = path_of(name)
    if not path.exists():
        return None, f"{path.name} was not built; {_BUILD} where nvcc is installed"
    try:
        torch.ops.load_library(str(path))
        return ctypes.CDLL(str(path)), None
    except OSError as error:
        reason = error.__cause__ or error  # torch's own text names the path alone
        return None, f"{path.name} cannot be loaded: {reason}; it needs a torch >= 2.10 that was built for CUDA 13"


def _load_core() -> ctypes.CDLL:
    path = path_of("tcgemm")
    if not path.exists():
        raise ImportError(f"{path} is missing; {_BUILD}")
    try:
        torch.ops.load_library(str(path))
    except OSError as error:
        raise ImportError(
            f"{path.name} cannot be loaded: {error.__cause__ or error}; it needs torch >= 2.10"
        ) from error
    library = ctypes.CDLL(str(path))
    library.tcgemm_note_error.argtypes = [ctypes.c_char_p]
    library.tcgemm_note_error.restype = None
    library.tcgemm_kernels.restype = ctypes.c_char_p
    library.tcgemm_algo_id.argtypes = [ctypes.c_char_p]
    library.tcgemm_algo_id.restype = ctypes.c_int64
    return library


core = _load_core()
cuda, cuda_error = _load("tcgemm_cuda")
baseline, baseline_error = _load("tcgemm_baseline") if cuda is not None else (None, cuda_error)


def note_error(text: str) -> None:
    """Leaves `text` for the C++ front, to which an exception raised in Python arrives as a mere error code."""
    core.tcgemm_note_error(text.encode())


def fail(text: str) -> NoReturn:
    """Raises RuntimeError(text), also when the C++ front lies between here and the caller."""
    note_error(text)
    raise RuntimeError(text)


@cache
def build_info() -> dict[str, Any]:
    """What CMake wrote about the build: versions, compilers, architectures of each kernel family."""
    path = FOLDER.parent / "_build_info.json"
    return json.loads(path.read_text()) if path.exists() else {}


@cache
def kernel_rows() -> list[dict[str, Any]]:
    """The rows of csrc/kernels.def, as csrc/introspect.h describes them."""
    return json.loads(core.tcgemm_kernels())


@cache
def algo_id(algo: str | None) -> int:
    """The number that stands for a kernel's name in private ops (csrc/torch/call.h)."""
    return core.tcgemm_algo_id(None if algo is None else algo.encode())


def _cuda_library() -> ctypes.CDLL:
    if cuda is None:
        raise RuntimeError(f"tcgemm: {cuda_error}")
    return cuda


def _ask(function: Any, *arguments: Any) -> dict[str, Any]:
    """Calls a function that writes JSON into its last two arguments."""
    size = 4096
    while True:
        out = ctypes.create_string_buffer(size)
        length = function(*arguments, out, size)
        if length < 0:
            raise RuntimeError(f"tcgemm: {function.__name__} failed with CUDA error {-length}; is there a GPU?")
        if length < size:
            return json.loads(out.value)
        size = length + 1


def _problem(dtype: int, mnk: tuple[int, ...], strides: tuple[int, ...], offsets: tuple[int, ...]) -> tuple[Any, ...]:
    return (dtype, (ctypes.c_int64 * 3)(*mnk), (ctypes.c_int64 * 4)(*strides), (ctypes.c_int64 * 2)(*offsets))


DTYPE_CODES = {torch.float16: 0, torch.bfloat16: 1, torch.float32: 2}


def explain(
    algo: str | None,
    dtype: torch.dtype,
    mnk: tuple[int, int, int],
    strides: tuple[int, int, int, int],
    offsets: tuple[int, int] = (0, 0),
    *,
    capability: int,
    code_arch: int,
    sm_count: int,
) -> dict[str, Any]:
    """tcgemm_explain: which kernel takes a problem on a device that need not exist, and why."""
    problem = _problem(DTYPE_CODES[dtype], mnk, strides, offsets)
    name = None if algo is None else algo.encode()
    return _ask(_cuda_library().tcgemm_explain, name, *problem, capability, code_arch, sm_count)


def footprint(
    algo: str | None,
    dtype: torch.dtype,
    mnk: tuple[int, int, int],
    strides: tuple[int, int, int, int],
    offsets: tuple[int, int] = (0, 0),
    *,
    device: int = 0,
) -> dict[str, Any]:
    """tcgemm_footprint: registers, shared memory and occupancy of the kernel that would run. Needs a GPU."""
    problem = _problem(DTYPE_CODES[dtype], mnk, strides, offsets)
    name = None if algo is None else algo.encode()
    return _ask(_cuda_library().tcgemm_footprint, name, *problem, device)


def device_info(device: int = 0) -> dict[str, int]:
    """Capability (90 is 9.0), architecture of the code that runs there, number of SMs. Needs a GPU."""
    out = (ctypes.c_int * 3)()
    error = _cuda_library().tcgemm_device_info(device, out)
    if error != 0:
        raise RuntimeError(f"tcgemm: device {device} cannot be asked: CUDA error {error}; is there such a GPU?")
    return dict(zip(("capability", "code_arch", "sm_count"), out, strict=True))


def cublas_facts() -> dict[str, Any]:
    """What the baseline asks of cuBLAS: cudaDataType, cublasComputeType_t and so on, and the library's version."""
    if baseline is None:
        raise RuntimeError(f"tcgemm: {baseline_error}")
    return _ask(baseline.tcgemm_cublas_facts)
