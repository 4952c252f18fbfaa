"""Signed names of impressions: they identify the learner and the time, and cannot be forged."""

from __future__ import annotations

import hashlib
import hmac
import re
from typing import NamedTuple

from zoomrank.service.refusals import NotFoundError
from zoomrank.service.storage.partitions import partition_in

_FORM = re.compile(r"([0-9a-f]{1,16})-([0-9a-f]{1,16})-([0-9a-f]{1,16})-([0-9a-f]{20})")


def partition_of_impression(name: str) -> int | None:
    """Return the partition in the name of an impression, without checking its signature; None if it is no such name.

    >>> partition_of_impression("3e4-0-18bcfe56800-0123456789abcdef0123")
    228
    """
    found = _FORM.fullmatch(name)
    return None if found is None else partition_in(int(found[1], 16))


class ImpressionId(NamedTuple):
    """A decoded impression name."""

    learner: int
    number: int
    time: float


class ImpressionSigner:
    """Signs impression names with the secret of the store."""

    def __init__(self, secret: str) -> None:
        self._secret = bytes.fromhex(secret)

    def name(self, learner: int, number: int, time: float) -> str:
        """Return the name that a visitor's page sends back with its feedback."""
        plain = f"{learner:x}-{number:x}-{round(time * 1000):x}"
        return f"{plain}-{self._signature(plain)}"

    def read(self, name: str) -> ImpressionId:
        """Return the impression of a name; raise unless it was signed by this store."""
        found = _FORM.fullmatch(name)
        if found is None or not hmac.compare_digest(self._signature(name.rpartition("-")[0]), found[4]):
            raise NotFoundError("Unknown impression: send the name that the ranking came with.")
        return ImpressionId(int(found[1], 16), int(found[2], 16), int(found[3], 16) / 1000)

    def _signature(self, plain: str) -> str:
        return hashlib.blake2b(plain.encode(), key=self._secret, digest_size=10).hexdigest()
