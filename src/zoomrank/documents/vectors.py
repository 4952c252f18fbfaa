"""Vectors from texts: n-grams, weighted by rarity (TF-IDF), reduced to a few hundred directions.

N-grams of three to five letters need no dictionary, no word boundaries and no stemming, so they serve any language.
Texts about the same things then point in similar directions. Where synonyms matter more than spelling, use a static
embedding model: `pieces="meanings"`, with the extra `zoomrank[embeddings]`.

`VectorRows` reads the rows of any matrix of vectors: checked once, in blocks, and normalised to length 1 if wanted. A
million vectors of 256 numbers are a gigabyte, often mapped from a file, so nothing copies the whole matrix.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from zoomrank.errors import EmptyCollectionError, MissingExtraError, ParameterError, TextError, VectorError
from zoomrank.types import Array, whole_number

LARGEST_VOCABULARY = 1 << 18


def text_vectors(
    texts: Sequence[str],
    *,
    dimensions: int = 128,
    pieces: str = "letters",
    lengths: tuple[int, int] | None = None,
    seed: int = 0,
) -> tuple[Array, Array]:
    """Make a vector of length 1 of each text, similar for texts about the same things.

    Parameters
    ----------
    texts : sequence of str
        The texts.
    dimensions : int
        Number of dimensions.
    pieces : {"letters", "words", "meanings"}
        Features of texts: n-grams of letters, n-grams of words, or the word embeddings of a model, in 256 dimensions
        (with the extra `zoomrank[embeddings]`).
    lengths : tuple of int, optional
        The shortest and the longest n-gram; by default 3 to 5 letters or 1 to 2 words.
    seed : int
        The seed of the random numbers.

    Returns
    -------
    vectors : ndarray
        A row for each text. Blank texts, and those without any n-gram, share a direction of their own.
    blank : ndarray of bool
        Which texts those are.

    Examples
    --------
    >>> vectors, blank = text_vectors(["a barn owl", "the barn owls", "pike in the lake", " "], dimensions=3)
    >>> vectors.shape, np.flatnonzero(blank).tolist()
    ((4, 4), [3])
    >>> bool(vectors[0] @ vectors[1] > vectors[0] @ vectors[2])
    True
    """
    if whole_number(dimensions, "dimensions") < 1:
        raise ParameterError(f"Texts cannot be placed in {dimensions} dimensions; ask for at least 1.")
    if pieces == "meanings":
        vectors = _meanings(_checked(texts))
        blank = np.linalg.norm(vectors, axis=1) < 1e-6
    else:
        counts = _weights(_checked(texts), pieces, lengths)
        blank = np.diff(counts.indptr) == 0
        vectors = _reduced(counts, dimensions, seed)
        lost = np.flatnonzero((np.linalg.norm(vectors, axis=1) < 1e-6) & ~blank)
        # Texts that the reduction lost, such as a few in another script, get random directions by content.
        used = np.unique(counts[lost].indices)
        directions = np.random.default_rng(seed).standard_normal((len(used), vectors.shape[1]))
        vectors[lost] = counts[lost][:, used] @ directions
    length = np.linalg.norm(vectors, axis=1)
    vectors /= np.where(blank, 1.0, length)[:, None]
    if blank.any():
        vectors[blank] = 0.0
        vectors = np.column_stack([vectors, blank])
    return vectors.astype(np.float32), blank


def _checked(texts: Sequence[str]) -> Sequence[str]:
    if isinstance(texts, str):
        raise TextError("Texts must be a sequence of strings, one for each document, not a single string.")
    if len(texts) == 0:
        raise EmptyCollectionError("There are no texts; a collection needs at least one document.")
    some = False
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TextError(
                f"Text number {number} is not a string but a {type(text).__name__}; give '' for an empty one."
            )
        some = some or bool(text.strip())
    if not some:
        raise TextError(f"All {len(texts)} texts are empty, so the documents cannot be distinguished.")
    return texts


def _meanings(texts: Sequence[str]) -> Array:
    """Return the mean embedding of each text's words. The model is part of its package: nothing is downloaded."""
    try:
        import wordllama
    except ImportError as error:
        raise MissingExtraError("Meanings need a model: pip install 'zoomrank[embeddings]'.") from error
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    said = np.array([bool(text.strip()) for text in texts])
    vectors = np.zeros((len(texts), 256), np.float32)
    vectors[said] = model.embed([text for text in texts if text.strip()])
    return vectors


def _weights(texts: Sequence[str], pieces: str, lengths: tuple[int, int] | None) -> Any:
    """Return the TF-IDF weights, a sparse row for each text."""
    counter, shortest = piece_counter(pieces, lengths), (lengths or _usual_lengths(pieces))[0]
    try:
        return counter.fit_transform(texts)
    except ValueError as error:  # raised by scikit-learn for an empty vocabulary
        raise TextError(
            f"No text has a single piece of {shortest} {pieces}, so they cannot be distinguished."
        ) from error


def _usual_lengths(pieces: str) -> tuple[int, int]:
    return (3, 5) if pieces == "letters" else (1, 2)


def piece_counter(pieces: str = "letters", lengths: tuple[int, int] | None = None) -> Any:
    """Return scikit-learn's TF-IDF vectoriser, with our settings."""
    try:
        from sklearn.feature_extraction.text import TfidfVectorizer
    except ImportError as error:
        raise MissingExtraError("Texts need scikit-learn: pip install 'zoomrank[documents]'.") from error
    if pieces not in ("letters", "words"):
        raise ParameterError(f'Texts are placed by pieces of "letters", "words" or "meanings", not by {pieces!r}.')
    letters = pieces == "letters"
    shortest, longest = lengths or _usual_lengths(pieces)
    if not 1 <= shortest <= longest:
        raise ParameterError(f"Pieces cannot have from {shortest} to {longest} {pieces}.")
    return TfidfVectorizer(
        analyzer="char_wb" if letters else "word",
        ngram_range=(shortest, longest),
        token_pattern=None if letters else r"(?u)\b\w+\b",
        max_features=LARGEST_VOCABULARY,
        sublinear_tf=True,
        dtype=np.float32,
    )


def _reduced(weights: Any, dimensions: int, seed: int) -> Array:
    from sklearn.decomposition import TruncatedSVD

    texts, vocabulary = weights.shape
    if vocabulary <= dimensions:
        return np.asarray(weights.toarray())
    with np.errstate(divide="ignore", invalid="ignore"):  # equal texts have no variance to explain
        svd = TruncatedSVD(min(dimensions, texts), n_iter=4, random_state=seed)
        return np.asarray(svd.fit_transform(weights))


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
