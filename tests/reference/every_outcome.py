"""All that can come of something that asks for random numbers, and how likely each of it is: by going through it again
and again, once for every way in which its questions to chance can be answered.
"""

from collections.abc import Callable, Hashable
from fractions import Fraction
from math import ceil, floor
from typing import Any, TypeVar, cast

import numpy as np

Outcome = TypeVar("Outcome", bound=Hashable)


class _Number:
    """What is known of a random number: the interval that it is in, where it is uniform."""

    def __init__(self, source: "_Source") -> None:
        self.source, self.low, self.high = source, Fraction(0), Fraction(1)


class Uniform:
    """`a · number + b`, of which only whole parts and comparisons are ever asked: answers narrow the number down."""

    def __init__(self, number: _Number, a: Fraction, b: Fraction) -> None:
        self.number, self.a, self.b = number, a, b

    def __mul__(self, by: float) -> "Uniform":
        return Uniform(self.number, self.a * Fraction(by), self.b * Fraction(by))

    def __truediv__(self, by: float) -> "Uniform":
        return Uniform(self.number, self.a / Fraction(by), self.b / Fraction(by))

    def __sub__(self, other: float) -> "Uniform":
        return Uniform(self.number, self.a, self.b - Fraction(other))

    def __int__(self) -> int:
        low, high = (self.a * end + self.b for end in (self.number.low, self.number.high))
        cells = list(range(floor(low), ceil(high)))
        parts = [(max(low, Fraction(cell)), min(high, Fraction(cell + 1))) for cell in cells]
        return cells[self._narrowed(parts)]

    def __lt__(self, other: float) -> bool:
        low, high = (self.a * end + self.b for end in (self.number.low, self.number.high))
        border = min(max(Fraction(other), low), high)
        return self._narrowed([(low, border), (border, high)]) == 0

    def __ge__(self, other: float) -> bool:
        return not self < other

    def _narrowed(self, parts: list[tuple[Fraction, Fraction]]) -> int:
        """Ask which part it is in."""
        whole = sum(end - start for start, end in parts)
        answer = self.number.source.ask([(end - start) / whole for start, end in parts])
        start, end = parts[answer]
        self.number.low, self.number.high = (start - self.b) / self.a, (end - self.b) / self.a
        return answer


class _Source:
    """Answers as a script says, and with the first thing that is possible where the script ends."""

    def __init__(self, script: list[int]) -> None:
        self.script, self.asked, self.chance = script, list[tuple[int, list[Fraction]]](), Fraction(1)

    def random(self) -> Uniform:
        return Uniform(_Number(self), Fraction(1), Fraction(0))

    def ask(self, chances: list[Fraction]) -> int:
        at = len(self.asked)
        answer = self.script[at] if at < len(self.script) else next(i for i, chance in enumerate(chances) if chance > 0)
        self.asked.append((answer, chances))
        self.chance *= chances[answer]
        return answer

    def next_script(self) -> list[int] | None:
        """The same answers but for the last that could be another."""
        while self.asked:
            answer, chances = self.asked.pop()
            for other in range(answer + 1, len(chances)):
                if chances[other] > 0:
                    return [told for told, _ in self.asked] + [other]
        return None


def every_outcome(run: Callable[[np.random.Generator], Outcome]) -> dict[Outcome, Fraction]:
    """What can come of it, and how likely that is; it may ask for `random()` alone."""
    found: dict[Outcome, Fraction] = {}
    script: list[int] | None = []
    while script is not None:
        source = _Source(script)
        outcome = run(cast(Any, source))
        found[outcome] = found.get(outcome, Fraction(0)) + source.chance
        script = source.next_script()
    return found
