"""The emulator's counts beside Nsight Compute's: emulator.json.

    python tests/emulator/compare_ncu.py emulator counts.json     # anywhere
    python tests/emulator/compare_ncu.py ncu counters.json        # where the GPU is
    python tests/emulator/compare_ncu.py merge counts.json counters.json bench/results/h200/emulator.json

Every emulated rung at an aligned and at a ragged size. Global requests and sectors must be equal, shared-memory
wavefronts an instruction within 0.25. The ncu part also profiles lds_probe.cu, which asks what reads that share
addresses cost.

Longer than the line budget: the three parts are one comparison, and share what a row is.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SIZES = ((512, 384, 256), (611, 613, 617))  # m, n, k; A row-major, B column-major
SLACK = 0.25  # wavefronts an instruction: arbitration shows in the counters

# What a row needs: counters that add up to it, each under the names that it has had. The first one that this ncu
# lists is taken. On an H200 op_ld holds the sectors of cp.async as well, and the names of shared instructions without
# "sass" most of its instructions.
COUNTERS: dict[str, tuple[tuple[str, ...], ...]] = {
    "load_sectors": (("l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum",),),
    "store_sectors": (("l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum",),),
    "shared_load_wavefronts": (("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum",),),
    "shared_store_wavefronts": (("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum",),),
    "shared_load_instructions": (
        ("smsp__sass_inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_ld.sum"),
        ("smsp__sass_inst_executed_op_ldsm.sum", "smsp__inst_executed_op_ldsm.sum"),
    ),
    "shared_store_instructions": (
        ("smsp__sass_inst_executed_op_shared_st.sum", "smsp__inst_executed_op_shared_st.sum"),
    ),
    # For the record: what the sums above could be missing.
    "shared_wavefronts": (("l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",),),
    "load_requests": (("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum",),),
    "store_requests": (("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",),),
    "ldgsts_instructions": (("smsp__inst_executed_op_ldgsts.sum", "smsp__sass_inst_executed_op_ldgsts.sum"),),
    "instructions": (("smsp__inst_executed.sum",),),
    "registers": (("launch__registers_per_thread",),),
}
# Asked for too, kept under "raw", and in no sum.
_LDGSTS = "sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts_cache"
ADDED = (
    f"smsp__{_LDGSTS}_bypass.sum",
    f"sm__{_LDGSTS}_bypass.sum",
    f"smsp__{_LDGSTS}_access.sum",
    f"sm__{_LDGSTS}_access.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts.sum",
    "l1tex__t_sectors_pipe_lsu_mem_global_op_ldgsts_cache_bypass.sum",
    "smsp__inst_executed_op_ldgsts_cache_bypass.sum",
    "smsp__inst_executed_op_global_ld.sum",
    "smsp__inst_executed_op_global_st.sum",
)


def names_of(row: str) -> list[str]:
    """Every name that a counter of `row` may have."""
    return [name for term in COUNTERS[row] for name in term]


def counted(raw: dict[str, float]) -> dict[str, float]:
    """The ncu side of a row."""
    row: dict[str, float] = {name: int(total(name, raw)) for name in COUNTERS}
    return row | {"wavefronts_per_instruction": per_instruction(row)}


def total(row: str, values: dict[str, float]) -> float:
    """The sum of `row`'s counters: of each, the first name that was measured."""
    return sum(next((values[name] for name in term if name in values), 0.0) for term in COUNTERS[row])


def problems() -> list[tuple[str, Any]]:
    """(algo, problem), in the order in which they run."""
    from bench.problems import Problem
    from tcgemm.emulator import emulated_algos

    return [
        (algo, Problem("counters", m, n, k, dtype="float32" if algo.startswith("simt") else "float16"))
        for m, n, k in SIZES
        for algo in emulated_algos()
    ]


def per_instruction(row: dict[str, float]) -> float:
    """Wavefronts of shared loads and stores over their instructions; 0 without any."""
    instructions = row["shared_load_instructions"] + row["shared_store_instructions"]
    wavefronts = row["shared_load_wavefronts"] + row["shared_store_wavefronts"]
    return round(wavefronts / instructions, 4) if instructions else 0.0


