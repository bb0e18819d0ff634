"""What `import tcgemm` promises: no CUDA context, and a working CPU part whatever is wrong with CUDA."""

import ctypes
import shutil
from pathlib import Path

import pytest
import torch

import tcgemm
from support import run_python
from tcgemm._library import build_info

PACKAGE = Path(tcgemm.__file__).parent

CPU_WORKS = """
import torch, tcgemm
a = torch.ones(2, 3, dtype=torch.float16)
assert tcgemm.mm(a, a.t()).eq(3).all()
assert torch.ops.tcgemm.sgemm(a.float(), a.t().float()).eq(3).all()
"""
FAKE_WORKS = """
from torch._subclasses.fake_tensor import FakeTensorMode
with FakeTensorMode():
    b = torch.empty(2, 3, dtype=torch.float16, device="cuda")
    assert torch.ops.tcgemm.mm(b, b.t()).shape == (2, 2)
"""


@pytest.fixture
def package_copy(tmp_path: Path) -> Path:
    """A copy of the installed package whose libraries a test may break. Import it with path=tmp_path."""
    shutil.copytree(PACKAGE, tmp_path / "tcgemm", ignore=shutil.ignore_patterns("__pycache__"))
    assert (tmp_path / "tcgemm" / "lib" / "libtcgemm.so").is_file()
    return tmp_path


def break_library(package: Path, how: str) -> str:
    """Makes the CUDA library unloadable and returns a word that an explanation must contain."""
    cuda = package / "tcgemm" / "lib" / "libtcgemm_cuda.so"
    if how == "missing":
        cuda.unlink(missing_ok=True)
        return "libtcgemm_cuda.so"
    if not build_info()["nvcc"]:
        pytest.skip("built without nvcc: there is nothing to break")
    content = cuda.read_bytes()
    if how == "not a library":
        cuda.write_bytes(b"not an ELF file")
        return "libtcgemm_cuda.so"
    # As with a torch that was built without CUDA: what the library takes from libtorch_cuda.so is nowhere.
    wanted = b"libtorch_cuda.so\0" if b"libtorch_cuda.so\0" in content else b"aoti_torch_get_current_cuda_stream\0"
    assert wanted in content
    absent = wanted.replace(b"cuda", b"cudX")
    cuda.write_bytes(content.replace(wanted, absent))
    return absent.rstrip(b"\0").decode()


BROKEN = ["missing", "not a library", "torch without CUDA"]


def test_import_creates_no_cuda_context() -> None:
    run_python(CPU_WORKS + "assert not torch.cuda.is_initialized()")


@pytest.mark.gpu
def test_import_leaves_the_primary_context_alone() -> None:
    """Asks the driver: torch.cuda.is_initialized() knows only what torch did."""
    run_python(
        CPU_WORKS + "import ctypes\n"
        "driver = ctypes.CDLL('libcuda.so.1')\n"
        "assert driver.cuInit(0) == 0\n"
        "flags, active = ctypes.c_uint(), ctypes.c_int(-1)\n"
        "assert driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)) == 0\n"
        "assert active.value == 0, 'import or a CPU call created a CUDA context'\n"
        "b = torch.ones(2, 3, dtype=torch.float16, device='cuda')\n"
        "assert tcgemm.mm(b, b.t()).eq(3).all()\n"
        "driver.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active))\n"
        "assert active.value == 1\n"
    )


@pytest.mark.gpu
def test_a_forked_child_can_use_cuda_after_the_parent_imported() -> None:
    run_python(
        "import os, torch, tcgemm\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    a = torch.ones(2, 3, dtype=torch.float16, device='cuda')\n"
        "    os._exit(0 if tcgemm.mm(a, a.t()).eq(3).all() else 1)\n"
        "assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0\n"
    )


@pytest.mark.parametrize("how", BROKEN)
def test_import_survives_a_cuda_library_that_cannot_load(package_copy: Path, how: str) -> None:
    break_library(package_copy, how)
    run_python(
        CPU_WORKS
        + FAKE_WORKS
        + f"assert tcgemm.__file__.startswith({str(package_copy)!r})\nassert not tcgemm.is_available()\n",
        path=package_copy,
    )


@pytest.mark.parametrize("how", BROKEN)
def test_the_first_use_of_cuda_says_what_is_missing(package_copy: Path, how: str) -> None:
    """Without a GPU no CUDA tensor can be made, but the choice of a kernel needs the same library."""
    word = break_library(package_copy, how)
    done = run_python(
        "import torch, tcgemm\n"
        "a = torch.ones(2, 3, dtype=torch.float16)\n"
        "try:\n"
        "    tcgemm.explain(a, a.t(), device=tcgemm.DeviceInfo(90, 90, 132))\n"
        "except RuntimeError as error:\n"
        "    print(error)\n"
        "else:\n"
        "    raise SystemExit('no error')\n",
        path=package_copy,
    )
    assert word in done.stdout and "tcgemm" in done.stdout, done.stdout


@pytest.mark.gpu
@pytest.mark.parametrize("how", BROKEN)
def test_the_first_call_with_cuda_tensors_says_what_is_missing(package_copy: Path, how: str) -> None:
    word = break_library(package_copy, how)
    for call in (
        "tcgemm.mm(a, a.t())",
        "torch.ops.tcgemm.mm(a, a.t())",
        "torch.ops.tcgemm.sgemm(a.float(), a.t().float())",
    ):
        done = run_python(
            "import torch, tcgemm\n"
            "a = torch.ones(2, 3, dtype=torch.float16, device='cuda')\n"
            f"try:\n    {call}\n"
            "except RuntimeError as error:\n    print(error)\n"
            "else:\n    raise SystemExit('no error')\n",
            path=package_copy,
        )
        assert word in done.stdout and "tcgemm::" in done.stdout, done.stdout


def test_import_without_a_driver() -> None:
    """The machine that builds and the one that runs CI have none."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        run_python(CPU_WORKS + FAKE_WORKS)
    else:
        pytest.skip("this machine has a driver; the library needs none (test_build_products.py)")


def test_without_visible_devices() -> None:
    run_python(CPU_WORKS + FAKE_WORKS + "assert not tcgemm.is_available()\n", CUDA_VISIBLE_DEVICES="")


@pytest.mark.gpu
def test_is_available() -> None:
    assert tcgemm.is_available()


def test_info_prints_without_a_gpu(package_copy: Path) -> None:
    done = run_python("from tcgemm.__main__ import main; main(['info'])", path=package_copy)
    assert torch.__version__ in done.stdout and "libtcgemm" in done.stdout


def test_python_opens_libraries_in_one_file() -> None:
    """The gate opens other people's libraries, in a process of its own: that is not ours to count."""
    opening = ("load_library", "CDLL")
    paths = [path for path in PACKAGE.rglob("*.py") if "gate" not in path.relative_to(PACKAGE).parts]
    assert {path.name for path in paths if any(word in path.read_text() for word in opening)} == {"_library.py"}
