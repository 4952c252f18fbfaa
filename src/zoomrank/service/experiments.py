"""Experiments: visitors are shared out among arms, each with learners of its own, to find out which satisfies more.

An arm is served like a collection: it has the documents of its home, settings of its own, and learners that nobody else
teaches, since an arm that learned from the others' clicks would look better, or worse, than it is. One arm may be the
collection as it is, with the learners that it has.

A visitor belongs to an arm by a hash of her name, so she meets the same one whenever she comes; without a name each
impression is a visitor. Each visitor counts once, by the first that she is shown: what she does later depends on what
she did before. Who falls in no arm, or in one that was stopped, meets the collection as it is, and does not count.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, TypeVar

from zoomrank.service.collection_registry import CollectionRegistry, rehearse
from zoomrank.service.ledger import Ledger
from zoomrank.service.ownership import Ownership
from zoomrank.service.refusals import ExistsError, NotFoundError, UnusableError
from zoomrank.service.served_collection import ServedCollection
from zoomrank.service.settings import Settings
from zoomrank.service.storage.events import Arm as Mark
from zoomrank.service.storage.experiment_rows import StoredExperiment
from zoomrank.service.storage.store import Store
from zoomrank.service.storage.store_reader import StoredCollection

Answer = TypeVar("Answer")

MOST_ARMS = 8
_ALL = 2**64  # hashes
_ROUNDING = 1e-9


@dataclass
class Arm:
    """What some of the visitors meet."""

    name: str
    share: float
    served: ServedCollection
    stopped: float | None = None  # seconds since 1970


@dataclass
class Experiment:
    """Arms that are compared. The first is the one that others are compared with."""

    id: int
    name: str
    home: ServedCollection
    created: float
    salt: str
    arms: list[Arm]
    ended: float | None = None
    promoted: str | None = None  # the arm that was

    def arm(self, name: str) -> Arm:
        """The arm of a name."""
        for arm in self.arms:
            if arm.name == name:
                return arm
        known = ", ".join(arm.name for arm in self.arms)
        raise NotFoundError(f"Experiment “{self.name}” has no arm “{name}”; it has {known}.")

    @property
    def wants_order(self) -> bool:
        """Whether an arm shows the order that the caller brings."""
        return any(arm.served.settings.shows == "order" and arm.stopped is None for arm in self.arms)

    def arm_of(self, digest: bytes) -> int | None:
        """The number of the arm that a visitor belongs to; None: she meets the collection as it is.

        Shares stay where they are when an arm is stopped, so that nobody changes arms.
        """
        point, end = int.from_bytes(digest, "little") / _ALL, 0.0
        for number, arm in enumerate(self.arms):
            end += arm.share
            if point < end:
                return None if arm.stopped is not None else number
        return None

    @property
    def stored(self) -> StoredExperiment:
        """As it is kept."""
        arms = [
            {"name": arm.name, "share": arm.share, "served": arm.served.id, "stopped": arm.stopped} for arm in self.arms
        ]
        content = json.dumps({"salt": self.salt, "arms": arms, "promoted": self.promoted})
        return StoredExperiment(self.id, self.home.id, self.name, self.created, self.ended, content)


class NewArm(NamedTuple):
    """An arm that is asked for; without settings it is the collection as it is."""

    name: str
    share: float
    settings: dict[str, Any] | None


class Assigned(NamedTuple):
    """What a visitor meets, and where she counts."""

    served: ServedCollection
    mark: Mark | None = None
    visitor: bytes | None = None  # who counts from now on, if she has a name


@dataclass
class _Experiments:
    """Those of one collection."""

    by_name: dict[str, Experiment] = field(default_factory=dict)
    running: Experiment | None = None


class Experiments:
    """All of them."""

    def __init__(
        self,
        store: Store,
        collections: CollectionRegistry,
        ledger: Ledger,
        now: Callable[[], float],
        ownership: Ownership,
    ) -> None:
        self._store = store
        self._collections = collections
        self._ledger = ledger
        self._now = now
        self._ownership = ownership
        self._last = 0
        self._of: dict[int, _Experiments] = {}
        self._changing = asyncio.Lock()  # one experiment is changed at a time

    def start(self) -> None:
        """Read all experiments from the store."""
        self._last = self._store.read.last("experiments")
        self.read_again(self._store.read.experiments())

    def read_again(self, kept: Sequence[StoredExperiment]) -> None:
        """Have the experiments that are kept, whoever has made them."""
        self.go_on_after(max((stored.id for stored in kept), default=0))
        found = [one for stored in kept if (one := self._read_back(stored)) is not None]
        self._of.clear()
        self._collections.arms.clear()
        for experiment in found:
            self._register(experiment)

    def go_on_after(self, last: int) -> None:
        """Give only numbers behind one that somebody else has given."""
        self._last = max(self._last, last)

    async def tidy(self) -> None:
        """Let go of arms of experiments that were removed."""
        async with self._changing:
            for home in [one for one in self._collections.by_id.values() if one.home is one]:
                for arm in self._idle(home):
                    await self._drop(arm)

    # Who meets what.

    async def assign(self, served: ServedCollection, visitor: str | None, has_order: bool) -> Assigned:
        """What a visitor of a collection meets, by its experiment, if one is going on."""
        running = self._running(served)
        if running is None or not self._collections.serves(served):
            return Assigned(served)  # whoever asks an arm by its name is shown that
        if running.wants_order and not has_order:
            raise UnusableError(f"Experiment “{running.name}” compares with the order that you have: send `order`.")
        digest = visitor_digest(running.salt, visitor) if visitor is not None else secrets.token_bytes(8)
        number = running.arm_of(digest)
        if number is None:
            return Assigned(served)
        arm = running.arms[number].served
        if visitor is not None and not await self._counts_from_now_on(running.id, digest):
            return Assigned(arm)
        mark = Mark(running.id, number)
        return Assigned(arm, mark, None if visitor is None or self._ownership.is_shared else digest)

    async def _counts_from_now_on(self, experiment: int, visitor: bytes) -> bool:
        """Whether a visitor has not been counted yet. Where others may meet her, too, the store decides."""
        if visitor in self._ledger.counted[experiment]:
            return False
        if not self._ownership.is_shared:
            return True
        self._ledger.counted[experiment].add(visitor)
        try:
            return await asyncio.to_thread(self._store.claim_visitor, experiment, visitor)
        except BaseException:  # nobody knows
            self._ledger.counted[experiment].discard(visitor)
            raise

    def count(self, assigned: Assigned) -> None:
        """Remember that a visitor counts, in the same write in which she is shown something."""
        if assigned.mark is not None and assigned.visitor is not None:
            self._ledger.counted[assigned.mark.experiment].add(assigned.visitor)
            self._ledger.journal.add_visitor(assigned.mark.experiment, assigned.visitor)

    # Which there are.

    def _running(self, served: ServedCollection) -> Experiment | None:
        known = self._of.get(served.home.id)
        return None if known is None else known.running

    def of(self, served: ServedCollection) -> list[Experiment]:
        """The experiments of a collection, the newest first."""
        known = self._of.get(served.home.id)
        return [] if known is None else list(reversed(known.by_name.values()))

    def find(self, served: ServedCollection, name: str) -> Experiment:
        """The experiment of a name."""
        for experiment in self.of(served):
            if experiment.name == name:
                return experiment
        raise NotFoundError(f"There is no experiment “{name}” in “{served.name}”.")

    # What becomes of them.

    async def create(self, served: ServedCollection, name: str, asked: Sequence[NewArm]) -> Experiment:
        """Begin an experiment. Once begun it is ended, whether or not somebody still waits: so is all below."""
        return await _whole(self._create(served, name, asked))

    async def _create(self, served: ServedCollection, name: str, asked: Sequence[NewArm]) -> Experiment:
        _check(asked)
        async with self._changing:
            served.check_there()
            if any(one.name == name for one in self.of(served)):
                raise ExistsError(f"There is an experiment “{name}” already: take another name.")
            running = self._running(served)
            if running is not None:
                raise ExistsError(f"Experiment “{running.name}” is going on: stop it first.")
            chosen = [None if arm.settings is None else arm_settings(served, arm) for arm in asked]
            arms = await asyncio.to_thread(self._made, served, name, asked, chosen)
            self._last += 1
            experiment = Experiment(self._last, name, served.home, self._now(), secrets.token_hex(8), arms)
            new = [arm.served.stored for arm in arms if arm.served is not served]
            await asyncio.to_thread(self._store.add_experiment, experiment.stored, new)
            for arm in arms:
                if arm.served is not served:
                    self._collections.register(arm.served)
            self._register(experiment)
            return experiment

    async def stop(self, experiment: Experiment, arm: str | None = None) -> None:
        """Stop an arm, whose visitors then meet the collection as it is; or the whole experiment."""
        await _whole(self._stop(experiment, arm))

    async def _stop(self, experiment: Experiment, arm: str | None) -> None:
        async with self._changing:
            if arm is not None:
                stopped = experiment.arm(arm)
                after = [replace(one, stopped=self._now()) if one is stopped else one for one in experiment.arms]
                await self._keep(experiment, replace(experiment, arms=after))
            elif experiment.ended is None:
                await self._keep(experiment, replace(experiment, ended=self._now()))

    async def promote(self, experiment: Experiment, name: str) -> None:
        """End an experiment, and have an arm serve the collection from now on, with all that it has learned."""
        await _whole(self._promote(experiment, name))

    async def _promote(self, experiment: Experiment, name: str) -> None:
        async with self._changing:
            arm = experiment.arm(name)
            ended = self._now() if experiment.ended is None else experiment.ended
            await self._keep(experiment, replace(experiment, ended=ended, promoted=name), arm.served.id)
            self._collections.promote(arm.served)

    async def remove(self, experiment: Experiment) -> None:
        """Let go of an experiment that has ended, and of the learners of its arms that serve nobody."""
        if experiment.ended is None:
            raise UnusableError(f"Experiment “{experiment.name}” is going on: stop it first.")
        await _whole(self._remove(experiment))

    async def _remove(self, experiment: Experiment) -> None:
        async with self._changing:
            await asyncio.to_thread(self._store.drop_experiment, experiment.id)  # its arms are let go of now, or later
            del self._of[experiment.home.id].by_name[experiment.name]
            self._ledger.counted.pop(experiment.id, None)
            for arm in self._idle(experiment.home):
                await self._drop(arm)

    async def forget(self, home: ServedCollection) -> None:
        """Let go of the experiments of a collection that is being removed."""
        async with self._changing:
            known = self._of.pop(home.id, _Experiments())
            for experiment in known.by_name.values():
                await asyncio.to_thread(self._store.drop_experiment, experiment.id)
                self._ledger.counted.pop(experiment.id, None)

    def _idle(self, home: ServedCollection) -> list[ServedCollection]:
        """The arms of a collection that no experiment has, and that do not serve it."""
        known = {arm.served.id for one in self.of(home) for arm in one.arms}
        known.add(self._collections.by_name[home.stored.name].id)
        return [arm for arm in home.arms if arm.id not in known]

    async def _drop(self, arm: ServedCollection) -> None:
        arm.removed = True
        await self._ledger.drop(arm.id)
        self._collections.forget_arm(arm)

    async def _keep(self, before: Experiment, after: Experiment, server: int | None = None) -> None:
        await asyncio.to_thread(self._store.change_experiment, after.stored, server)
        before.arms, before.ended, before.promoted = after.arms, after.ended, after.promoted
        known = self._of[before.home.id]
        if before.ended is not None and known.running is before:
            known.running = None

    def _register(self, experiment: Experiment) -> None:
        known = self._of.setdefault(experiment.home.id, _Experiments())
        known.by_name[experiment.name] = experiment
        for arm in experiment.arms:
            self._collections.arms[arm_name(experiment.home.name, experiment.name, arm.name)] = arm.served
        if experiment.ended is None:
            known.running = experiment
            if not self._ownership.is_shared:  # which knows better
                self._ledger.counted[experiment.id] = set(self._store.read.visitors(experiment.id))

    def _read_back(self, stored: StoredExperiment) -> Experiment | None:
        """An experiment that is kept; None if it is being removed with its collection."""
        content, by_id = json.loads(stored.content), self._collections.by_id
        if not {stored.collection, *(arm["served"] for arm in content["arms"])} <= by_id.keys():
            return None
        arms = [Arm(arm["name"], arm["share"], by_id[arm["served"]], arm["stopped"]) for arm in content["arms"]]
        home = by_id[stored.collection]
        return Experiment(
            stored.id, stored.name, home, stored.created, content["salt"], arms, stored.ended, content["promoted"]
        )

    def _made(
        self, served: ServedCollection, name: str, asked: Sequence[NewArm], chosen: Sequence[Settings | None]
    ) -> list[Arm]:
        """The arms that are asked for, ready to be served."""
        home, made = served.home, []
        for arm, settings in zip(asked, chosen, strict=True):
            if settings is None:
                made.append(Arm(arm.name, arm.share, served))
                continue
            number = self._collections.next_number()
            called = arm_name(home.name, name, arm.name)
            stored = StoredCollection(number, called, self._now(), settings.model_dump_json(), home.id)
            new = ServedCollection(stored, settings, home.editions.for_arm(settings), home)
            rehearse(new)
            made.append(Arm(arm.name, arm.share, new))
        return made


async def _whole(work: Coroutine[Any, Any, Answer]) -> Answer:
    """What is begun is ended: memory and store would differ if somebody hung up in between."""
    return await asyncio.shield(asyncio.create_task(work))


def arm_name(collection: str, experiment: str, arm: str) -> str:
    """What an arm is called among collections.

    >>> arm_name("shop", "new", "B")
    'shop~new~B'
    """
    return f"{collection}~{experiment}~{arm}"


def visitor_digest(salt: str, visitor: str) -> bytes:
    """Where a visitor stands in an experiment: in another one somewhere else, whatever she did in this."""
    return hashlib.blake2b(f"{salt}/{visitor}".encode(), digest_size=8).digest()


def arm_settings(served: ServedCollection, arm: NewArm) -> Settings:
    """The settings of an arm: those of its collection, but for what it has of its own."""
    own = dict(arm.settings or {})
    if "algorithm" in own and own["algorithm"] != served.settings.algorithm:
        own.setdefault("parameters", {})  # which are those of another algorithm
    settings = Settings.model_validate(served.settings.model_dump() | own)
    settings.bandit(served.tree)  # refused here if it cannot be
    return settings


def _check(arms: Sequence[NewArm]) -> None:
    """Refuse what cannot be compared."""
    if not 2 <= len(arms) <= MOST_ARMS:
        raise UnusableError(f"An experiment has 2 to {MOST_ARMS} arms, not {len(arms)}.")
    if len({arm.name for arm in arms}) < len(arms):
        raise UnusableError("Two arms have the same name.")
    total = sum(arm.share for arm in arms)
    if total > 1 + _ROUNDING:
        raise UnusableError(f"The shares of all arms come to {total:g}, which is more than 1.")
    if sum(arm.settings is None for arm in arms) > 1:
        raise UnusableError("Two arms are the collection as it is: give one of them settings of its own.")