def emulate(wanted: list[tuple[str, Any]]) -> list[dict[str, Any]]:
    """The emulator's side of the rows."""
    from bench.problems import build
    from tcgemm.emulator import Emulator, program

    global_loads = ("global_load", "async_load", "fragment_load")
    shared_loads, shared_stores = ("shared_load", "fragment_load", "ldmatrix"), ("shared_store", "fragment_store")
    rows = []
    with Emulator(program()) as emulator:
        for algo, problem in wanted:
            built = build(problem)
            counts = emulator.run(algo, built.a, built.b, out=built.c).counts
            inside = [row for row in counts.rows if row.space.startswith("shared")]
            row: dict[str, Any] = {
                "load_sectors": counts.load_sectors,
                "store_sectors": counts.store_sectors,
                "load_requests": counts.total("requests", access=global_loads, space=("A", "B")),
                "store_requests": counts.total("requests", space=("C",)),
                "ldgsts_instructions": counts.total("instructions", access=("async_load",)),
            }
            for name, accesses in (("load", shared_loads), ("store", shared_stores)):
                chosen = [each for each in inside if each.access in accesses]
                row[f"shared_{name}_instructions"] = sum(each.requests for each in chosen)
                row[f"shared_{name}_wavefronts"] = sum(each.wavefronts for each in chosen)
            row["wavefronts_per_instruction"] = per_instruction(row)
            rows.append({**place(algo, problem), "emulator": row})
            print(f"emulator: {algo} {problem.m},{problem.n},{problem.k}", flush=True)
    return rows


def place(algo: str, problem: Any) -> dict[str, Any]:
    return {"algo": algo, "m": problem.m, "n": problem.n, "k": problem.k}


def target() -> None:
    """What ncu profiles: one launch of each problem, and nothing else, inside the profiled range."""
    import torch

    import tcgemm  # noqa: F401 - registers the ops
    from bench.problems import build

    made = [(algo, build(problem, "cuda")) for algo, problem in problems()]

    def launch(algo: str, built: Any) -> None:
        op = torch.ops.tcgemm.sgemm_out if built.problem.dtype == "float32" else torch.ops.tcgemm.mm_out
        op(built.a, built.b, out=built.c, algo=algo)

    for algo, built in made:  # loads the code
        launch(algo, built)
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    for algo, built in made:
        launch(algo, built)
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    for algo, built in made:
        exact = built.a.double() @ built.b.double()
        assert (built.c.double() - exact).abs().max() < 1e-2, f"{algo} is wrong at {built.problem}"


def counters_wanted(ncu: str) -> list[str]:
    """Those counters that this ncu and device know."""
    names = [name for row in COUNTERS for name in names_of(row)] + list(ADDED)
    known = ""
    for collection in ("profiling", "launch"):
        asked = [ncu, "--query-metrics", "--query-metrics-collection", collection]
        known += subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    listed = {line.split()[0] for line in known.splitlines() if line.strip()}
    if not listed & {name.split(".")[0] for name in names}:
        return [term[0] for terms in COUNTERS.values() for term in terms]  # let ncu say what it lacks
    return [name for name in names if name.split(".")[0] in listed]


def profile(ncu: str, command: list[str], names: list[str], ranged: bool) -> list[tuple[str, dict[str, float]]]:
    """(kernel, counters) of every launch that ncu saw, in order. Raises RuntimeError with ncu's words."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "ncu.csv"
        options = ["--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base", "--log-file", str(log)]
        options += ["--target-processes", "all"]
        options += ["--profile-from-start", "off"] if ranged else []
        done = subprocess.run(
            [ncu, *options, "--metrics", ",".join(names), *command],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        text = log.read_text() if log.is_file() else ""
    lines = text.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if done.returncode != 0 or start is None:
        raise RuntimeError(
            f"ncu failed ({done.returncode}):\n{text[-2000:]}\n{done.stdout[-500:]}\n{done.stderr[-2000:]}"
        )
    table = [line for line in csv.DictReader(lines[start:]) if line["ID"]]
    return [(line["Kernel Name"], {name: _number(line.get(name)) for name in names}) for line in table]


def _number(text: str | None) -> float:
    try:
        return float((text or "0").replace(",", ""))
    except ValueError:
        return 0.0


def measure(ncu: str) -> dict[str, Any]:
    names = counters_wanted(ncu)
    print("counters:", *names, sep="\n  ")
    launches = profile(ncu, [sys.executable, str(Path(__file__)), "target"], names, ranged=True)
    wanted = problems()
    if len(launches) != len(wanted):
        raise RuntimeError(f"{len(launches)} launches for {len(wanted)} problems: {[name for name, _ in launches]}")
    rows = []
    for (algo, problem), (kernel, values) in zip(wanted, launches, strict=True):
        rows.append({**place(algo, problem), "kernel": kernel, "raw": values})
    return {"counters": names, "rows": rows, "probe": probe(ncu, names)}


def probe(ncu: str, names: list[str]) -> dict[str, float]:
    """Wavefronts an instruction of each kernel of lds_probe.cu."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "lds_probe"
        source = Path(__file__).with_name("lds_probe.cu")
        subprocess.run(["nvcc", "-std=c++17", "-arch=native", "-o", str(program), str(source)], check=True)
        loads = [name for row in ("shared_load_wavefronts", "shared_load_instructions") for name in names_of(row)]
        loads = [name for name in loads if name in names]
        found = {}
        for kernel, values in profile(ncu, [str(program)], loads, ranged=False):
            instructions = max(total("shared_load_instructions", values), 1)
            found[kernel.split("(")[0]] = round(total("shared_load_wavefronts", values) / instructions, 3)
    return found


