"""What was built: what the libraries need, which symbols they take from torch, spills, instructions, the wheel."""

import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tcgemm
from support import ROOT, RUNGS, output_of, run_python
from tcgemm._library import build_info

LIB = Path(tcgemm.__file__).parent / "lib"
CUDA_LIBRARIES = ["libtcgemm_cuda.so", "libtcgemm_baseline.so"]
SASS = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
LIBRARIES = ["libtcgemm.so", *CUDA_LIBRARIES]


def library(name: str) -> Path:
    if name in CUDA_LIBRARIES and not build_info()["nvcc"]:
        pytest.skip("built without nvcc")
    return LIB / name


def needed(path: Path) -> list[str]:
    return re.findall(r"\(NEEDED\).*\[(.+)\]", output_of(["readelf", "--dynamic", "--wide", path]))


def symbols(path: Path, defined: bool) -> set[str]:
    flag = "--defined-only" if defined else "--undefined-only"
    return {
        line.split()[-1].split("@")[0]
        for line in output_of(["nm", "--dynamic", flag, path]).splitlines()
        if line.split()
    }


@pytest.mark.parametrize("name", LIBRARIES)
def test_libraries_need_neither_python_nor_the_driver(name: str) -> None:
    for other in needed(library(name)):
        assert not re.match(r"libpython|libtorch_python|libcuda\.so|libcudart", other), other


@pytest.mark.parametrize("name", ["libtcgemm.so", "libtcgemm_cuda.so"])
def test_the_ops_do_not_need_cublas(name: str) -> None:
    assert [other for other in needed(library(name)) if "cublas" in other] == []
    assert [symbol for symbol in symbols(library(name), defined=False) if "cublas" in symbol.lower()] == []


def test_the_baseline_takes_cublas_from_torch() -> None:
    assert "libcublas.so.13" in needed(library("libtcgemm_baseline.so"))


def test_the_cpu_library_needs_no_cuda() -> None:
    assert [other for other in needed(library("libtcgemm.so")) if re.search("cuda|cublas|nv", other)] == []
    assert [symbol for symbol in symbols(library("libtcgemm.so"), defined=False) if symbol.startswith("cuda")] == []


@pytest.mark.parametrize("name", LIBRARIES)
def test_only_stable_symbols_come_from_torch(name: str) -> None:
    """A mangled at:: or c10:: symbol would tie the library to one torch version."""
    undefined = symbols(library(name), defined=False)
    assert [symbol for symbol in undefined if re.match(r"_Z[A-Z]*N?K?\d*(2at|3c10|5torch|6caffe2)", symbol)] == []
    assert any(symbol.startswith(("aoti_torch_", "torch_")) for symbol in undefined)


def test_the_cuda_library_exports_its_c_functions() -> None:
    exported = symbols(library("libtcgemm_cuda.so"), defined=True)
    wanted = {"solve", "tcgemm_kernels", "tcgemm_explain", "tcgemm_footprint", "tcgemm_device_info"}
    assert wanted <= exported, wanted - exported


def test_no_kernel_spills() -> None:
    """The resource report that the build keeps: registers fit, nothing goes to local memory."""
    library("libtcgemm_cuda.so")
    rows = json.loads((LIB / "resources.json").read_text())
    reported = {Path(row["source"]).stem for row in rows if "/kernels/" in row["source"]}
    assert reported == {rung.source for rung in RUNGS}, "the report does not cover every kernel's file"
    built = set(
        json.loads((LIB.parent / "_build_info.json").read_text())["archs"]["WMMA"].replace("+PTX", "").split(";")
    )
    assert len({row["arch"] for row in rows}) >= len(built)
    for row in rows:
        assert 0 < row["registers"] <= 255, row
        assert row["spill_store_bytes"] == row["spill_load_bytes"] == 0, row
        assert row["stack_bytes"] == 0, row


