"""Tests of the emulator are skipped, with the reason, where it cannot be compiled."""

from pathlib import Path

import pytest

from tcgemm.emulator.build import missing

HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    reason = missing()
    for item in items if reason else ():
        if item.path.is_relative_to(HERE) and item.path.name != "test_counters.py":
            item.add_marker(pytest.mark.skip(reason=f"no emulator here: {reason}"))
