"""CUTLASS's Hopper GEMM in several tiles: cutlass_gemm.cu, compiled once with nvcc and called through ctypes.

The headers are those under CUTLASS_DIR (a checkout, or what holds its include/), else those that the PyPI package
nvidia-cutlass carries. TCGEMM_PEER_CUTLASS names a library that was compiled elsewhere; then neither headers nor nvcc
are needed.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import time
from collections.abc import Callable
from importlib import util
from pathlib import Path

import torch
from torch import Tensor

from bench.calls import Call
from bench.peers import Absent, Peer, Refused, contained, line, require_vectors, row_major

SOURCE = Path(__file__).with_name("cutlass_gemm.cu")
CACHE = Path(__file__).parents[2] / "build" / "peers"
PREBUILT = "TCGEMM_PEER_CUTLASS"
HEADERS = "CUTLASS_DIR"
ARCH = "-gencode=arch=compute_90a,code=sm_90a"
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", ARCH, "--expt-relaxed-constexpr", "-Xcompiler", "-fPIC", "-shared")
INSTALL = f"not installed (pip install --no-deps nvidia-cutlass, or {HEADERS}=a checkout of CUTLASS)"

# In the order of the switch in cutlass_gemm.cu: m x n x k, clusters of two blocks along m.
TILES = ("pingpong 128x128x64", "pingpong 128x192x64", "cooperative 128x256x64", "cooperative 256x128x64")
MAX_SWIZZLES = (1, 8)  # CUTLASS's default, and what large problems gain from


class PeerGemm(ctypes.Structure):
    """The struct of the same name in cutlass_gemm.cu."""

    _fields_ = (
        *((name, ctypes.c_int32) for name in ("tile", "max_swizzle", "bfloat16", "b_column_major", "m", "n", "k")),
        *((name, ctypes.c_int32) for name in ("device", "sm_count")),
        *((name, ctypes.c_void_p) for name in ("a", "b", "c")),
        *((name, ctypes.c_int64) for name in ("lda", "ldb", "ldc")),
        ("stream", ctypes.c_void_p),
    )


def include_dir() -> Path:
    """Where CUTLASS's headers are. Raises Absent."""
    if given := os.environ.get(HEADERS):
        found = [path for path in (Path(given) / "include", Path(given)) if (path / "cutlass" / "version.h").is_file()]
        if not found:
            raise Absent(f"{HEADERS} has no include/cutlass/version.h")
        return found[0]
    package = util.find_spec("cutlass_library")  # found, not imported: the headers need none of what it imports
    for place in (package.submodule_search_locations or []) if package else []:
        headers = Path(place) / "source" / "include"
        if (headers / "cutlass" / "version.h").is_file():
            return headers
    raise Absent(INSTALL)


def nvcc() -> str:
    """The compiler. Raises Absent."""
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    if found := shutil.which("nvcc") or shutil.which(str(Path(home) / "bin" / "nvcc")):
        return found
    raise Absent("nvcc was not found, and it has to be compiled")


def library(say: Callable[[str], None]) -> Path:
    """The compiled library: prebuilt, from the cache, or compiled now. Raises Absent."""
    if given := os.environ.get(PREBUILT):
        if not Path(given).is_file():
            raise Absent(f"{PREBUILT} names no file")
        return Path(given).resolve()
    include = include_dir()
    state = SOURCE.read_bytes() + (include / "cutlass" / "version.h").read_bytes() + " ".join(FLAGS).encode()
    target = CACHE / f"cutlass-{hashlib.sha256(state).hexdigest()[:16]}.so"
    if not target.is_file():
        _compile(include, target, say)
    return target


def _compile(include: Path, target: Path, say: Callable[[str], None]) -> None:
    compiler = nvcc()
    say("peer cutlass: compiling, once, for some minutes")
    target.parent.mkdir(parents=True, exist_ok=True)
    partial, started = target.with_suffix(f".{os.getpid()}.part"), time.monotonic()
    command = [compiler, *FLAGS, f"-I{include}", "-o", str(partial), str(SOURCE)]
    made = subprocess.run(command, capture_output=True, text=True)
    if made.returncode:
        errors = [text for text in made.stderr.splitlines() if re.search(r"\berror\b", text)]
        raise Absent(f"nvcc failed: {(errors or ['exit status ' + str(made.returncode)])[0]}")
    os.replace(partial, target)
    say(f"peer cutlass: compiled in {time.monotonic() - started:.0f} s")


def load(say: Callable[[str], None]) -> Peer:
    """Raises Absent on a device of another capability, and where it is neither compiled nor can be."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    if (properties.major, properties.minor) != (9, 0):
        raise Absent(f"needs compute capability 9.0, this device has {properties.major}.{properties.minor}")
    path = library(say)
    try:
        functions = ctypes.CDLL(str(path))
        refusal, launch = functions.tcgemm_peer_refusal, functions.tcgemm_peer_launch
        number = functions.tcgemm_peer_version()
    except (OSError, AttributeError) as error:
        raise Absent(f"the compiled library cannot be used: {error}") from error
    for function in (refusal, launch):
        function.argtypes, function.restype = [ctypes.POINTER(PeerGemm)], ctypes.c_char_p
    version = f"{number // 100}.{number // 10 % 10}.{number % 10}"
    return Peer("cutlass", version, lambda a, b: variants(a, b, refusal, launch, properties.multi_processor_count))


Function = Callable[[object], bytes | None]  # takes a pointer to a PeerGemm


def variants(a: Tensor, b: Tensor, refusal: Function, launch: Function, sm_count: int) -> dict[str, Call]:
    """A call for each tile and each of MAX_SWIZZLES. Raises Refused."""
    (m, k), n = a.shape, b.shape[1]
    if not row_major(a):
        raise Refused("A is column-major: compiled for NN and NT alone")
    require_vectors(a=a, b=b)
    if n % 4:
        raise Refused(f"rows of C have {4 * n} bytes, no multiple of 16")
    given = {
        "bfloat16": a.dtype is torch.bfloat16,
        "b_column_major": not row_major(b),
        "m": m,
        "n": n,
        "k": k,
        "device": a.device.index or 0,
        "sm_count": sm_count,
        "a": a.data_ptr(),
        "b": b.data_ptr(),
        "lda": line(a),
        "ldb": line(b),
        "ldc": n,
    }
    found, reasons = {}, {}
    for tile, name in enumerate(TILES):
        for swizzle in MAX_SWIZZLES:
            problem = PeerGemm(tile=tile, max_swizzle=swizzle, **given)
            if reason := refusal(ctypes.byref(problem)):
                reasons.setdefault(reason.decode(), name)
            else:
                title = f"{name}, 2x1, swizzle {swizzle}"
                found[title] = contained(_call(a, b, problem, launch))
    if not found:
        raise Refused("can_implement: " + "; ".join(f"{reason} ({name})" for reason, name in reasons.items()))
    return found


def _call(a: Tensor, b: Tensor, problem: PeerGemm, launch: Function) -> Call:
    def run() -> Tensor:
        c = torch.empty((a.shape[0], b.shape[1]), dtype=torch.float32, device=a.device)
        problem.c = c.data_ptr()
        problem.stream = torch.cuda.current_stream().cuda_stream
        if error := launch(ctypes.byref(problem)):
            raise RuntimeError(f"CUTLASS: {error.decode()}")
        return c

    return run
