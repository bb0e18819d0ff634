"""Plots of a result file, by matplotlib, as PNG and SVG. Needs no GPU."""

from __future__ import annotations

from pathlib import Path

from bench.plot_style import BASELINE, LAUNCH_BOUND_FLOP, READING, legend_above, measured, pyplot, styles, titled
from bench.results import SHORT_DTYPES, label, steady
from bench.stats import bar_at


def percent_of_cublas(document: dict):
    """A line a problem, a mark a rung: % of cuBLAS, log scale, 100 % and the error bars marked. None without rows."""
    plt = pyplot()
    rows = [row for row in steady(document["rows"]) if row["op"] == "mm" and row["class"] != "boundary"]
    if not rows:
        return None
    places, headings, bottom = _places(rows)
    figure, axes = plt.subplots(figsize=(9, 1.5 + 0.2 * bottom))
    for (row_class, name), at in places.items():
        row = next(r for r in rows if (r["class"], label(r)) == (row_class, name))
        bar = bar_at(row["cublas_us"], document["self_check"]) or 0.0
        axes.fill_betweenx([at - 0.5, at + 0.5], 100 / (1 + bar), 100 * (1 + bar), color="#BBBBBB", linewidth=0)
    axes.fill_betweenx([], [], [], color="#BBBBBB", linewidth=0, label="error bar")
    axes.axvline(100, color=BASELINE, linewidth=0.7, label="cublasGemmEx")
    for name, (colour, marker) in styles(rows).items():
        own = [(row["ratio"] * 100, places[row["class"], label(row)]) for row in rows if row["algo"] == name]
        if own:
            filled = name == "auto"
            axes.scatter(
                *zip(*own),
                s=62 if filled else 20,
                marker=marker,
                label=name,
                zorder=3 if filled else 4,
                facecolors="none" if filled else colour,
                edgecolors=colour,
                linewidths=1.5 if filled else 0,
            )
    axes.set_xscale("log")
    marks = [v for v in (0.5, 1, 2, 5, 10, 25, 50, 100, 200, 400, 800) if _within(v, [r["ratio"] * 100 for r in rows])]
    axes.set_xticks(marks, [f"{mark:g}" for mark in marks])
    axes.minorticks_off()
    axes.set_yticks(list(places.values()), [text for _, text in places])
    for where, text in headings:
        axes.text(
            0, where, f"{text}  ", transform=axes.get_yaxis_transform(), ha="right", va="center", fontweight="bold"
        )
    axes.set_ylim(bottom + 0.8, 0.2)
    axes.tick_params(axis="y", length=0, labelsize=8)
    axes.set_xlabel(f"% of cublasGemmEx in the same run, cold L2 (log scale); to the right is faster\n{READING}")
    legend_above(figure, axes)
    titled(figure, "Half in, FP32 out: speed against cuBLAS", document["meta"])
    return figure


def _places(rows: list[dict]) -> tuple[dict[tuple[str, str], float], list[tuple[float, str]], float]:
    """Where each (class, problem) stands from the top, where the headings of the classes stand, and the last place."""
    places, headings, at, previous = {}, [], 0.0, None
    for name in dict.fromkeys((row["class"], label(row)) for row in rows):
        at += 1.0 if name[0] == previous else 2.2  # a gap, for the heading, before each class
        if name[0] != previous:
            headings.append((at - 1.0, name[0]))
        previous, places[name] = name[0], at
    return places, headings, at


def _within(value: float, values: list[float]) -> bool:
    return bool(values) and min([*values, 100]) * 0.8 <= value <= max([*values, 100]) * 1.25


def _flop(row: dict) -> int:
    return 2 * row["m"] * row["n"] * row["k"]


def _intensity(row: dict) -> float:
    """flop a byte, halves in and FP32 out."""
    m, n, k = row["m"], row["n"], row["k"]
    return _flop(row) / (2 * (m * k + k * n) + 4 * m * n)


def _scatter_rungs(axes, rows: list[dict]) -> None:
    """A mark a row at its intensity and rate; auto's large, and tied to cuBLAS's on the same problem."""
    for name, (colour, marker) in styles(rows).items():
        own = [row for row in rows if row["algo"] == name]
        if not own:
            continue
        loud = name == "auto"
        at = [_intensity(row) for row in own]
        axes.scatter(
            at,
            [row["tflops"] for row in own],
            s=30 if loud else 10,
            marker=marker,
            color=colour,
            alpha=0.95 if loud else 0.5,
            linewidths=0,
            label=name,
            zorder=3 if loud else 2,
        )
        if loud:
            axes.vlines(
                at,
                [row["tflops"] for row in own],
                [_cublas_rate(row) for row in own],
                color=colour,
                linewidth=0.8,
                alpha=0.6,
                zorder=2.5,
                label="auto to cuBLAS, same problem",
            )


def _cublas_rate(row: dict) -> float:
    """TFLOP/s"""
    return _flop(row) / row["cublas_us"] / 1e6


