"""tests/sanitize.py --forms, on a sanitizer and a test that are shell scripts."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from sanitize import run_forms

TEST = """#!/bin/sh
if [ "$1" = names ]; then printf 'wide\\nnarrow\\n'; exit 0; fi
echo "$2 was asked for"
if [ "$1 $2" = "few narrow" ]; then exit 86; fi
echo "12 checks, 0 failed"
"""
SANITIZER = """#!/bin/sh
while [ "$1" != --print-limit ]; do shift; done
shift 2
exec "$@"
"""


def script(path: Path, text: str) -> Path:
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_each_form_runs_by_itself_and_one_that_is_not_clean_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sanitize.time", SimpleNamespace(monotonic=lambda: 0.0))  # a slow machine takes no longer
    sanitizer, test = script(tmp_path / "sanitizer", SANITIZER), script(tmp_path / "forms", TEST)
    assert not run_forms(str(sanitizer), "racecheck", test, 2)
    said = capsys.readouterr().out
    assert "racecheck wide: clean, 12 checks, 0 failed, 0 s" in said
    assert "racecheck narrow: reported something, no checks, 0 s\nnarrow was asked for" in said
    assert said.endswith("== racecheck: 1 of 2 forms clean\n")
    script(test, TEST.replace("exit 86", "exit 0"))
    assert run_forms(str(sanitizer), "synccheck", test, 1)
