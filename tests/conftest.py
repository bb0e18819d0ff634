"""Markers, fixtures and the count of what was skipped for want of a GPU."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

# support.py and bench/ under any import mode. At the end, so that an installed tcgemm comes first.
sys.path.extend(str(directory) for directory in Path(__file__).resolve().parents[:2])

NO_GPU = "no CUDA device here"


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a CUDA device")
    config.addinivalue_line("markers", "gate: the eight cases that every kernel has to pass")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # A device with a library that cannot load must fail, so only the device decides.
    if torch.cuda.is_available():
        return
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason=NO_GPU))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [report for report in terminalreporter.stats.get("skipped", []) if NO_GPU in str(report.longrepr)]
    if skipped:
        terminalreporter.write_line(f"{len(skipped)} GPU tests skipped for want of a GPU")


@pytest.fixture(params=["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(request: pytest.FixtureRequest) -> torch.device:
    return torch.device(request.param)


@pytest.fixture(autouse=True)
def fixed_seed() -> None:
    torch.manual_seed(20)


@pytest.fixture
def fresh_compiler() -> Iterator[None]:
    """Nothing that was traced before is used again: torch keeps graphs on disk, with a backward of tcgemm's
    in them, and knows them by the names of the ops in the forward alone.
    """
    import torch._functorch.config
    import torch._inductor.config

    torch._dynamo.reset()
    with (
        torch._functorch.config.patch(enable_autograd_cache=False),
        torch._inductor.config.patch(fx_graph_cache=False),
    ):
        yield
    torch._dynamo.reset()


@pytest.fixture
def second_device() -> torch.device:
    if torch.cuda.device_count() < 2:
        pytest.skip("needs two CUDA devices")
    return torch.device("cuda:1")
