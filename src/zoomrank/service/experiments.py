"""Experiments: visitors are split among arms, each with its own learners, to find out which arm satisfies more.

An arm is served like a collection: it has the documents of its home collection, its own settings, and learners that
learn from its visitors only; shared learners would make an arm look better or worse than it is. One arm may be the
collection as it is, with its existing learners.

A hash of the visitor's name determines the arm, so a visitor always gets the same one; without a name each impression
is a visitor. Each visitor counts once, with their first impression, because later behaviour depends on what was seen
before. Visitors in no arm, or in a stopped one, get the collection as it is and do not count.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from zoomrank.judging.comparison import LEVEL, Differences, difference
from zoomrank.service.catalogue.registry import CollectionRegistry
from zoomrank.service.catalogue.served_collection import ServedCollection
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.errors import ExistsError, NotFoundError, UnprocessableError
from zoomrank.service.learners.learner_events import LearnerEvents
from zoomrank.service.storage.events import MINUTE, ArmOutcome, ArmRef, StoredExperiment
from zoomrank.service.storage.store import EngineContext
from zoomrank.service.storage.store_reader import StoredCollection
from zoomrank.types import Array

Answer = TypeVar("Answer")

MOST_ARMS = 8
_ALL = 2**64  # number of hash values
_ROUNDING = 1e-9


@dataclass
class ExperimentArm:
    """One variant of a collection, shown to a share of the visitors."""

    name: str
    share: float
    served: ServedCollection
    stopped: float | None = None  # seconds since 1970


@dataclass
class CollectionExperiment:
    """Arms that are compared. The first is the baseline."""

    id: int
    name: str
    home: ServedCollection
    created: float
    salt: str
    arms: list[ExperimentArm]
    ended: float | None = None
    promoted: str | None = None  # name of the promoted arm

    def arm(self, name: str) -> ExperimentArm:
        """Return an arm by name."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        known = ", ".join(arm.name for arm in self.arms)
        raise NotFoundError(f"Experiment “{self.name}” has no arm “{name}”; it has {known}.")

    @property
    def needs_order(self) -> bool:
        """True if an arm shows the caller's order."""
        return any(arm.served.settings.shows == "order" and arm.stopped is None for arm in self.arms)

    def arm_of(self, digest: bytes) -> int | None:
        """Return the arm of a visitor; None: the collection as it is.

        Shares keep their places when an arm is stopped, so no visitor changes arms.
        """
        point, end = int.from_bytes(digest, "little") / _ALL, 0.0
        for number, arm in enumerate(self.arms):
            end += arm.share
            if point < end:
                return None if arm.stopped is not None else number
        return None

    @property
    def stored(self) -> StoredExperiment:
        """The row that is stored."""
        arms = [
            {"name": arm.name, "share": arm.share, "served": arm.served.id, "stopped": arm.stopped} for arm in self.arms
        ]
        content = json.dumps({"salt": self.salt, "arms": arms, "promoted": self.promoted})
        return StoredExperiment(self.id, self.home.id, self.name, self.created, self.ended, content)


class ArmSpec(NamedTuple):
    """Request for an arm; without settings it is the collection as it is."""

    name: str
    share: float
    settings: dict[str, Any] | None


class Assignment(NamedTuple):
    """The arm that serves a visitor, and where the visitor counts."""

    served: ServedCollection
    mark: ArmRef | None = None
    visitor: bytes | None = None  # digest of a named visitor who counts from now on


@dataclass
class _CollectionExperiments:
    """Experiments of one collection."""

    by_name: dict[str, CollectionExperiment] = field(default_factory=dict)
    running: CollectionExperiment | None = None


