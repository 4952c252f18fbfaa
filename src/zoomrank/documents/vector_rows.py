"""Rows of a matrix of vectors: checked once, read in blocks, and normalised to length 1 if wanted.

A million vectors of 256 numbers are a gigabyte, often mapped from a file: nothing here copies the whole matrix.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from zoomrank.errors import EmptyCollectionError, VectorError
from zoomrank.numbers import Array

PIECE = 1 << 24  # numbers in memory at a time: 64 megabytes of float32


class VectorRows:
    """Vectors that are read by row number.

    >>> rows = VectorRows(np.array([[3.0, 4.0], [0.0, 2.0]]))
    >>> rows.take(np.array([0])).tolist()
    [[0.6, 0.8]]
    """

    def __init__(self, vectors: Array, normalise: bool = True) -> None:
        if vectors.ndim != 2 or vectors.dtype.kind not in "fiu":
            raise VectorError(
                f"Vectors must be the rows of a matrix of numbers, not an array of shape {vectors.shape} "
                f"and type {vectors.dtype}."
            )
        if len(vectors) == 0:
            raise EmptyCollectionError("There are no vectors; a collection needs at least one document.")
        if vectors.shape[1] == 0:
            raise VectorError("The vectors have no coordinates.")
        self.vectors = vectors
        self.normalise = normalise
        self.dtype = np.dtype(np.float64) if vectors.dtype == np.float64 else np.dtype(np.float32)
        self.piece = max(1, PIECE // vectors.shape[1])
        self.lengths = self._checked_lengths()

    def __len__(self) -> int:
        return len(self.vectors)

    def take(self, numbers: Array) -> Array:
        """Return a copy of the rows of these numbers, of length 1 if they are to be normalised."""
        block: Array = self.vectors[numbers].astype(self.dtype, copy=False)
        if self.normalise:
            block /= self.lengths[numbers, None]
        return block

    def pieces(self, numbers: Array) -> Iterator[tuple[int, Array]]:
        """Iterate over the rows of these numbers in blocks of bounded size, with the position of each block's first
        row.
        """
        for start in range(0, len(numbers), self.piece):
            yield start, self.take(numbers[start : start + self.piece])

    def _checked_lengths(self) -> Array:
        lengths = np.empty(len(self.vectors), self.dtype)
        limits = np.finfo(np.float64 if self.dtype == np.float64 else np.float32)
        ceiling = float(np.sqrt(limits.max)) / 8  # beyond this, a squared distance would overflow
        for start in range(0, len(lengths), self.piece):
            block = np.array(self.vectors[start : start + self.piece], np.float64)  # a copy, which is divided below
            largest = np.abs(block).max(axis=1)
            bounded = np.where(np.isfinite(largest) & (largest > 0), largest, 1.0)
            block /= bounded[:, None]  # so that no square overflows or vanishes
            length = bounded * np.sqrt(np.einsum("ij,ij->i", block, block))
            _fail(~np.isfinite(largest), start, "hold numbers that are not finite (NaN or infinity)")
            if self.normalise:
                tiny = largest < limits.tiny
                _fail(tiny, start, "are zero and have no direction; leave these documents out, or normalise=False")
            _fail(length > ceiling, start, f"are longer than {ceiling:.1g}, too long to compute distances")
            lengths[start : start + self.piece] = length
        return lengths


def _fail(bad: Array, start: int, says: str) -> None:
    """Raise an error for the rows that are marked; `start` is the number of the first."""
    found = np.flatnonzero(bad)
    if len(found):
        some = ", ".join(str(start + row) for row in found[:5]) + (", …" if len(found) > 5 else "")
        raise VectorError(
            f"{len(found)} of the vectors from row {start} to {start + len(bad) - 1} {says}: rows {some}."
        )
