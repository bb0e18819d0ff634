"""Compiles kernels with g++ and links them with the emulator: objects are kept by the hash of what they are made of."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

EMULATED_FAMILIES = ("SIMT", "WMMA", "MMA")  # TMA and wgmma stay outside
_FLAGS = ("-std=c++20", "-O2", "-march=x86-64-v3", "-fno-pie", "-Wall", "-Wextra", "-Wno-unknown-pragmas")

_BOOST_HINT = "Debian, Ubuntu: apt-get install libboost-context-dev"


class BuildError(RuntimeError):
    """The sources do not compile, or something that compiling needs is missing. The text says which."""


@dataclass(frozen=True)
class Rung:
    """A row of csrc/kernels.def: the algo's name, its source file and its family of architectures."""

    algo: str
    source: Path
    family: str

    @property
    def emulated(self) -> bool:
        return self.family in EMULATED_FAMILIES


def source_root() -> Path:
    """The folder that holds csrc/: TCGEMM_SOURCE, or where this package lies in a source tree.

    Raises BuildError when neither holds the sources: an installed package carries none.
    """
    root = Path(os.environ.get("TCGEMM_SOURCE") or Path(__file__).resolve().parents[2])
    if not (root / "csrc/emulator/hooks.h").is_file():
        raise BuildError(
            f"the emulator compiles the kernels' sources, and {root} holds no csrc/emulator; "
            "set TCGEMM_SOURCE to a source tree of tcgemm"
        )
    return root


def rungs() -> dict[str, Rung]:
    """Every row of the table of kernels, by name, also those that the emulator cannot run."""
    csrc = source_root() / "csrc"
    rows = re.findall(r"^RUNG\((\w+), *(\w+), *(\w+),", (csrc / "kernels.def").read_text(), re.MULTILINE)
    return {algo: Rung(algo, csrc / "kernels" / f"{source}.cu", family) for algo, source, family in rows}


def emulated_algos() -> list[str]:
    """The rungs that the emulator runs, in the order of the table."""
    return [rung.algo for rung in rungs().values() if rung.emulated]


@cache
def missing() -> str:
    """Empty, or what the emulator needs and this machine lacks: source tree, g++, Boost.Context, CUDA headers, AVX2."""
    try:
        include = f"-I{_cuda_include()}"
        source_root()
        _compiler_version()
    except BuildError as error:
        return str(error)
    probe = "#include <boost/context/fiber.hpp>\n#include <cuda_fp16.h>\n"
    command = [_compiler(), "-std=c++20", include, "-x", "c++", "-fsyntax-only", "-"]
    if subprocess.run(command, input=probe, capture_output=True, text=True).returncode != 0:
        return f"Boost.Context is missing ({_BOOST_HINT})"
    cpu = Path("/proc/cpuinfo")
    flags = cpu.read_text().split() if cpu.is_file() else []
    lacking = [flag for flag in ("avx2", "f16c", "fma") if flag not in flags]
    return f"the emulator needs an x86-64 CPU with {', '.join(lacking)}" if lacking else ""


def program(sources: Sequence[Path] | None = None, *, trace: bool = False, arch: int = 90) -> Path:
    """An executable with the emulator and the kernel files `sources` (default: every emulated rung of the table).

    A source in a folder of its own csrc/ (a copy of the tree) is compiled against that tree's device/. `trace` makes
    register arrays record too. `arch` below 80 takes the paths of hardware without cp.async. Raises BuildError with
    the compiler's words.
    """
    csrc = source_root() / "csrc"
    if sources is None:
        sources = sorted({rung.source for rung in rungs().values() if rung.emulated})
    flags = [*_FLAGS, f"-I{_cuda_include()}"]
    kernel_flags = [*flags, f"-DTCGEMM_EMULATED_ARCH={arch}", *(["-DTCGEMM_EMULATOR_TRACE"] if trace else [])]
    runtime = [*sorted((csrc / "emulator").glob("*.cpp")), csrc / "dispatch.cpp"]
    own = _headers_hash(csrc, ("*.h", "*.def", "emulator/*.h"))  # the emulator itself includes no device/
    jobs = [(path, flags, own) for path in runtime]
    for source in sources:
        tree = source.resolve().parents[1]
        tree = tree if (tree / "device/memory.cuh").is_file() else csrc
        headers = _headers_hash(tree, ("*.h", "*.def", "device/*.cuh", "emulator/*.h"))
        jobs.append((source.resolve(), [*kernel_flags, f"-I{tree}"], headers))
    with ThreadPoolExecutor(max_workers=min(len(jobs), os.cpu_count() or 1)) as pool:
        objects = list(pool.map(lambda job: _compile(*job), jobs))
    return _link(objects)


def _compile(source: Path, flags: Sequence[str], headers: str) -> Path:
    made_of = [source.read_bytes(), " ".join(flags).encode(), headers.encode(), _compiler_version().encode()]
    # The path is in the object, as the file name of every finding.
    out = _cache_folder() / f"{source.stem}-{_hash([*made_of, str(source).encode()])}.o"
    if not out.exists():
        _run([_compiler(), *flags, "-x", "c++", "-c", str(source)], out)
    return out


def _link(objects: Sequence[Path]) -> Path:
    out = _cache_folder() / f"emulate-{_hash([str(path).encode() for path in objects])}"
    if not out.exists():
        _run([_compiler(), "-no-pie", *map(str, objects), "-lboost_context", "-pthread"], out)
    return out


def _run(command: Sequence[str], out: Path) -> None:
    # To a file of its own first: several processes may build the same thing.
    with tempfile.TemporaryDirectory(dir=out.parent) as folder:
        made = Path(folder) / out.name
        done = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True)
        if done.returncode != 0:
            hint = ""
            if "boost" in done.stderr:
                hint = f"\nBoost.Context is missing? ({_BOOST_HINT})"
            raise BuildError(f"{' '.join(command)}\n{done.stderr}{hint}")
        made.replace(out)


def _headers_hash(csrc: Path, patterns: Sequence[str]) -> str:
    headers = sorted(path for pattern in patterns for path in csrc.glob(pattern))
    return _hash([part for path in headers for part in (str(path.relative_to(csrc)).encode(), path.read_bytes())])


def _hash(parts: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()[:20]


def _cache_folder() -> Path:
    folder = Path(os.environ.get("TCGEMM_EMULATOR_CACHE") or source_root() / "build" / "emulator")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _compiler() -> str:
    return os.environ.get("CXX") or "g++"


@cache
def _compiler_version() -> str:
    if shutil.which(_compiler()) is None:
        raise BuildError(f"{_compiler()} is missing: the emulator compiles kernels with g++ 12 or newer")
    return subprocess.run([_compiler(), "--version"], capture_output=True, text=True, check=True).stdout


def _cuda_include() -> Path:
    """A folder with cuda_fp16.h: of a toolkit, or of the packages that torch for CUDA brings."""
    homes = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    folders = [Path(home) / "include" for home in homes if home]
    folders.append(Path(sysconfig.get_path("purelib")) / "nvidia/cu13/include")
    for folder in folders:
        if (folder / "cuda_fp16.h").is_file():
            return folder
    raise BuildError("cuda_fp16.h is missing: install the CUDA toolkit, or set CUDA_HOME")
