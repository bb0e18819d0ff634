"""Adds up the JUnit files of pytest and ctest for tests/run: python tests/summary.py DIRECTORY FAILED."""

import pathlib
import re
import sys
import xml.etree.ElementTree as ET

FOR_WANT_OF_A_GPU = re.compile(r"\bGPUs?\b|CUDA devices?")  # in the reason that such a test gives


def count(path: pathlib.Path) -> tuple[dict[str, int], int]:
    """Tests by outcome (passed, failed, skipped) in a JUnit file, and how many lacked a GPU."""
    outcomes = {"passed": 0, "failed": 0, "skipped": 0}
    lacking = 0
    for case in ET.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if case.find("failure") is not None or case.find("error") is not None:
            outcomes["failed"] += 1
        elif skipped is not None or case.get("status") in ("notrun", "disabled"):
            outcomes["skipped"] += 1
            reason = " ".join([*case.itertext(), skipped.get("message", "") if skipped is not None else ""])
            lacking += bool(FOR_WANT_OF_A_GPU.search(reason))
        else:
            outcomes["passed"] += 1
    return outcomes, lacking


def line(outcomes: dict[str, int]) -> str:
    return ", ".join(f"{number} {outcome}" for outcome, number in outcomes.items())


def main(directory: str, failed: str) -> int:
    """Prints the summary; returns 0 only if both programs ended well, met a test and none failed."""
    total = {"passed": 0, "failed": 0, "skipped": 0}
    lacking = 0
    print()
    for path in sorted(pathlib.Path(directory).glob("*.xml")):
        outcomes, without_gpu = count(path)
        print(f"{path.stem}: {line(outcomes)}")
        lacking += without_gpu
        for outcome, number in outcomes.items():
            total[outcome] += number
    if int(failed) and not total["failed"]:
        total["failed"] = 1  # the program itself: a crash, a collection error, nothing to run
        print("a test program ended badly without naming a test: see above")
    print(f"{lacking} tests skipped for want of a GPU")
    print(line(total))
    return 0 if sum(total.values()) and not total["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