def cuda_tool(name: str) -> Path | None:
    """An NVIDIA tool on the PATH, in a toolkit, or from PyPI."""
    folders = [Path(sys.prefix) / f"lib/python3.{sys.version_info.minor}/site-packages/nvidia/cu13/bin"]
    specification = importlib.util.find_spec("nvidia")
    for place in (specification.submodule_search_locations or []) if specification else []:
        folders.append(Path(place) / "cu13" / "bin")
    folders += [Path(os.environ.get("CUDA_HOME", "/usr/local/cuda")) / "bin", Path("/usr/local/cuda/bin")]
    found = shutil.which(name) or next((folder / name for folder in folders if (folder / name).is_file()), None)
    return Path(found) if found else None


@pytest.fixture(scope="module")
def instructions() -> set[str]:
    """The mnemonics in the CUDA library's SASS, with their modifiers."""
    tool = cuda_tool("cuobjdump")
    if tool is None or cuda_tool("nvdisasm") is None:
        pytest.skip("no cuobjdump: install nvidia-cuda-cuobjdump and nvidia-cuda-nvdisasm")
    path = os.pathsep.join([str(tool.parent), str(cuda_tool("nvdisasm").parent), os.environ["PATH"]])
    with subprocess.Popen(
        [str(tool), "-sass", str(library("libtcgemm_cuda.so"))],
        stdout=subprocess.PIPE,
        text=True,
        env=dict(os.environ, PATH=path),
    ) as process:
        found = {match[1] for line in process.stdout if (match := SASS.match(line))}
    assert process.returncode == 0
    assert {"EXIT", "FFMA"} <= found
    return found


def test_tensor_cores_accumulate_in_fp32(instructions: set[str]) -> None:
    """S1-01: no half-precision accumulator, in any kernel for any architecture."""
    used = sorted(name for name in instructions if re.match("[A-Z]*MMA", name))
    assert used, "no tensor-core instruction found"
    assert [name for name in used if ".F32" not in name] == []


def test_no_float_atomics(instructions: set[str]) -> None:
    """A sum in the order in which blocks happen to finish is not the same from run to run."""
    assert [name for name in instructions if re.match(r"(RED|ATOM).*\.ADD.*\.F(16|32|64)", name)] == []


def test_the_archive_for_c_programs_has_no_torch_and_no_cublas() -> None:
    archives = [*ROOT.glob("build*/**/libtcgemm_solve.a"), *LIB.glob("libtcgemm_solve.a")]
    if not archives:
        pytest.skip("libtcgemm_solve.a is not kept by this build")
    listing = output_of(["nm", archives[0]])
    undefined = set(re.findall(r"\bU (\S+)", listing))
    assert re.search(r"\bT solve$", listing, re.MULTILINE)
    assert [name for name in undefined if re.search(r"cublas|torch|2at|3c10|^cu[A-Z]", name)] == []


@pytest.fixture(scope="module")
def cpu_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of the CPU part alone, built from a copy of the source."""
    folder = tmp_path_factory.mktemp("cpu_only")
    source = folder / "source"
    skip = shutil.ignore_patterns(".*", "build", "build-*", "lib", "*.egg-info", "__pycache__", "results", "out")
    shutil.copytree(ROOT, source, ignore=skip)
    command = [sys.executable, "-m", "pip", "wheel", "--no-build-isolation", "--no-deps", "-w", str(folder), "."]
    done = subprocess.run(
        command,
        cwd=source,
        env=dict(os.environ, TCGEMM_BUILD_CUDA="0"),
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.glob("*.whl")
    return wheel


def test_one_wheel_serves_every_python(cpu_wheel: Path) -> None:
    assert re.fullmatch(r"tcgemm-[^-]+-py3-none-\w+\.whl", cpu_wheel.name), cpu_wheel.name
    assert "_any" not in cpu_wheel.name  # it holds a library


def test_the_cpu_part_works_alone(cpu_wheel: Path, tmp_path: Path) -> None:
    shutil.unpack_archive(cpu_wheel, tmp_path, "zip")
    assert {path.name for path in tmp_path.glob("tcgemm/lib/*.so")} == {"libtcgemm.so"}
    done = run_python(
        "import torch, tcgemm\n"
        "print(tcgemm.__file__)\n"
        "assert not tcgemm.is_available()\n"
        "a = torch.ones(2, 3, dtype=torch.float16)\n"
        "assert tcgemm.mm(a, a.t()).eq(3).all()\n",
        path=tmp_path,
    )
    assert done.stdout.strip().startswith(str(tmp_path))