class ExperimentRegistry:
    """All experiments, the assignment of visitors, and changes to experiments."""

    def __init__(self, context: EngineContext, collections: CollectionRegistry, learner_events: LearnerEvents) -> None:
        self._store, self._ownership, self._now, _ = context
        self._collections = collections
        self._learner_events = learner_events
        self._last = 0
        self._of: dict[int, _CollectionExperiments] = {}
        self._changing = asyncio.Lock()  # one experiment is changed at a time

    def start(self) -> None:
        """Read all experiments from the store."""
        self._last = self._store.read.last("experiments")
        self.reload(self._store.read.experiments())

    def reload(self, kept: Sequence[StoredExperiment]) -> None:
        """Replace the experiments by the stored ones, which another replica may have changed."""
        self.continue_after(max((stored.id for stored in kept), default=0))
        found = [one for stored in kept if (one := self._read_back(stored)) is not None]
        self._of.clear()
        self._collections.arms.clear()
        for experiment in found:
            self._register(experiment)

    def continue_after(self, last: int) -> None:
        """Give only numbers greater than `last`, which another replica has used."""
        self._last = max(self._last, last)

    async def tidy(self) -> None:
        """Drop arms of experiments that were removed."""
        async with self._changing:
            for home in [one for one in self._collections.by_id.values() if one.home is one]:
                for arm in self._idle(home):
                    await self._drop(arm)

    # Assignment.

    async def assign(self, served: ServedCollection, visitor: str | None, has_order: bool) -> Assignment:
        """Assign a visitor of a collection to an arm if an experiment is running."""
        running = self._running(served)
        if running is None or not self._collections.serves(served):
            return Assignment(served)  # an arm asked for by name is served as it is
        if running.needs_order and not has_order:
            raise UnprocessableError(f"Experiment “{running.name}” has an arm that shows your own order: send `order`.")
        digest = visitor_digest(running.salt, visitor) if visitor is not None else secrets.token_bytes(8)
        number = running.arm_of(digest)
        if number is None:
            return Assignment(served)
        arm = running.arms[number].served
        if visitor is not None and not await self._is_new_visitor(running.id, digest):
            return Assignment(arm)
        mark = ArmRef(running.id, number)
        return Assignment(arm, mark, None if visitor is None or self._ownership.is_shared else digest)

    async def _is_new_visitor(self, experiment: int, visitor: bytes) -> bool:
        """Return whether a visitor is new. With several replicas the store decides."""
        if visitor in self._learner_events.counted[experiment]:
            return False
        if not self._ownership.is_shared:
            return True
        self._learner_events.counted[experiment].add(visitor)
        try:
            return await asyncio.to_thread(self._store.claim_visitor, experiment, visitor)
        except BaseException:  # the outcome of the write is unknown
            self._learner_events.counted[experiment].discard(visitor)
            raise

    def has_counted(self, assigned: Assignment) -> bool:
        """Return whether another ranking has counted the visitor of an assignment meanwhile."""
        return assigned.mark is not None and assigned.visitor in self._learner_events.counted[assigned.mark.experiment]

    def count(self, assigned: Assignment) -> None:
        """Record that a visitor counts, in the same write as their impression."""
        if assigned.mark is not None and assigned.visitor is not None:
            self._learner_events.counted[assigned.mark.experiment].add(assigned.visitor)
            self._learner_events.write_queue.batch.visitors.append((assigned.mark.experiment, assigned.visitor))

    # Lookup.

    def _running(self, served: ServedCollection) -> CollectionExperiment | None:
        known = self._of.get(served.home.id)
        return None if known is None else known.running

    def of(self, served: ServedCollection) -> list[CollectionExperiment]:
        """Return the experiments of a collection, newest first."""
        known = self._of.get(served.home.id)
        return [] if known is None else list(reversed(known.by_name.values()))

    def find(self, served: ServedCollection, name: str) -> CollectionExperiment:
        """Return an experiment by name."""
        for experiment in self.of(served):
            if experiment.name == name:
                return experiment
        raise NotFoundError(f"There is no experiment “{name}” in “{served.name}”.")

    # Changes.

    async def create(self, served: ServedCollection, name: str, asked: Sequence[ArmSpec]) -> CollectionExperiment:
        """Start an experiment. Like every change below it is completed even if the caller disconnects."""
        return await _whole(self._create(served, name, asked))

    async def _create(self, served: ServedCollection, name: str, asked: Sequence[ArmSpec]) -> CollectionExperiment:
        _check(asked)
        async with self._changing:
            served.check_exists()
            if any(one.name == name for one in self.of(served)):
                raise ExistsError(f"Experiment “{name}” exists already: use another name.")
            running = self._running(served)
            if running is not None:
                raise ExistsError(f"Experiment “{running.name}” is still running: stop it first.")
            chosen = [None if arm.settings is None else arm_settings(served, arm) for arm in asked]
            arms = await asyncio.to_thread(self._made, served, name, asked, chosen)
            self._last += 1
            experiment = CollectionExperiment(self._last, name, served.home, self._now(), secrets.token_hex(8), arms)
            new = [arm.served.stored for arm in arms if arm.served is not served]
            await asyncio.to_thread(self._store.add_experiment, experiment.stored, new)
            for arm in arms:
                if arm.served is not served:
                    self._collections.register(arm.served)
            self._register(experiment)
            return experiment

    async def stop(self, experiment: CollectionExperiment, arm: str | None = None) -> None:
        """Stop an arm, whose visitors then get the collection as it is, or the whole experiment."""
        await _whole(self._stop(experiment, arm))

    async def _stop(self, experiment: CollectionExperiment, arm: str | None) -> None:
        async with self._changing:
            if arm is not None:
                stopped = experiment.arm(arm)
                after = [replace(one, stopped=self._now()) if one is stopped else one for one in experiment.arms]
                await self._keep(experiment, replace(experiment, arms=after))
            elif experiment.ended is None:
                await self._keep(experiment, replace(experiment, ended=self._now()))

    async def promote(self, experiment: CollectionExperiment, name: str) -> None:
        """End an experiment, and let an arm with all its learners serve the collection from now on."""
        await _whole(self._promote(experiment, name))

    async def _promote(self, experiment: CollectionExperiment, name: str) -> None:
        async with self._changing:
            arm = experiment.arm(name)
            ended = self._now() if experiment.ended is None else experiment.ended
            await self._keep(experiment, replace(experiment, ended=ended, promoted=name), arm.served.id)
            self._collections.promote(arm.served)

    async def remove(self, experiment: CollectionExperiment) -> None:
        """Delete an ended experiment and the learners of arms that serve no visitors."""
        if experiment.ended is None:
            raise UnprocessableError(f"Experiment “{experiment.name}” is still running: stop it first.")
        await _whole(self._remove(experiment))

    async def _remove(self, experiment: CollectionExperiment) -> None:
        async with self._changing:
            await asyncio.to_thread(self._store.drop_experiment, experiment.id)  # its arms below, or by `tidy`
            del self._of[experiment.home.id].by_name[experiment.name]
            self._learner_events.counted.pop(experiment.id, None)
            for arm in self._idle(experiment.home):
                await self._drop(arm)

    async def forget(self, home: ServedCollection) -> None:
        """Drop the experiments of a collection that is being removed."""
        async with self._changing:
            known = self._of.pop(home.id, _CollectionExperiments())
            for experiment in known.by_name.values():
                await asyncio.to_thread(self._store.drop_experiment, experiment.id)
                self._learner_events.counted.pop(experiment.id, None)

    def _idle(self, home: ServedCollection) -> list[ServedCollection]:
        """Return arms of a collection that belong to no experiment and do not serve it."""
        known = {arm.served.id for one in self.of(home) for arm in one.arms}
        known.add(self._collections.by_name[home.stored.name].id)
        return [arm for arm in home.arms if arm.id not in known]

    async def _drop(self, arm: ServedCollection) -> None:
        arm.removed = True
        await self._learner_events.drop(arm.id)
        self._collections.forget_arm(arm)

    async def _keep(self, before: CollectionExperiment, after: CollectionExperiment, server: int | None = None) -> None:
        await asyncio.to_thread(self._store.change_experiment, after.stored, server)
        before.arms, before.ended, before.promoted = after.arms, after.ended, after.promoted
        known = self._of[before.home.id]
        if before.ended is not None and known.running is before:
            known.running = None

    def _register(self, experiment: CollectionExperiment) -> None:
        known = self._of.setdefault(experiment.home.id, _CollectionExperiments())
        known.by_name[experiment.name] = experiment
        for arm in experiment.arms:
            self._collections.arms[arm_name(experiment.home.name, experiment.name, arm.name)] = arm.served
        if experiment.ended is None:
            known.running = experiment
            if not self._ownership.is_shared:  # which knows better
                self._learner_events.counted[experiment.id] = set(self._store.read.visitors(experiment.id))

    def _read_back(self, stored: StoredExperiment) -> CollectionExperiment | None:
        """Return a stored experiment; None if it is being removed with its collection."""
        content, by_id = json.loads(stored.content), self._collections.by_id
        if not {stored.collection, *(arm["served"] for arm in content["arms"])} <= by_id.keys():
            return None
        arms = [
            ExperimentArm(arm["name"], arm["share"], by_id[arm["served"]], arm["stopped"]) for arm in content["arms"]
        ]
        home = by_id[stored.collection]
        return CollectionExperiment(
            stored.id, stored.name, home, stored.created, content["salt"], arms, stored.ended, content["promoted"]
        )

    def _made(
        self, served: ServedCollection, name: str, asked: Sequence[ArmSpec], chosen: Sequence[Settings | None]
    ) -> list[ExperimentArm]:
        """Build the requested arms, ready to be served."""
        home, made = served.home, []
        for arm, settings in zip(asked, chosen, strict=True):
            if settings is None:
                made.append(ExperimentArm(arm.name, arm.share, served))
                continue
            number = self._collections.next_number()
            called = arm_name(home.name, name, arm.name)
            stored = StoredCollection(number, called, self._now(), settings.model_dump_json(), home.id)
            new = ServedCollection(stored, settings, home.versions.for_arm(settings), home)
            made.append(ExperimentArm(arm.name, arm.share, new))
        return made


