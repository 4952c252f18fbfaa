"""`Held`: the partitions that this process looks after: all of them, unless it works with others (`membership`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from zoomrank.service.refusals import ElsewhereError
from zoomrank.service.storage.partitions import PARTITIONS


class Held:
    """Which there are."""

    def __init__(self, partitions: Iterable[int] = range(PARTITIONS)) -> None:
        self._held = set(partitions)
        self.is_valid: Callable[[], bool] = lambda: True  # whether nobody else can have them by now

    def __contains__(self, partition: int) -> bool:
        return partition in self._held and self.is_valid()

    def __len__(self) -> int:
        return len(self._held)

    def check(self, partition: int) -> None:
        """Refuse what another process looks after."""
        if partition not in self:
            raise ElsewhereError()

    def add(self, partitions: Iterable[int]) -> None:
        """Look after some more."""
        self._held.update(partitions)

    def remove(self, partitions: Iterable[int]) -> None:
        """Look after some no more."""
        self._held.difference_update(partitions)

    @property
    def partitions(self) -> frozenset[int]:
        """All of them."""
        return frozenset(self._held)
