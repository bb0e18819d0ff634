"""python -m tcgemm info [--json]: what is built, what is loaded, what is missing.

Every probe is guarded: this is what one runs when something does not work.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import tcgemm
from tcgemm import _library

_VARIABLES = ("TORCH_CUDA_ARCH_LIST", "TCGEMM_BUILD_CUDA", "CUDA_HOME", "CUDA_VISIBLE_DEVICES", "CUDA_LAUNCH_BLOCKING")
_PREFIXES = ("CUBLAS", "NVIDIA_")


def _guarded(probe: Callable[[], Any]) -> Any:
    try:
        return probe()
    except Exception as error:
        return f"failed: {type(error).__name__}: {error}"


def _libraries() -> dict[str, Any]:
    errors = {"tcgemm": None, "tcgemm_cuda": _library.cuda_error, "tcgemm_baseline": _library.baseline_error}
    return {
        f"lib{name}.so": {"path": str(_library.path_of(name)), "loaded": error is None, "error": error}
        for name, error in errors.items()
    }


def _mapped() -> list[str]:
    """CUDA libraries that this process has loaded, wherever they came from."""
    pattern = re.compile(r"/lib(cuda|cudart|cublas|cublasLt|torch_cuda|torch_cpu)[.\-\w]*\.so[.\d]*$")
    paths = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines() if "/" in line}
    return sorted(path for path in paths if pattern.search(path))


def _devices() -> list[dict[str, Any]]:
    found = []
    for index in range(torch.cuda.device_count()):
        properties = torch.cuda.get_device_properties(index)
        found.append(
            {
                "name": properties.name,
                "capability": f"{properties.major}.{properties.minor}",
                "memory_gib": round(properties.total_memory / 2**30, 1),
                "sm_count": properties.multi_processor_count,
                "tcgemm": _guarded(lambda index=index: _library.device_info(index)),
                "product": _guarded(lambda index=index: _try_product(f"cuda:{index}")),
            }
        )
    return found


def _try_product(device: str) -> str:
    """One small product whose sums are exact in any order."""
    a = torch.arange(17 * 19, device=device).remainder(7).sub(3).reshape(17, 19)
    b = torch.arange(19 * 23, device=device).remainder(5).sub(2).reshape(19, 23)
    right = (a.double() @ b.double()).float()
    return "right" if torch.equal(tcgemm.mm(a.half(), b.half()), right) else "WRONG"


def collect() -> dict[str, Any]:
    """Everything that `info` prints, as JSON-ready values. Uses the GPUs if there are any."""
    return {
        "tcgemm": tcgemm.__version__,
        "package": str(Path(tcgemm.__file__).parent),
        "build": _guarded(_library.build_info),
        "libraries": _guarded(_libraries),
        "kernels": _guarded(lambda: [row["name"] for row in _library.kernel_rows()]),
        "cublas": _guarded(_library.cublas_facts),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "torch_cuda": torch.version.cuda,
        "platform": platform.platform(),
        "gpus": _guarded(_devices),
        "cpu_product": _guarded(lambda: _try_product("cpu")),
        "mapped": _guarded(_mapped),
        "environment": {
            name: value
            for name, value in sorted(os.environ.items())
            if name in _VARIABLES or name.startswith(_PREFIXES)
        },
    }


def _print(value: dict[Any, Any] | list[Any], indent: int = 0) -> None:
    """Nested values below their name, flat ones behind it."""
    pad = " " * indent
    for name, item in value.items() if isinstance(value, dict) else enumerate(value):
        inner = item.values() if isinstance(item, dict) else item if isinstance(item, list) else ()
        if any(isinstance(x, (dict, list)) for x in inner):
            print(f"{pad}{name}:")
            _print(item, indent + 2)
        elif isinstance(item, dict):
            print(f"{pad}{name}: " + (", ".join(f"{key}={text}" for key, text in item.items()) or "none"))
        else:
            print(f"{pad}{name}: " + (", ".join(item) or "none" if isinstance(item, list) else str(item or "none")))


def main(argv: list[str] | None = None) -> int:
    """Prints the report. Exit status 1 where a product came out wrong or a part that was built cannot be loaded."""
    parser = argparse.ArgumentParser(prog="python -m tcgemm info", description=__doc__.splitlines()[0])
    parser.add_argument("--json", action="store_true", help="for programs")
    report = collect() if (asked := parser.parse_args(argv)) else {}
    if asked.json:
        print(json.dumps(report, indent=2))
    else:
        _print(report)
    products = [report["cpu_product"], *(gpu["product"] for gpu in report["gpus"] if isinstance(gpu, dict))]
    unloadable = [
        library for library in report["libraries"].values() if not library["loaded"] and Path(library["path"]).exists()
    ]
    return 0 if all(product == "right" for product in products) and not unloadable else 1


if __name__ == "__main__":
    sys.exit(main())