def roofline(document: dict):
    """Rate against arithmetic intensity under the device's measured ceilings. None without a row to show."""
    plt = pyplot()
    rows = [
        row
        for row in steady(document["rows"])
        if row["op"] == "mm" and row["class"] != "boundary" and _flop(row) >= LAUNCH_BOUND_FLOP
    ]
    if not rows:
        return None
    ceilings = document["meta"]["ceilings"]
    roof, best = max(
        (ceilings[f"{dtype}_tflops"], dtype) for dtype in ("float16", "bfloat16") if f"{dtype}_tflops" in ceilings
    )
    slope = ceilings["copy_tb_s"]
    figure, axes = plt.subplots(figsize=(9, 5.6))

    reach = [_intensity(row) for row in rows]
    left, right = min(*reach, roof / slope) / 2, max(*reach, roof / slope) * 2.5
    axes.plot(
        [left, roof / slope, right],
        [left * slope, roof, roof],
        color=BASELINE,
        linewidth=1.4,
        label=f"measured roof: {slope:.2f} TB/s,\n{roof:.0f} TFLOP/s ({SHORT_DTYPES[best]})",
    )
    once = {(row["class"], label(row)): row for row in rows}.values()  # a row a problem
    axes.scatter(
        [_intensity(row) for row in once],
        [_cublas_rate(row) for row in once],
        s=46,
        marker="o",
        facecolors="none",
        edgecolors=BASELINE,
        linewidths=1.1,
        label="cublasGemmEx",
        zorder=4,
    )
    _scatter_rungs(axes, rows)
    axes.set(
        xscale="log",
        yscale="log",
        xlim=(left, right),
        xlabel="flop a byte (each operand read once, C written once)",
        ylabel="TFLOP/s",
    )
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    figure.tight_layout(rect=(0, 0, 1, 0.91))
    titled(figure, "Roofline, cold L2", document["meta"])
    return figure


def alignment(document: dict):
    """Time against N where rows of B and C pass in and out of 16-byte alignment."""
    plt = pyplot()
    rows = sorted((row for row in steady(document["rows"]) if row["class"] == "boundary"), key=lambda row: row["n"])
    if not rows:
        return None
    figure, axes = plt.subplots(figsize=(9, 4.4))
    for number in range(rows[0]["n"], rows[-1]["n"] + 1):
        if number % 8 == 0:
            axes.axvline(number, color="#CCCCCC", linewidth=7, alpha=0.5, zorder=0)
    by_n = {row["n"]: row for row in rows if row["algo"] == "auto"} or {row["n"]: row for row in rows}
    axes.plot(
        list(by_n),
        [row["cublas_us"] for row in by_n.values()],
        color=BASELINE,
        marker="o",
        markersize=5,
        markerfacecolor="white",
        label="cublasGemmEx",
    )
    if all(row["torch_us"] for row in by_n.values()):
        axes.plot(
            list(by_n),
            [row["torch_us"] for row in by_n.values()],
            color="#999999",
            linestyle=":",
            marker=".",
            label="torch.mm(out_dtype=float32)",
        )
    for name, (colour, marker) in styles(rows).items():
        own = [row for row in rows if row["algo"] == name]
        if own:
            axes.plot(
                [r["n"] for r in own],
                [r["us"] for r in own],
                color=colour,
                marker=marker,
                markersize=4.5,
                label=f"tcgemm, {name}",
            )
    first = rows[0]
    axes.set(
        xlabel=f"N (m = {first['m']}, k = {first['k']}, {first['layout']}, {SHORT_DTYPES[first['dtype']]}; "
        "shaded: N a multiple of 8, rows of B 16-byte aligned)",
        ylabel="us a product, cold L2",
    )
    axes.set_xticks(list(by_n), [str(n) for n in by_n], fontsize=7.5)
    axes.set_ylim(bottom=0)
    figure.tight_layout(rect=(0, 0, 1, 0.89))
    axes.legend(fontsize=8)
    titled(figure, "Time across an alignment boundary", document["meta"])
    return figure


FIGURES = {"percent_of_cublas": percent_of_cublas, "roofline": roofline, "alignment": alignment}


def draw(document: dict, directory: str | Path, suffixes: tuple[str, ...] = ("svg", "png")) -> list[Path]:
    """Writes each plot as DIRECTORY/NAME.SUFFIX; returns the paths of the last suffix. Plots without data are left out.

    A PNG says in its Description which measurement it shows. Raises ImportError when matplotlib is not installed.
    """
    plt = pyplot()
    directory = Path(directory)
    directory.mkdir(parents=True, exist_ok=True)
    written = []
    for name, make in FIGURES.items():
        if (figure := make(document)) is None:
            continue
        for suffix in suffixes:
            path = directory / f"{name}.{suffix}"
            said = {"Date": None} if suffix == "svg" else {"Description": measured(document["meta"])}
            figure.savefig(path, dpi=150, metadata=said)
        plt.close(figure)
        written.append(path)
    return written
