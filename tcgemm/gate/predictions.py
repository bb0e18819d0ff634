"""The four predictions: read before anything is measured, held against the results afterwards."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from tcgemm.gate.timing import FP32_NAME, Time

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

FILE = Path(__file__).with_name("predictions.toml")
QUESTIONS = ("global_beats_fp32", "staging_gain", "warp_tile", "unguarded_tail")
BANNED = "overhead"  # the seed: it must not stand in for an explanation


class PredictionError(ValueError):
    """The predictions are missing or not fit to be judged; the message says what to do."""


@dataclass
class Prediction:
    """One question. `held` is None while it is not settled."""

    id: str
    question: str
    prediction: str
    reason: str
    expects: dict
    outcome: str = ""
    failed_assumption: str = ""
    held: bool | None = None

    def as_dict(self) -> dict:
        """For the result file."""
        return asdict(self)


def load(path: Path = FILE) -> list[Prediction]:
    """The four predictions. Raises PredictionError when one is missing, unreasoned, or explained by a banned word."""
    if not path.is_file():
        raise PredictionError(f"{path} is missing: write down your four predictions before you see results")
    try:
        table = tomllib.loads(path.read_text())
    except tomllib.TOMLDecodeError as error:
        raise PredictionError(f"{path}: {error}") from None
    found = []
    for key in QUESTIONS:
        entry = table.get(key, {})
        for field in ("question", "prediction", "reason"):
            if not str(entry.get(field, "")).strip():
                raise PredictionError(f"{path}: [{key}] has no {field}; a prediction counts only with its reason")
        texts = {field: entry.get(field, "") for field in ("question", "prediction", "reason", "failed_assumption")}
        found.append(Prediction(id=key, expects=entry.get("expects", {}), outcome=entry.get("outcome", ""), **texts))
    if complaints := lint(found):
        raise PredictionError(f"{path}: {'; '.join(complaints)}")
    return found


def lint(predictions: Iterable[Prediction]) -> list[str]:
    """What is wrong with the explanations."""
    return [
        f'[{p.id}] failed_assumption says "{BANNED}": name the assumption by matrix size, data reuse, registers or '
        "scheduler eligibility"
        for p in predictions
        if BANNED in p.failed_assumption.lower()
    ]


def settle(predictions: list[Prediction], times: list[Time], unguarded: tuple[str, str] | None) -> None:
    """Fills in outcome and held, as far as the results reach. `unguarded` is (status, text) of that build's case."""
    ms = {(t.algo, t.n): t.ms for t in times if t.distribution == "uniform"}
    judges = {
        "global_beats_fp32": lambda p: _global_beats_fp32(p, ms),
        "staging_gain": lambda p: _staging_gain(p, ms),
        "warp_tile": lambda p: _warp_tile(p, ms),
        "unguarded_tail": lambda p: _unguarded_tail(p, unguarded),
    }
    for prediction in predictions:
        prediction.outcome, prediction.held = judges[prediction.id](prediction)


NOT_MEASURED = ("not measured in this run", None)


def _global_beats_fp32(p: Prediction, ms: dict) -> tuple[str, bool | None]:
    sizes = p.expects.get("faster_at", [1024, 2048])
    pairs = {n: (ms.get(("wmma_global", n)), ms.get((FP32_NAME, n))) for n in sizes}
    if any(value is None for pair in pairs.values() for value in pair):
        return NOT_MEASURED
    text = "; ".join(f"{n}: wmma_global {ours:.3f} ms, FP32 {bar:.3f} ms" for n, (ours, bar) in pairs.items())
    return text, all(ours < bar for ours, bar in pairs.values())


def _staging_gain(p: Prediction, ms: dict) -> tuple[str, bool | None]:
    gains = {
        n: ms[("wmma_global", n)] / ms[("wmma_staged", n)]
        for name, n in ms
        if name == "wmma_global" and ("wmma_staged", n) in ms
    }
    n = p.expects.get("n", 2048)
    if n not in gains:
        return NOT_MEASURED
    text = "; ".join(f"{size}: {gain:.2f} times" for size, gain in sorted(gains.items()))
    return text, p.expects.get("least", 0) <= gains[n] <= p.expects.get("most", float("inf"))


def _warp_tile(p: Prediction, ms: dict) -> tuple[str, bool | None]:
    from tcgemm.gate.sweep import WARP_TILES

    n = p.expects.get("n", 4096)
    taken = {algo: ms[(algo, n)] for algo in WARP_TILES if (algo, n) in ms}
    if len(taken) < len(WARP_TILES):
        return NOT_MEASURED
    text = f"{n}: " + ", ".join(f"{WARP_TILES[algo]} {value:.3f} ms" for algo, value in taken.items())
    return text, min(taken, key=taken.get) == p.expects.get("winner")


def _unguarded_tail(p: Prediction, unguarded: tuple[str, str] | None) -> tuple[str, bool | None]:
    if unguarded is None:
        return "not settled in this run: add --unguarded, which builds wmma_staged without its K guard", None
    status, text = unguarded
    return f"{status}: {text}", status == p.expects.get("verdict")


def record(predictions: list[Prediction], results: Path, path: Path = FILE) -> None:
    """Takes the settled outcomes from a result file and writes them into `path`, whose other lines stay."""
    measured = {entry["id"]: entry for entry in json.loads(results.read_text())["predictions"]}
    for p in predictions:
        entry = measured.get(p.id, {})
        p.outcome, p.held = entry.get("outcome", p.outcome), entry.get("held")
    settled = {p.id: p for p in predictions if p.held is not None}
    section, lines = "", []
    for line in path.read_text().splitlines():
        if line.startswith("["):
            section = line.strip("[] ")
        if line.startswith("outcome =") and section in settled:
            p = settled[section]
            text = ("as predicted. " if p.held else "not as predicted. ") + p.outcome
            line = f"outcome = {json.dumps(text, ensure_ascii=False)}"
        lines.append(line)
    path.write_text("\n".join(lines) + "\n")
