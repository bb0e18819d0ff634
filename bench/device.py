"""What is known about the device: what a result file's `meta` says, its own ceilings, and its state over time."""

from __future__ import annotations

import ctypes
import datetime
import os
import platform
import subprocess
import time
from pathlib import Path

import torch

from bench.stats import median
from bench.timing import DEVICE, Effort, Timer

ROOT = Path(__file__).resolve().parents[1]
# Bits of NVML's clocks event reasons. A power cap is how a large product normally runs; the others are not.
POWER_CAP = 0x4
UNFIT_REASONS = {
    0x8: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
HOT_CELSIUS = 85
COPY_BYTES = 2**30
PRODUCTS = {"float16": (4096, 8192), "bfloat16": (4096, 8192), "float32": (4096,), "float64": (1024, 2048)}
SMI_PERIOD = 5.0  # seconds between readings when only nvidia-smi, which takes long to start, can be asked


def csrc_tree() -> str:
    """Names the sources that are measured: a hash over csrc without the emulator (CONTRIBUTING.md, "Result files").

    Of the files that are there: before a commit it is the name that they will have in it. Without git from the
    environment variable TCGEMM_CSRC_TREE.
    """
    try:
        listed = _git("ls-files", "-co", "--exclude-standard", "-z", "csrc", ":!csrc/emulator").split("\0")
        paths = sorted({path for path in listed if path and (ROOT / path).is_file()}, key=str.encode)
        hashes = _git("hash-object", "--stdin-paths", stdin="".join(f"{path}\n" for path in paths)).split()
        modes = ("100755" if os.access(ROOT / path, os.X_OK) else "100644" for path in paths)
        tree = "".join(f"{mode} blob {name}\t{path}\n" for mode, name, path in zip(modes, hashes, paths))
        return _git("hash-object", "--stdin", stdin=tree).strip()
    except (OSError, subprocess.CalledProcessError):
        return os.environ.get("TCGEMM_CSRC_TREE", "unknown")


def _git(*arguments: str, stdin: str | None = None) -> str:
    return subprocess.run(["git", *arguments], cwd=ROOT, input=stdin, capture_output=True, text=True, check=True).stdout


def cublas_version() -> str:
    """major.minor.patch of the cuBLAS that this process has loaded, or "unknown"."""
    try:
        library = ctypes.CDLL(f"libcublas.so.{(torch.version.cuda or '').split('.')[0]}")
        value, parts = ctypes.c_int(), []
        for which in range(3):
            if library.cublasGetProperty(which, ctypes.byref(value)):
                return "unknown"
            parts.append(str(value.value))
        return ".".join(parts)
    except (OSError, AttributeError):
        return "unknown"


class Monitor:
    """Clocks, temperature, power and throttle reasons, read while the device works.

    NVML through nvidia-ml-py when it is there, else nvidia-smi every few seconds, else nothing, and says which.
    """

    def __init__(self) -> None:
        self.samples: list[dict] = []
        self.source = "none"
        self._last = 0.0
        uuid = f"GPU-{torch.cuda.get_device_properties(torch.cuda.current_device()).uuid}"
        try:
            import pynvml

            pynvml.nvmlInit()
            self._nvml, self._handle = pynvml, pynvml.nvmlDeviceGetHandleByUUID(uuid)
            self._reasons = getattr(pynvml, "nvmlDeviceGetCurrentClocksEventReasons", None) or (
                pynvml.nvmlDeviceGetCurrentClocksThrottleReasons  # its name before driver 535
            )
            self.source = "nvml"
        except Exception:
            self._uuid = uuid
            self.source = "nvidia-smi" if self._smi("driver_version") else "none"

    def _smi(self, *fields: str) -> list[str]:
        command = [
            "nvidia-smi",
            f"--id={self._uuid}",
            f"--query-gpu={','.join(fields)}",
            "--format=csv,noheader,nounits",
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=True)
        except (OSError, subprocess.SubprocessError):
            return []
        return [cell.strip() for cell in done.stdout.strip().split(",")]

    def driver(self) -> str:
        if self.source == "nvml":
            version = self._nvml.nvmlSystemGetDriverVersion()
            return version.decode() if isinstance(version, bytes) else version
        return (self._smi("driver_version") or ["unknown"])[0] if self.source == "nvidia-smi" else "unknown"

    def sample(self) -> None:
        """Takes a reading; never raises, never waits for the device."""
        now = time.monotonic()
        try:
            if self.source == "nvml":
                n, h = self._nvml, self._handle
                reading = (
                    n.nvmlDeviceGetClockInfo(h, n.NVML_CLOCK_SM),
                    n.nvmlDeviceGetTemperature(h, n.NVML_TEMPERATURE_GPU),
                    n.nvmlDeviceGetPowerUsage(h) / 1000,
                    self._reasons(h),
                )
            elif self.source == "nvidia-smi" and now - self._last > SMI_PERIOD:
                cells = self._smi("clocks.sm", "temperature.gpu", "power.draw", "clocks_throttle_reasons.active")
                reading = int(cells[0]), int(cells[1]), float(cells[2]), int(cells[3], 16)
            else:
                return
        except Exception:
            return
        self._last = now
        self.samples.append(dict(zip(("sm_mhz", "celsius", "watts", "reasons"), reading)))

    def other_processes(self) -> int:
        """Compute processes on the device besides this one; 0 where it cannot be asked."""
        try:
            running = self._nvml.nvmlDeviceGetComputeRunningProcesses(self._handle)
            pids = {process.pid for process in running}
            # In a container the device knows this process by another number: then one of the others is it.
            return max(0, len(pids) - 1)
        except Exception:
            return 0

    def complaints(self) -> list[str]:
        """What makes the run unfit for a claim, in words."""
        found = []
        seen = {bit for sample in self.samples for bit in UNFIT_REASONS if sample["reasons"] & bit}
        found += [f"the device reported {UNFIT_REASONS[bit]} during the run" for bit in sorted(seen)]
        hottest = max((sample["celsius"] for sample in self.samples), default=0)
        if hottest >= HOT_CELSIUS:
            found.append(f"the device reached {hottest} C (limit for a fit run: {HOT_CELSIUS} C)")
        if others := self.other_processes():
            found.append(f"{others} other compute processes are on the device")
        return found

    def summary(self) -> dict:
        """Ranges over the run, for `meta`."""
        ranges = {"source": self.source, "readings": len(self.samples)}
        for key in ("sm_mhz", "celsius", "watts"):
            taken = [sample[key] for sample in self.samples]
            ranges[key] = [min(taken), max(taken)] if taken else None
        capped = sum(bool(sample["reasons"] & POWER_CAP) for sample in self.samples)
        ranges["power_capped"] = capped / len(self.samples) if self.samples else None
        return ranges


def _copy_tb_s(timer: Timer, effort: Effort) -> float:
    source = torch.empty(COPY_BYTES, dtype=torch.int8, device=DEVICE).random_()
    target = torch.empty_like(source)
    return 2 * COPY_BYTES / min(timer.cold([lambda: target.copy_(source)], effort)[0]) / 1e6


def ceilings(timer: Timer) -> dict[str, float]:
    """The device's own figures, measured now: the best single repeat of a large copy and of large products.

    copy_tb_s counts bytes read plus bytes written; *_tflops are products without a fused epilogue, half products
    with half output, which are a little faster than with FP32 output. The best repeat, not the median: a ceiling
    that the measured kernels may not exceed, whatever the clock does.
    """
    effort = Effort(repeats=10, seconds=1.0, least=3)
    found = {}
    found["copy_tb_s"] = _copy_tb_s(timer, effort)
    tiny = torch.empty(1, device=DEVICE)
    found["empty_us"] = median(timer.cold([lambda: tiny.fill_(1.0)], effort.but(repeats=50))[0])
    for name, sizes in PRODUCTS.items():
        rate = 0.0
        for size in sizes:
            a, b = (torch.rand(size, size, device=DEVICE).mul_(2).sub_(1).to(getattr(torch, name)) for _ in range(2))
            out = torch.empty_like(a)
            us = min(timer.cold([lambda a=a, b=b, out=out: torch.mm(a, b.t(), out=out)], effort)[0])
            rate = max(rate, 2 * size**3 / us / 1e6)
        found[f"{name}_tflops"] = rate
    return found


def meta(monitor: Monitor, command: str) -> dict:
    """The `meta` of a result file, as known before the run; the SM clock is added at its end."""
    properties = torch.cuda.get_device_properties(torch.cuda.current_device())
    return {
        "gpu": properties.name,
        "capability": f"{properties.major}.{properties.minor}",
        "sm_count": properties.multi_processor_count,
        "driver": monitor.driver(),
        "cuda": torch.version.cuda,
        "torch": torch.__version__,
        "python": platform.python_version(),
        "cublas": cublas_version(),
        "sm_clock_mhz": None,
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "csrc_tree": csrc_tree(),
        "command": command,
    }
