import os
import subprocess
from types import SimpleNamespace

import pytest
import torch

from bench import device
from bench.timing import Effort


def _git(folder, *arguments, stdin=None):
    who = {f"GIT_{role}_{what}": "x" for role in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return subprocess.run(
        ["git", *arguments], cwd=folder, env=os.environ | who, input=stdin, check=True, capture_output=True, text=True
    ).stdout


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name in ("kernels/a.cu", "emulator/e.cpp", "gemm.h"):
        path = tmp_path / "csrc" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    _git(tmp_path, "init", "-q")
    _git(tmp_path, "add", ".")
    _git(tmp_path, "commit", "-q", "-m", "x")
    monkeypatch.setattr(device, "ROOT", tmp_path)
    monkeypatch.delenv("TCGEMM_CSRC_TREE", raising=False)
    return tmp_path


def _by_shell(folder) -> str:
    """The command of the design document."""
    command = "git ls-tree -r HEAD csrc | grep -v csrc/emulator/ | git hash-object --stdin"
    return subprocess.run(command, shell=True, cwd=folder, check=True, capture_output=True, text=True).stdout.strip()


def test_the_tree_is_named_as_the_design_says(repository):
    assert device.csrc_tree() == _by_shell(repository)


def test_the_emulator_does_not_count(repository):
    before = device.csrc_tree()
    (repository / "csrc" / "emulator" / "e.cpp").write_text("other")
    assert device.csrc_tree() == before


def test_changed_and_new_sources_have_the_name_of_their_commit_to_be(repository):
    before = device.csrc_tree()
    (repository / "csrc" / "gemm.h").write_text("other")
    changed = device.csrc_tree()
    (repository / "csrc" / "kernels" / "b.cu").write_text("new")
    (repository / "csrc" / "kernels" / "a.cu").unlink()
    new = device.csrc_tree()
    assert len({before, changed, new}) == 3
    _git(repository, "add", "-A")
    _git(repository, "commit", "-q", "-m", "y")
    assert new == device.csrc_tree() == _by_shell(repository)


def test_without_a_repository_the_environment_names_the_tree(tmp_path, monkeypatch):
    monkeypatch.setattr(device, "ROOT", tmp_path)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.setenv("TCGEMM_CSRC_TREE", "f" * 40)
    assert device.csrc_tree() == "f" * 40
    monkeypatch.delenv("TCGEMM_CSRC_TREE")
    assert device.csrc_tree() == "unknown"


def _monitor(samples, processes=()):
    monitor = device.Monitor.__new__(device.Monitor)
    monitor.source, monitor.samples, monitor._handle = "nvml", samples, None
    monitor._nvml = SimpleNamespace(
        nvmlDeviceGetComputeRunningProcesses=lambda _: [SimpleNamespace(pid=pid) for pid in processes]
    )
    return monitor


def _sample(**changes):
    return {"sm_mhz": 1500, "celsius": 60, "watts": 500.0, "reasons": 0} | changes


def test_a_calm_device_gives_no_complaint():
    monitor = _monitor([_sample(), _sample(sm_mhz=1980, reasons=device.POWER_CAP)], [os.getpid()])
    assert monitor.complaints() == []
    assert monitor.summary() == {
        "source": "nvml",
        "readings": 2,
        "sm_mhz": [1500, 1980],
        "celsius": [60, 60],
        "watts": [500.0, 500.0],
        "power_capped": 0.5,
    }


@pytest.mark.parametrize("bit", device.UNFIT_REASONS)
def test_throttling_is_a_complaint(bit):
    assert device.UNFIT_REASONS[bit] in _monitor([_sample(), _sample(reasons=bit)]).complaints()[0]


def test_heat_and_company_are_complaints():
    text = "\n".join(_monitor([_sample(celsius=90)], [os.getpid(), os.getpid() + 1]).complaints())
    assert "90 C" in text and "1 other compute processes" in text


def test_a_reading_that_fails_is_a_reading_less():
    monitor = _monitor([])
    monitor.sample()  # the made-up library knows no clocks
    assert monitor.samples == [] and monitor.summary()["sm_mhz"] is None


def test_nvidia_smi_stands_in_for_nvml(monkeypatch):
    monitor = device.Monitor.__new__(device.Monitor)
    monitor.source, monitor.samples, monitor._last, monitor._uuid = "nvidia-smi", [], -1e9, "GPU-x"
    asked = []

    def run(command, **_):
        asked.append(command)
        return SimpleNamespace(stdout="1755, 61, 512.25, 0x0000000000000004\n")

    monkeypatch.setattr(subprocess, "run", run)
    monitor.sample()
    monitor.sample()  # too soon for a second one
    assert monitor.samples == [{"sm_mhz": 1755, "celsius": 61, "watts": 512.25, "reasons": 4}]
    assert len(asked) == 1 and "--id=GPU-x" in asked[0]


class OneMillisecond:
    """A timer for which every repeat takes 1 ms, except that one in each series takes half of it."""

    def cold(self, calls, effort: Effort):
        for call in calls:
            call()
        return [[1000.0] * (effort.repeats - 1) + [500.0] for _ in calls]


def test_ceilings_are_the_best_repeat(monkeypatch):
    monkeypatch.setattr(device, "DEVICE", "cpu")
    monkeypatch.setattr(device, "COPY_BYTES", 10**6)
    monkeypatch.setattr(device, "PRODUCTS", {"float32": (8, 16)})
    found = device.ceilings(OneMillisecond())
    assert found["copy_tb_s"] == pytest.approx(2e6 / 500e-6 / 1e12)  # a byte read and a byte written
    assert found["float32_tflops"] == pytest.approx(2 * 16**3 / 500e-6 / 1e12)
    assert found["empty_us"] == 1000.0  # a median


def test_cublas_says_its_version_where_it_is_loaded():
    version = device.cublas_version()
    assert version == "unknown" or version.split(".")[0] == torch.version.cuda.split(".")[0]