async def _whole(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Complete work even if the caller disconnects: memory and store would differ otherwise."""
    return await asyncio.shield(asyncio.create_task(work))


def arm_name(collection: str, experiment: str, arm: str) -> str:
    """Return the collection name of an arm.

    >>> arm_name("shop", "new", "B")
    'shop~new~B'
    """
    return f"{collection}~{experiment}~{arm}"


def visitor_digest(salt: str, visitor: str) -> bytes:
    """Return a visitor's position in an experiment, independent of that in any other experiment."""
    return hashlib.blake2b(f"{salt}/{visitor}".encode(), digest_size=8).digest()


def arm_settings(served: ServedCollection, arm: ArmSpec) -> Settings:
    """Return the settings of an arm: its collection's, overridden by its own."""
    own = dict(arm.settings or {})
    if "algorithm" in own and own["algorithm"] != served.settings.algorithm:
        own.setdefault("parameters", {})  # the collection's belong to another algorithm
    settings = Settings.model_validate(served.settings.model_dump() | own)
    settings.bandit(served.tree)  # raises if they do not fit
    return settings


def _check(arms: Sequence[ArmSpec]) -> None:
    """Raise unless the arms can be compared."""
    if not 2 <= len(arms) <= MOST_ARMS:
        raise UnprocessableError(f"An experiment needs 2 to {MOST_ARMS} arms, not {len(arms)}.")
    if len({arm.name for arm in arms}) < len(arms):
        raise UnprocessableError("Two arms have the same name: rename one.")
    total = sum(arm.share for arm in arms)
    if total > 1 + _ROUNDING:
        raise UnprocessableError(f"The shares of all arms sum to {total:g}, which is more than 1.")
    if sum(arm.settings is None for arm in arms) > 1:
        raise UnprocessableError(
            "Two arms have no settings, so both are the collection as it is: give one of them its own settings."
        )


# Results of an experiment: visitors and satisfied visitors per arm, and differences between arms. Visitors count in
# order of arrival, up to the first minute with a visitor whose outcome is still open. A click is reported at once and
# leaving often is not, so counting answers as they arrive would favour the arm whose visitors are quicker.

_MOST_POINTS = 150
Rows = Sequence[tuple[int, int, int, int]]  # minute, arm, outcome, count


def result(experiment: CollectionExperiment, rows: Rows) -> dict[str, Any]:
    """Return an experiment with its results, from the counts of its visitors' outcomes."""
    minutes, counts = _by_minute(rows, len(experiment.arms))
    open_ = counts[:, :, ArmOutcome.CAME] > counts[:, :, 1:].sum(axis=2)
    undecided = np.flatnonzero(open_.any(axis=1))
    known = int(undecided[0]) if len(undecided) else len(counts)  # minutes before the first with open outcomes
    came = counts[:, :, ArmOutcome.CAME].sum(axis=0)
    told = counts[:known]
    at = np.unique(np.linspace(0, known - 1, min(known, _MOST_POINTS)).round().astype(int))  # including the last
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
            "difference": None if number == 0 else _at(compared[number - 1], -1),
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


def _answered(counts: Array) -> Array:
    return np.asarray(counts[:, :, ArmOutcome.SATISFIED] + counts[:, :, ArmOutcome.LEFT])


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


def _at(compared: Differences, index: int) -> dict[str, float] | None:
    """Return a difference after one of the compared minutes; None without visitors."""
    if not compared.visitors[index:][:1].any():
        return None
    names = ("estimate", "low", "high")
    return {name: float(getattr(compared, name)[index]) for name in names}


def _point(minutes: Array, told: Array, compared: Sequence[Differences], at: Array, index: int) -> dict[str, Any]:
    """Return the state of the comparison after one minute."""
    until = at[index] + 1
    answered, satisfied = _answered(told)[:until].sum(axis=0), told[:until, :, ArmOutcome.SATISFIED].sum(axis=0)
    return {
        "time": float((minutes[at[index]] + 1) * MINUTE),
        "visitors": answered.tolist(),
        "satisfied": satisfied.tolist(),
        "differences": [_at(one, index) for one in compared],
    }
