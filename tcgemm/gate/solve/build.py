"""From a source file or library to a loadable `solve`: compiles it, finds the symbol, looks for cuBLAS."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

C_NAME = "solve"
# solve(const __half*, const __half*, float*, size_t, size_t, size_t, cudaStream_t) as C++ names it
CPP_NAME = "_Z5solvePK6__halfS1_PfmmmP11CUstream_st"
SIGNATURE = (
    "void solve(const __half* a, const __half* b, float* c, std::size_t m, std::size_t n, std::size_t k, "
    "cudaStream_t stream)"
)
CUDA_SOURCES, HOST_SOURCES = (".cu",), (".cpp", ".cc", ".c")
ERROR_LINES = 12  # of a compiler's output


class NotGradable(RuntimeError):
    """There is no solve() to run; the message is the verdict."""


@dataclass(frozen=True)
class Solve:
    """A library and the name of its function."""

    library: Path
    symbol: str


def prepare(source: Path, architecture: int, folder: Path) -> Solve:
    """Compiles `source` if it is one, and checks what it offers. Raises NotGradable with the verdict."""
    if not source.is_file():
        raise NotGradable(f"{source}: no such file")
    library = source.resolve()
    if source.suffix in CUDA_SOURCES + HOST_SOURCES:
        library = folder / f"{source.stem}.so"
        compile_library([source], library, architecture)
    found = Solve(library, find_symbol(library))
    if how := cublas_use(library):
        raise NotGradable(f"it {how}; the capstone asks for solve() without cuBLAS")
    return found


def compile_library(sources: list[Path], library: Path, architecture: int, standard: str = "c++17") -> None:
    """Builds a shared library: with nvcc as the capstone builds its programs, or with c++ for host sources."""
    if any(source.suffix in CUDA_SOURCES for source in sources):
        flags = [f"-std={standard}", "-O3", f"-arch={arch_name(architecture)}", "-lineinfo", "-Xcompiler", "-fPIC"]
        command = [find_nvcc(), *flags]
    else:
        command = ["c++", f"-std={standard}", "-O2", "-fPIC"]
    command += ["-shared", "-o", str(library), *map(str, sources)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines()[:ERROR_LINES]
        raise NotGradable("it does not compile:\n" + "\n".join(lines))


def arch_name(capability: int) -> str:
    """What nvcc compiles for: from 9.0 on with the instructions that this one architecture has (wgmma)."""
    return f"sm_{capability}" + ("a" if capability >= 90 else "")


def find_nvcc() -> str:
    """The compiler from CUDA_HOME, the PATH or its usual place."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    for candidate in [shutil.which("nvcc"), *(f"{home}/bin/nvcc" for home in homes if home)]:
        if candidate and os.access(candidate, os.X_OK):
            return candidate
    raise NotGradable("nvcc was not found; put it on the PATH, or give a shared library instead of a source file")


def _names(library: Path, *options: str) -> list[str]:
    done = subprocess.run(["nm", *options, str(library)], capture_output=True, text=True)
    if done.returncode:
        raise NotGradable(f"{library.name} is no shared library: {done.stderr.strip()}")
    return [line.split()[-1].split("@")[0] for line in done.stdout.splitlines() if line.strip()]


def find_symbol(library: Path) -> str:
    """The name of solve, with C or C++ linkage. Another signature is told apart from none."""
    names = _names(library, "-D", "--defined-only")
    for name in (C_NAME, CPP_NAME):
        if name in names:
            return name
    others = [name for name in names if name.startswith("_Z5solve")]
    if others:
        demangled = subprocess.run(["c++filt", *others], capture_output=True, text=True).stdout.split("\n")
        raise NotGradable(f"its function is {demangled[0]}; the gate calls {SIGNATURE}")
    raise NotGradable(f"it exports no solve; the gate calls {SIGNATURE}")


def cublas_use(library: Path) -> str:
    """Empty, or how the library comes by cuBLAS."""
    undefined = _names(library, "-D", "--undefined-only")
    called = [name for name in undefined if name.startswith("cublas")]
    if called:
        return f"calls {', '.join(called[:3])}"
    headers = subprocess.run(["readelf", "-d", str(library)], capture_output=True, text=True).stdout
    if "[libcublas" in headers:
        return "is linked with libcublas"
    if any(name.startswith("cublas") for name in _names(library)):
        return "contains cuBLAS, linked statically"
    if {"dlopen", "dlsym"} & set(undefined) and b"libcublas" in library.read_bytes():
        return "names libcublas and calls dlopen"
    return ""
