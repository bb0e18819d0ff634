"""tests/summary.py: a run that failed, crashed or met no test must not read as a success."""

import pathlib
import textwrap

import pytest

from summary import main

PYTEST = """
    <testsuites><testsuite>
      <testcase name="a"/>
      <testcase name="b"><skipped message="no CUDA device here"/></testcase>
      <testcase name="c"><skipped message="nvcc is missing"/></testcase>
      {more}
    </testsuite></testsuites>
"""
CTEST = """
    <testsuite>
      <testcase name="d" status="run"><system-out>1 GPU</system-out></testcase>
      <testcase name="e" status="notrun">
        <skipped message="SKIP_RETURN_CODE=77"/><system-out>no GPU</system-out>
      </testcase>
    </testsuite>
"""


def write(directory: pathlib.Path, more: str = "") -> str:
    (directory / "pytest.xml").write_text(textwrap.dedent(PYTEST.format(more=more)))
    (directory / "ctest.xml").write_text(textwrap.dedent(CTEST))
    return str(directory)


def test_counts(tmp_path, capsys):
    assert main(write(tmp_path), "0") == 0
    lines = capsys.readouterr().out.strip().splitlines()
    assert lines == [
        "ctest: 1 passed, 0 failed, 1 skipped",
        "pytest: 1 passed, 0 failed, 2 skipped",
        "2 tests skipped for want of a GPU",
        "2 passed, 0 failed, 3 skipped",
    ]


@pytest.mark.parametrize("fault", ["failure", "error"])
def test_a_failed_test_fails_the_run(tmp_path, capsys, fault):
    assert main(write(tmp_path, f'<testcase name="x"><{fault} message="GPU"/></testcase>'), "1") == 1
    assert capsys.readouterr().out.endswith("\n2 passed, 1 failed, 3 skipped\n")


def test_a_program_that_crashed_fails_the_run(tmp_path, capsys):
    assert main(write(tmp_path), "1") == 1  # its file names no failure
    assert capsys.readouterr().out.endswith("\n2 passed, 1 failed, 3 skipped\n")


def test_no_test_at_all_fails_the_run(tmp_path):
    assert main(str(tmp_path), "0") == 1
