"""Rules that CONTRIBUTING.md states about the source: layers, the one table, sizes."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support import ROOT, RUNGS

CSRC = ROOT / "csrc"
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*[<"]([^>"]+)[>"]', re.MULTILINE)
CODE = (".h", ".cpp", ".cu", ".cuh")
TORCH = re.compile(r"^(torch|ATen|c10|caffe2)/")
CUBLAS = re.compile(r"^cublas")
CUDA = re.compile(r"^(cuda|cublas|mma\.h|cooperative_groups|nv/|cub/|thrust/|vector_types)")
STANDARD = re.compile(r"^(?!cu|mma|nv)[a-z0-9_]+(\.h)?$")  # <cstdint>, <math.h>


def sources(folder: Path = CSRC, suffixes: tuple[str, ...] = CODE) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix in suffixes)


def includes(path: Path) -> list[str]:
    return INCLUDE.findall(path.read_text())


def resolved(path: Path, include: str) -> str | None:
    """The included file as a path below csrc/, or None when it is not one of ours."""
    for base in (path.parent, CSRC, ROOT):
        target = (base / include).resolve()
        if target.is_file() and target.is_relative_to(CSRC):
            return str(target.relative_to(CSRC))
    return None


def relative(path: Path) -> str:
    return str(path.relative_to(CSRC))


def offences(paths: list[Path], allowed: "re.Pattern[str] | None", forbidden: "re.Pattern[str]") -> list[str]:
    found = []
    for path in paths:
        if allowed and allowed.match(relative(path)):
            continue
        found += [f"{relative(path)} includes {name}" for name in includes(path) if forbidden.match(name)]
    return found


def test_the_rules_below_look_at_something() -> None:
    folders = {relative(path).split("/")[0] for path in sources() if "/" in relative(path)}
    assert {"torch", "baseline", "reference", "kernels", "device"} <= folders
    assert any(TORCH.match(name) for path in sources(CSRC / "torch") for name in includes(path))
    assert any(CUBLAS.match(name) for path in sources(CSRC / "baseline") for name in includes(path))


def test_only_the_door_includes_torch() -> None:
    assert offences(sources(), re.compile(r"torch/"), TORCH) == []


def test_torch_is_met_through_its_stable_headers() -> None:
    """Anything else ties the binary to one torch version."""
    stable = re.compile(r"^(?!torch/csrc/stable/|torch/headeronly/|torch/csrc/inductor/aoti_torch/)(torch|ATen|c10)/")
    assert offences(sources(), None, stable) == []


def test_only_the_baseline_includes_cublas() -> None:
    assert offences(sources(), re.compile(r"(baseline|programs)/"), CUBLAS) == []
    assert {relative(p) for p in sources() if any(CUBLAS.match(name) for name in includes(p))}


def test_gemm_h_is_plain_cpp() -> None:
    assert [name for name in includes(CSRC / "gemm.h") if not STANDARD.match(name)] == []


def test_the_public_header_of_solve_needs_cuda_alone() -> None:
    for name in includes(CSRC / "solve.h"):
        assert STANDARD.match(name) or CUDA.match(name), name
        assert not CUBLAS.match(name) and not TORCH.match(name)


@pytest.mark.parametrize("path", sources(CSRC / "kernels"), ids=relative)
def test_kernels_include_the_vocabulary_only(path: Path) -> None:
    """No kernel includes another, and none reaches past device/."""
    for name in includes(path):
        ours = resolved(path, name)
        if ours is None:
            assert STANDARD.match(name), f"{relative(path)} includes {name}"
        else:
            assert ours == "gemm.h" or ours.startswith("device/"), f"{relative(path)} includes {ours}"


@pytest.mark.parametrize("path", sources(CSRC / "device"), ids=relative)
def test_device_includes_cuda_and_the_emulator_only(path: Path) -> None:
    for name in includes(path):
        ours = resolved(path, name)
        if ours is not None:
            assert ours == "gemm.h" or ours.startswith(("device/", "emulator/"))
        elif not name.startswith("../emulator/"):  # of a vocabulary that the emulator does not know yet
            assert CUDA.match(name) or STANDARD.match(name), f"{relative(path)} includes {name}"
            assert not CUBLAS.match(name)


def test_nothing_goes_back_up() -> None:
    """torch -> dispatch -> kernels -> device: nobody includes a layer above his own."""
    for path in sources():
        below = relative(path)
        for ours in filter(None, (resolved(path, name) for name in includes(path))):
            if not below.startswith(("torch/", "baseline/")):  # the baseline is an op too, in a library of its own
                assert not ours.startswith("torch/"), f"{below} includes {ours}"
            if not below.startswith(("emulator/", "kernels/")):
                assert not ours.startswith("kernels/"), f"{below} includes {ours}"


@pytest.mark.parametrize("path", sources(CSRC / "kernels"), ids=relative)
def test_kernels_hold_no_compiler_conditional(path: Path) -> None:
    """g++ and nvcc compile the same bytes."""
    assert re.findall(r"^[ \t]*#[ \t]*(?:if|ifdef|ifndef|elif|else)\b.*", path.read_text(), re.MULTILINE) == []


def test_instructions_are_written_in_device_only() -> None:
    asm = re.compile(r"\b(asm|__asm__)\b\s*(volatile)?\s*\(")
    found = [relative(path) for path in sources() if asm.search(without_comments(path.read_text()))]
    assert [name for name in found if not name.startswith(("device/", "emulator/"))] == []
    assert any(name.startswith("device/") for name in found)


def without_comments(text: str) -> str:
    return re.sub(r"/\*.*?\*/", "", re.sub(r"//[^\n]*", "", text), flags=re.DOTALL)


@pytest.mark.parametrize("path", sources(CSRC / "kernels", (".cu",)), ids=relative)
def test_kernels_launch_through_the_wrapper_and_neither_allocate_nor_wait(path: Path) -> None:
    code = without_comments(path.read_text())
    assert "<<<" not in code
    assert re.findall(r"\bcuda(?:Malloc|Free|\w*Synchronize|Memcpy)\w*|\b(?:printf|malloc|new)\b", code) == []
    assert "atomicAdd" not in code, "float atomics make the result depend on the order of blocks"


# ---------------------------------------------------------------- the one table


def test_every_row_has_its_file_and_every_file_a_row() -> None:
    assert len(RUNGS) == len(re.findall(r"^RUNG\(", (CSRC / "kernels.def").read_text(), re.MULTILINE)) >= 6
    in_table = {rung.source for rung in RUNGS}
    assert {path.stem for path in (CSRC / "kernels").glob("*.cu")} == in_table
    assert len({rung.name for rung in RUNGS}) == len(RUNGS)


def test_names_of_kernels_stand_in_the_table_only() -> None:
    """A rung is added by one file and one row: nothing else in the build or the dispatch lists them."""
    names = re.compile("|".join(rf"\b{rung.source}\b" for rung in RUNGS))
    for path in [
        ROOT / "CMakeLists.txt",
        ROOT / "setup.py",
        CSRC / "torch" / "schema.cpp",
        CSRC / "torch" / "cuda.cpp",
    ]:
        text = re.sub(r"#[^\n]*", "", path.read_text()) if path.suffix != ".cpp" else without_comments(path.read_text())
        assert names.findall(text) == [], path.name


@pytest.mark.parametrize("path", sources(CSRC / "kernels", (".cu",)), ids=relative)
def test_a_kernels_file_starts_with_its_header(path: Path) -> None:
    """What changed, what it costs, what it needs, what comes next."""
    head = re.match(r"(?://[^\n]*\n)+", path.read_text())
    assert head, "no comment at the head"
    assert head.group().count("\n") >= 3
    assert re.search(r"Needs?:", head.group()) and re.search(r"Next:", head.group()), head.group()


# ---------------------------------------------------------------- layout and sizes


@pytest.mark.parametrize(
    "name",
    ["setup.py", "CMakeLists.txt", "csrc", "tcgemm", "tests", "bench", "README.md"]  # docs/seeds.md, C-3
    + ["CONTRIBUTING.md", "CHANGELOG.md", "LICENSE", "pyproject.toml", "constraints.txt", ".ci/run", "tests/run"]
    + ["bench/run", ".clang-format", ".pre-commit-config.yaml", "tcgemm/py.typed"],
)
def test_top_level(name: str) -> None:
    assert (ROOT / name).exists()


def tracked() -> list[Path]:
    """Files that belong to the project: git's list, or everything that looks like source without git."""
    if shutil.which("git") and (ROOT / ".git").exists():
        command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
        return [ROOT / line for line in listed.stdout.splitlines()]
    folders = ("csrc", "tcgemm", "tests", "bench")
    return [path for folder in folders for path in (ROOT / folder).rglob("*") if path.is_file()]


def test_files_keep_their_size_budget() -> None:
    """A kernel's file 300 lines, any other 250, unless the file's head says why."""
    over = []
    for path in tracked():
        if path.suffix not in (*CODE, ".py") or not path.is_file():
            continue
        lines = path.read_text().splitlines()
        budget = 300 if path.parent == CSRC / "kernels" else 250
        explained = re.search(r"over (the )?(size |line )?budget|longer than", "\n".join(lines[:30]), re.IGNORECASE)
        if len(lines) > budget and not explained:
            over.append(f"{path.relative_to(ROOT)}: {len(lines)} lines, budget {budget}")
    assert over == []
