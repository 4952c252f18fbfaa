"""Results of an experiment: visitors and satisfied visitors per arm, and differences between arms.

Visitors count in order of arrival, up to the first minute with a visitor whose outcome is still open. A click is
reported at once and leaving often is not, so counting answers as they arrive would favour the arm whose visitors are
quicker.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zoomrank.judging.comparing import LEVEL, Differences, difference
from zoomrank.numbers import Array
from zoomrank.service.experiments import CollectionExperiment, ExperimentArm, arm_name
from zoomrank.service.storage.arm_outcomes import MINUTE, ArmOutcome

_MOST_POINTS = 150
Rows = Sequence[tuple[int, int, int, int]]  # minute, arm, outcome, count


def result(experiment: CollectionExperiment, rows: Rows) -> dict[str, Any]:
    """Return an experiment with its results, from the counts of its visitors' outcomes."""
    minutes, counts = _by_minute(rows, len(experiment.arms))
    known = _known(counts)
    came = counts[:, :, ArmOutcome.CAME].sum(axis=0)
    told = counts[:known]
    at = _points(known)
    compared = [_compared(experiment, minutes[:known], told, number, at) for number in range(1, len(experiment.arms))]
    arms = [
        {
            "name": arm.name,
            "collection": _looked_at(experiment, arm),
            "share": arm.share,
            "settings": arm.served.settings.model_dump(),
            "stopped": arm.stopped,
            "visitors": int(came[number]),
            "counted": int(_answered(told)[:, number].sum()),
            "satisfied": int(told[:, number, ArmOutcome.SATISFIED].sum()),
            "difference": None if number == 0 else _last(compared[number - 1]),
        }
        for number, arm in enumerate(experiment.arms)
    ]
    return {
        **summary(experiment),
        "arms": arms,
        "level": LEVEL,
        "points": [_point(minutes, told, compared, at, index) for index in range(len(at))],
        "says": says(experiment, arms),
    }


def summary(experiment: CollectionExperiment) -> dict[str, Any]:
    """Return the head data of an experiment."""
    return {
        "name": experiment.name,
        "created": experiment.created,
        "ended": experiment.ended,
        "promoted": experiment.promoted,
    }


def says(experiment: CollectionExperiment, arms: Sequence[dict[str, Any]]) -> list[str]:
    """Return one sentence per arm that compares it with the first."""
    first, said = arms[0]["name"], []
    for arm in arms[1:]:
        told = arm["difference"]
        if told is None:
            said.append(f"Nothing is known yet about {arm['name']} compared with {first}.")
            continue
        between = f"between {100 * told['low']:+.1f} and {100 * told['high']:+.1f} points"
        if told["low"] > 0:
            said.append(f"{arm['name']} satisfies more visitors than {first}: {between}.")
        elif told["high"] < 0:
            said.append(f"{arm['name']} satisfies fewer visitors than {first}: {between}.")
        else:
            said.append(f"Whether {arm['name']} is better than {first} is not known yet: {between}.")
    if experiment.promoted is not None:
        said.append(f"{experiment.promoted} was promoted.")
    return said


def _looked_at(experiment: CollectionExperiment, arm: ExperimentArm) -> str:
    """Return the collection name under which the page shows an arm: the arm's own, or the collection's while it serves
    it.
    """
    home = experiment.home
    if experiment.ended is None and arm.served is home:
        return home.name
    return arm_name(home.name, experiment.name, arm.name)


def _by_minute(rows: Rows, arms: int) -> tuple[Array, Array]:
    """Return the minutes with visitors, and counts by minute, arm and outcome."""
    minutes = np.unique(np.array([row[0] for row in rows], np.int64))
    counts = np.zeros((len(minutes), arms, len(ArmOutcome)), np.int64)
    if rows:
        minute, arm, outcome, count = np.array(rows, np.int64).T
        counts[np.searchsorted(minutes, minute), arm, outcome] = count
    return minutes, counts


def _known(counts: Array) -> int:
    """Return the number of minutes before the first one with open outcomes."""
    open_ = counts[:, :, ArmOutcome.CAME] > counts[:, :, 1:].sum(axis=2)
    undecided = np.flatnonzero(open_.any(axis=1))
    return int(undecided[0]) if len(undecided) else len(counts)


def _answered(counts: Array) -> Array:
    return np.asarray(counts[:, :, ArmOutcome.SATISFIED] + counts[:, :, ArmOutcome.LEFT])


def _points(known: int) -> Array:
    """Return indices of at most `_MOST_POINTS` minutes, including the last."""
    return (
        np.unique(np.linspace(0, known - 1, min(known, _MOST_POINTS)).round().astype(int))
        if known
        else np.zeros(0, int)
    )


def _compared(experiment: CollectionExperiment, minutes: Array, told: Array, number: int, at: Array) -> Differences:
    """Compare an arm with the first; intervals are widened so that those of all arms hold at once.

    Only minutes count in which visitors were randomized between the two, so none after either was stopped.
    """
    arms = experiment.arms
    stopped = [arm.stopped for arm in (arms[0], arms[number]) if arm.stopped is not None]
    if stopped:
        told = np.where((minutes < min(stopped) // MINUTE)[:, None, None], told, 0)
    other, first = (
        np.stack([_answered(told)[:, arm], told[:, arm, ArmOutcome.SATISFIED]], axis=1) for arm in (number, 0)
    )
    share = arms[number].share / (arms[number].share + arms[0].share)
    return difference(other, first, share, 1 - (1 - LEVEL) / (len(arms) - 1), at)


def _last(compared: Differences) -> dict[str, float] | None:
    if not len(compared.visitors) or not compared.visitors[-1]:
        return None
    return {"estimate": float(compared.estimate[-1]), "low": float(compared.low[-1]), "high": float(compared.high[-1])}


def _point(minutes: Array, told: Array, compared: Sequence[Differences], at: Array, index: int) -> dict[str, Any]:
    """Return the state of the comparison after one minute."""
    until = at[index] + 1
    answered, satisfied = _answered(told)[:until].sum(axis=0), told[:until, :, ArmOutcome.SATISFIED].sum(axis=0)
    return {
        "time": float((minutes[at[index]] + 1) * MINUTE),
        "visitors": answered.tolist(),
        "satisfied": satisfied.tolist(),
        "differences": [
            {"estimate": float(one.estimate[index]), "low": float(one.low[index]), "high": float(one.high[index])}
            if one.visitors[index]
            else None
            for one in compared
        ],
    }
