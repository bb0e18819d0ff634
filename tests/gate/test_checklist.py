"""docs/seeds.md: every row is there, and what it names exists."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TEXT = (ROOT / "docs" / "seeds.md").read_text()
ROWS = dict(re.findall(r"^\| ((?:C|S1)-\d+) \|[^|]*\| (.*) \|$", TEXT, re.MULTILINE))
WANTED = [f"C-{i}" for i in range(1, 9)] + [f"S1-{i:02d}" for i in range(1, 50)]


def test_every_row_is_listed_once():
    assert sorted(ROWS) == sorted(WANTED)
    assert len(re.findall(r"^\| (?:C|S1)-\d+ \|", TEXT, re.MULTILINE)) == len(WANTED)


def test_no_row_is_empty():
    for row, where in ROWS.items():
        assert "`" in where or where.startswith("open: "), f"{row} names neither a test nor a rung: {where}"


def named_tests() -> list[tuple[str, str]]:
    """(file, test) of each `file::test`, and of `::test`, which means the file before it."""
    found, file = [], ""
    for path, test in re.findall(r"`(tests/[\w/]+\.py)?::(test_\w+)`", TEXT):
        file = path or file
        found.append((file, test))
    return found


def test_named_tests_exist():
    assert len(named_tests()) > 40
    for file, test in named_tests():
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(), re.MULTILINE), f"{file} has no {test}"


def test_named_files_exist():
    named = set(re.findall(r"`((?:tests|csrc|tcgemm|bench)/[\w./]+\.\w+)`", TEXT))
    assert len(named) > 5
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_named_programs_of_ctest_exist():
    declared = (ROOT / "tests" / "cpp" / "CMakeLists.txt").read_text()
    for name in set(re.findall(r"ctest `(\w+)`", TEXT)):
        assert name in declared
