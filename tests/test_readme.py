"""README.md and CONTRIBUTING.md stay true: examples run as printed, the table is the code's, links lead somewhere."""

import contextlib
import io
import json
import re

import pytest

from bench import plot_style, plots, publish
from support import ROOT
from tcgemm.gate import predictions

RUN = ROOT / "bench" / "results" / "h200"
README = (ROOT / "README.md").read_text()
KERNELS = (ROOT / "csrc" / "kernels.def").read_text()
DTYPE_NAMES = {"F16": "FP16", "BF16": "BF16", "F32": "FP32"}

# ```python blocks, each with the ```text block of its output when one follows.
EXAMPLES = re.findall(r"```python\n(.*?)```(?:\n+```text\n(.*?)```)?", README, re.DOTALL)


def capability(arch: str) -> str:
    return f"{arch[:-1]}.{arch[-1]}"


def ladder_rows() -> list[str]:
    """README's table as csrc/kernels.def implies it."""
    rows = []
    for line in re.findall(r"^RUNG\((.*)\)", KERNELS, re.MULTILINE):
        facts, summary = re.fullmatch(r'(.*), *"(.*)"', line).groups()
        name, source, _, dtypes, arch, bf16, newest, _, _ = (cell.strip() for cell in facts.split(","))
        needs = capability(arch)
        if int(newest):
            needs += " only" if newest == arch else f" to {capability(newest)}"
        if bf16 != arch and "BF16" in dtypes:
            needs += f" (BF16 {capability(bf16)})"
        named = ", ".join(DTYPE_NAMES[word.strip()] for word in dtypes.split("|"))
        rows.append(f"| [`{name}`](csrc/kernels/{source}.cu) | {named} | {needs} | {summary} |")
    return rows


def test_the_examples_run_as_printed():
    assert len(EXAMPLES) >= 4
    if not (ROOT / "tcgemm" / "lib" / "libtcgemm_cuda.so").exists():
        pytest.skip("the CUDA part was not built, and one example asks it")
    names: dict = {}
    for code, expected in EXAMPLES:
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "README.md", "exec"), names)  # one after the other, as a reader types them
        assert printed.getvalue() == expected, code


def test_the_ladder_is_the_table_of_kernels():
    rows = ladder_rows()
    assert len(rows) >= 6
    printed = re.findall(r"^\| \[`\w+`\]\(csrc/kernels/.*$", README, re.MULTILINE)
    assert printed == rows, "README.md's table should be:\n" + "\n".join(rows)


@pytest.mark.parametrize("page", [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))])
def test_links_lead_to_files(page):
    text = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text(), flags=re.DOTALL)  # code is no link
    links = [link for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", text) if "://" not in link]
    assert links or page.parent != ROOT
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_the_results_section_names_committed_files():
    section = re.search(r"<!-- results -->\n(.*?)<!-- /results -->", README, re.DOTALL)[1]
    if re.search(r"\d", section):  # no figure without the file that it was read from
        files = re.findall(r"bench/results/[\w./-]+\.json", section)
        assert files
        assert [name for name in files if not (ROOT / name).exists()] == []


def test_what_is_shown_is_the_committed_run():
    for path, text in publish.texts(RUN, ROOT).items():
        assert path.read_text() == text, f"{path.name} shows another run than {RUN}: python -m bench publish"
    measured = plot_style.measured(json.loads((RUN / "compare.json").read_text())["meta"]).encode()
    old = [name for name in plots.FIGURES if measured not in (RUN / f"{name}.png").read_bytes()]
    assert old == [], "these plots show another run: python -m bench publish"


def test_no_figure_in_the_results_is_typed_by_hand():
    section = re.search(r"<!-- results -->\n(.*?)<!-- /results -->", README, re.DOTALL)[1]
    typed = re.sub(r"<!-- (\w+\.json) -->.*?<!-- /\1 -->", "", section, flags=re.DOTALL)
    assert len(typed) < len(section) / 2
    assert re.findall(r"\d+\.\d+|\d+ ?%|\d+ of \d+", typed) == []


def test_the_predictions_tell_the_committed_outcomes():
    told = {p.id: p.outcome for p in predictions.load()}
    for entry in json.loads((RUN / "gate.json").read_text())["predictions"]:
        assert told[entry["id"]].endswith(f"as predicted. {entry['outcome']}"), "python -m bench publish"


def test_the_results_table_is_that_of_the_gate():
    gate = json.loads((ROOT / "bench/results/h200/gate.json").read_text())
    percent = {(t["algo"], t["n"]): f"{t['pct_cublas']:.1f}" for t in gate["times"] if t["distribution"] == "uniform"}
    rows = [
        f"| `{algo}` | " + " | ".join(percent.get((algo, n), "") for n in (1024, 2048, 4096)) + f" | {tier} |"
        for algo, tier in gate["tier"].items()
    ]
    section = re.search(r"<!-- results -->\n(.*?)<!-- /results -->", README, re.DOTALL)[1]
    assert [line for line in section.splitlines() if line.startswith("| `") and "1024" not in line] == rows
