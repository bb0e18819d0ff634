"""What the plots share: colours, fonts, titles."""

from __future__ import annotations

import math

from bench.results import PEER

# Okabe and Ito's colours and six more, told apart by colour-blind readers; each rung has a marker of its own too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#8B5A2B", "#666666", "#A0B000", "#5E3C99")
COLOURS += ("#00423C", "#D6006E")
MARKERS = "osD^vP*X<d>h"
PEER_STYLES = (("#000000", "p"), ("#8A8A8A", "8"))
BASELINE = "#222222"
READING = "problem: m,n,k or a cube's side; layouts of A and B, N row-major, T column-major; type; padding or offset"
LAUNCH_BOUND_FLOP = 1e6  # smaller products measure the launch; the roofline leaves them out


def pyplot():
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#DDDDDD",
            "grid.linewidth": 0.6,
            "axes.axisbelow": True,
            "svg.hashsalt": "tcgemm",
            "legend.frameon": False,
            "figure.dpi": 110,
        }
    )
    return plt


def styles(rows: list[dict]) -> dict[str, tuple[str, str]]:
    """(colour, marker) of each rung, in the order of first appearance with auto first; then of each peer."""
    names = dict.fromkeys(["auto", *(row["algo"] for row in rows)])
    rungs = [name for name in names if not name.startswith(PEER)]
    made = {name: (COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]) for i, name in enumerate(rungs)}
    peers = [name for name in names if name.startswith(PEER)]
    return made | {name: PEER_STYLES[i % len(PEER_STYLES)] for i, name in enumerate(peers)}


def subtitle(meta: dict) -> str:
    clock = f", SM at {meta['sm_clock_mhz']:.0f} MHz" if meta.get("sm_clock_mhz") else ""
    versions = f"driver {meta['driver']}, CUDA {meta['cuda']}, cuBLAS {meta['cublas']}"
    return f"{meta['gpu']}, {versions}{clock}, {meta['date'][:10]}"


def measured(meta: dict) -> str:
    """Which measurement: when, and of which sources."""
    return f"{meta['date']}, csrc_tree {meta['csrc_tree']}"


def titled(figure, title: str, meta: dict) -> None:
    height = figure.get_size_inches()[1]
    figure.text(0.01, 1 - 0.08 / height, title, fontsize=13, fontweight="bold", va="top")
    figure.text(0.01, 1 - 0.34 / height, subtitle(meta), fontsize=8.5, color="#555555", va="top")


LEGEND_COLUMNS = 5


def legend_above(figure, axes) -> None:
    """The legend between the titles and the axes."""
    handles, names = axes.get_legend_handles_labels()
    height = figure.get_size_inches()[1]
    head = 0.65 + 0.17 * math.ceil(len(names) / LEGEND_COLUMNS)  # inches: titles, then the legend
    figure.tight_layout(rect=(0, 0, 1, 1 - head / height))
    figure.legend(
        handles,
        names,
        loc="upper left",
        bbox_to_anchor=(0.0, 1 - 0.5 / height),
        ncols=LEGEND_COLUMNS,
        fontsize=8,
        columnspacing=1.2,
        handletextpad=0.4,
    )