def merge(counts: dict[str, Any], counters: dict[str, Any]) -> dict[str, Any]:
    """The contents of emulator.json. The ncu side is summed anew, so that better sums need no new measurement."""
    rows = []
    for ours, theirs in zip(counts["rows"], counters["rows"], strict=True):
        where = {name: ours[name] for name in ("algo", "m", "n", "k")}
        if where != {name: theirs[name] for name in where}:
            raise ValueError(f"the files hold different problems: {where} and {theirs}")
        rows.append({**where, "emulator": ours["emulator"], "ncu": counted(theirs["raw"])})
    return {"meta": counters.get("meta", {}), "rows": rows, "probe": counters["probe"]}


def wavefronts_each(counts: dict[str, float], name: str) -> float:
    """Wavefronts a shared `name`: load or store."""
    return counts[f"shared_{name}_wavefronts"] / max(counts[f"shared_{name}_instructions"], 1)


def differences(document: dict[str, Any]) -> list[str]:
    """What differs in emulator.json by more than it may."""
    found = []
    for row in document["rows"]:
        a, b = row["emulator"], row["ncu"]
        label = f"{row['algo']} {row['m']},{row['n']},{row['k']}"
        for name in ("load_requests", "store_requests", "load_sectors", "store_sectors"):
            if a[name] != b[name]:
                found.append(f"{label}: {name} {a[name]} emulated, {b[name]} counted")
        for name in ("load", "store"):
            each = [wavefronts_each(x, name) for x in (a, b)]
            if abs(each[0] - each[1]) > SLACK:
                found.append(f"{label}: wavefronts a shared {name} {each[0]:.2f} emulated, {each[1]:.2f} counted")
    return found


def table(document: dict[str, Any]) -> list[str]:
    """The lines of docs/emulator.md's table."""
    heads = ["rung", "m, n, k"]
    measures = ("sectors loaded", "stored", "wavefronts a shared load", "a store")
    heads += [f"{measure}{by}" for measure in measures for by in ("", ", ncu")]
    lines = [heads, ["---"] * 2 + ["---:"] * 8]
    for row in document["rows"]:
        cells = [f"`{row['algo']}`", f"{row['m']}, {row['n']}, {row['k']}"]
        cells += [f"{row[side][name]:,}" for name in ("load_sectors", "store_sectors") for side in ("emulator", "ncu")]
        cells += [
            f"{wavefronts_each(row[side], name):.2f}" if row[side][f"shared_{name}_instructions"] else ""
            for name in ("load", "store")
            for side in ("emulator", "ncu")
        ]
        lines.append(cells)
    return ["| " + " | ".join(cells) + " |" for cells in lines]


def meta() -> dict[str, Any]:
    """What was measured: the fields of every result file."""
    import torch

    from tcgemm.gate import output

    device = torch.device("cuda", torch.cuda.current_device())
    return output.meta_of(device, output.monitor_of(device), " ".join(["python", *sys.argv]))


def main() -> int:
    sys.path[:0] = [str(ROOT)]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("emulator", "ncu", "merge", "target"))
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--ncu", default="ncu")
    arguments = parser.parse_args()
    if arguments.part == "target":
        target()
        return 0
    if len(arguments.files) != (3 if arguments.part == "merge" else 1):
        parser.error("emulator and ncu take one file, merge takes three")
    if arguments.part == "emulator":
        arguments.files[0].write_text(json.dumps({"rows": emulate(problems())}, indent=1) + "\n")
    elif arguments.part == "ncu":
        arguments.files[0].write_text(json.dumps({"meta": meta(), **measure(arguments.ncu)}, indent=1) + "\n")
    else:
        counts, counters = (json.loads(path.read_text()) for path in arguments.files[:2])
        document = merge(counts, counters)
        arguments.files[2].write_text(json.dumps(document, indent=1) + "\n")
        print(*table(document), *(f"{kernel}: {each:.2f}" for kernel, each in document["probe"].items()), sep="\n")
        differ = differences(document)
        print(*differ or ["no difference beyond what is allowed"], sep="\n")
        return bool(differ)
    return 0


if __name__ == "__main__":
    sys.exit(main())
