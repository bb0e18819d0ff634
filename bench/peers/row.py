"""A peer's row of one problem: every variant checked first, then the fastest timed in pairs with cublas_mm."""

from __future__ import annotations

from collections.abc import Mapping

import torch

from bench import stats
from bench.accuracy import Errors
from bench.calls import Call
from bench.measure import SLOWEST_CALL_US, TRIAL, Measurement, Skipped
from bench.peers import Peer, Refused
from bench.subject import Subject


def row(measurement: Measurement, peer: Peer, shared: dict) -> dict:
    """The row of the fastest variant that is right; without times when all are wrong.

    Raises Skipped when the peer refuses, when no variant runs, when it is too slow, or when it fails later on.
    """
    try:
        variants = peer.variants(measurement.subject.a, measurement.subject.b)
        return _row(measurement, peer, variants, shared)
    except torch.OutOfMemoryError:
        raise
    except (Refused, RuntimeError) as reason:
        raise Skipped(str(reason)) from reason


def _row(measurement: Measurement, peer: Peer, variants: Mapping[str, Call], shared: dict) -> dict:
    right, wrong, raised = _checked(measurement.subject, variants)
    unusable = [f"{name}: {errors.wrong} elements break the tolerance" for name, errors in wrong.items()]
    unusable += [f"{name}: {error}" for name, error in raised.items()]
    if not right and not wrong:
        raise Skipped("; ".join(unusable) or "it has no variant for this problem")
    name = _fastest(measurement, variants, list(right)) if right else next(iter(wrong))
    call = measurement.measured[peer.algo] = variants[name]
    found = measurement.identity(peer.algo, name) | shared | {"peer": peer.version}
    found |= measurement.accuracy_of((right or wrong)[name])
    if not right:
        return found | {"failed": f"{'; '.join(unusable)}: not timed"}
    for text in unusable:
        measurement.session.say(f"{peer.algo}, left out: {text}")
    found |= measurement.times(peer.algo, call)
    return found | measurement.sustained(call, found)


def _checked(subject: Subject, variants: Mapping[str, Call]) -> tuple[dict[str, Errors], dict[str, Errors], dict]:
    """By name: the errors of the variants that are right, of those that are wrong, and what the others raised."""
    right, wrong, raised = {}, {}, {}
    for name, call in variants.items():
        try:
            errors, _ = subject.check(call)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raised[name] = error
        else:
            (wrong if errors.wrong else right)[name] = errors
    return right, wrong, raised


def _fastest(measurement: Measurement, variants: Mapping[str, Call], names: list[str]) -> str:
    trials = measurement.session.timer.cold([variants[name] for name in names], TRIAL)
    us, name = min(zip(map(stats.median, trials), names))
    if us > SLOWEST_CALL_US:
        raise Skipped(f"one call takes {us / 1e3:.0f} ms")
    return name
