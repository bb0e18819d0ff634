"""Packages what CMake builds. The list of sources, flags and architectures is in CMakeLists.txt.

    pip install --no-build-isolation .        or  -e .

TCGEMM_BUILD_CUDA=0 builds the CPU part alone; TORCH_CUDA_ARCH_LIST and MAX_JOBS are honoured. build/cmake is kept
and only what changed is compiled again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools < 70.1 leaves it to the package wheel
    from wheel.bdist_wheel import bdist_wheel

ROOT = Path(__file__).resolve().parent
BUILD = ROOT / "build" / "cmake"
LIBRARIES = ("tcgemm", "tcgemm_cuda", "tcgemm_baseline")


class CMakeBuild(build_ext):
    """Configures, builds, and installs the libraries into the package."""

    def run(self) -> None:
        # Explicit also where they are not set, or CMake would go on with what an earlier build was told.
        options = {
            "Python3_EXECUTABLE": sys.executable,
            "TCGEMM_BUILD_CUDA": os.environ.get("TCGEMM_BUILD_CUDA", "1"),
            "TORCH_CUDA_ARCH_LIST": os.environ.get("TORCH_CUDA_ARCH_LIST", ""),
        }
        defined = [f"-D{name}={value}" for name, value in options.items()]
        self._cmake("-S", str(ROOT), "-B", str(BUILD), "-G", "Ninja", *defined)
        jobs = os.environ.get("MAX_JOBS")
        self._cmake("--build", str(BUILD), *(["--parallel", jobs] if jobs else []))
        package = self._package()
        for name in LIBRARIES:  # one that is no longer built must not stay
            (package / "lib" / f"lib{name}.so").unlink(missing_ok=True)
        self._cmake("--install", str(BUILD), "--component", "python", "--prefix", str(package))

    def get_outputs(self) -> list[str]:
        """Files of the wheel that no other command lists."""
        package = self._package()
        built = [path for path in (package / "lib").glob("*") if path.suffix in (".so", ".json")]
        return [str(path) for path in [*built, package / "_build_info.json"]]

    def get_output_mapping(self) -> dict[str, str]:
        return {}

    def _package(self) -> Path:
        in_place = self.inplace or getattr(self, "editable_mode", False)
        return (ROOT if in_place else ROOT / self.build_lib) / "tcgemm"

    def _cmake(self, *arguments: str) -> None:
        # cmake and ninja may come from PyPI, and this Python need not be the active one.
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        try:
            command = [shutil.which("cmake", path=path) or "cmake", *arguments]
            subprocess.run(command, check=True, env={**os.environ, "PATH": path})
        except FileNotFoundError:
            raise SystemExit("tcgemm needs cmake >= 3.25 and ninja: install them (pip install cmake ninja)") from None
        except subprocess.CalledProcessError as error:
            raise SystemExit(f"tcgemm: cmake failed (exit status {error.returncode}), see above") from None


class AnyPythonWheel(bdist_wheel):
    """The libraries hold no Python: one wheel serves every version of it on this platform."""

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


setup(
    ext_modules=[Extension("tcgemm._built_by_cmake", sources=[])],
    cmdclass={"build_ext": CMakeBuild, "bdist_wheel": AnyPythonWheel},
)
