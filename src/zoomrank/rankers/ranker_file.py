"""Rankers on disk: one compact file, verified by checksum before use. Never a pickle.

| bytes | what |
|---|---|
| 8 | `zoomrank` |
| 4 | format version, little-endian like all numbers here |
| 8 | length of the header |
| … | header: JSON with the ranker's class and parameters, its random generator, the tree it belongs to, the arrays |
| … | body: the arrays one after another, zlib-compressed |
| 32 | SHA-256 of everything before |

Counts mean the same in all versions, the bounds that follow from them do not: where another `Bandit.rule` computed
them, they are recomputed from the counts. Parameters that path zooming no longer has are left out; and before rule 3,
whose bounds fall faster, `growth` counted twice.

The tree is not in the file, since many rankers share one: a tree of `DocumentTree.exponential` is rebuilt from its
parameters, any other is passed to `load` and must have the same fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from zoomrank import bandits
from zoomrank.bandits import Bandit
from zoomrank.errors import FileFormatError
from zoomrank.files import atomic_file
from zoomrank.rankers.feedback import FeedbackReceived
from zoomrank.rankers.ranked import Ranked
from zoomrank.rankers.registry import ON_DISK
from zoomrank.spaces import DocumentTree
from zoomrank.types import Array

MAGIC = b"zoomrank"
VERSION = 1
PREFIX = struct.Struct("<8sIQ")
_BANDITS = {name: kind for name, kind in vars(bandits).items() if isinstance(kind, type) and issubclass(kind, Bandit)}
_OTHER_VERSION = "This ranker was saved by another version of zoomrank with a different {}"
_GONE = {"exchange", "margin"}  # parameters of path zooming in files of earlier versions
_FASTER = 3  # its rule since which bounds fall faster with visits, so that neglect has to count twice
_EFFORT = 1  # compression level: most of the gain, in a tenth of the time


def save(ranker: Ranked, path: str | os.PathLike[str]) -> None:
    """Write a ranker to a file, atomically."""
    content = to_bytes(ranker)
    with atomic_file(path) as file:
        file.write(content)


def load(path: str | os.PathLike[str], tree: DocumentTree | None = None) -> Ranked:
    """Load a ranker; it continues exactly where the saved one was.

    Parameters
    ----------
    path : str or path
        A file that `Ranked.save` wrote.
    tree : DocumentTree or None
        Tree of the ranker; None rebuilds a tree of `DocumentTree.exponential`.

    Returns
    -------
    Ranked
        A ranker of the class that was saved.

    Examples
    --------
    >>> import tempfile, zoomrank as zr
    >>> ranker = zr.ZoomRank(zr.DocumentTree.exponential(depth=4), slots=3, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     ranker.save(f"{folder}/ranker")
    ...     again = zr.load(f"{folder}/ranker")
    >>> again.rank().documents == ranker.rank().documents
    True
    """
    header, body = _read(Path(path).read_bytes(), path)
    return _restored(header, body, _bandit(header["bandit"], tree_of(header["tree"], tree)))


def to_bytes(ranker: Ranked) -> bytes:
    """Serialise a ranker as `save` does."""
    moves = {f"move {edition}": move for edition, move in enumerate(ranker.moves)}
    answered = np.frombuffer(bytes(ranker.answered.bits), dtype=np.uint8)
    arrays: dict[str, Array] = {**ranker.learned, **moves, "answered": answered}
    described = [  # a dtype by its name or, for records, that of each field
        [name, array.dtype.str if array.dtype.names is None else array.dtype.descr, list(array.shape)]
        for name, array in arrays.items()
    ]
    header = json.dumps(
        {
            "ranker": type(ranker).__name__,
            "bandit": _specification(ranker.bandit),
            "rule": ranker.bandit.rule,
            "slots": ranker.slots,
            "duplicates": ranker.duplicates,
            "name": ranker.name,
            "made": ranker.made,
            "editions": len(ranker.moves),
            "removed": [] if ranker.present is None else np.flatnonzero(~ranker.present.chosen).tolist(),
            "random": ranker.rng.bit_generator.state,
            "tree": {"fingerprint": ranker.tree.fingerprint, "recipe": ranker.tree.recipe},
            "arrays": described,
            **({"recomputed": True} if ranker.recomputed else {}),
        }
    ).encode()
    body = zlib.compress(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays.values()), _EFFORT)
    content = PREFIX.pack(MAGIC, VERSION, len(header)) + header + body
    return content + hashlib.sha256(content).digest()


def from_bytes(content: bytes, bandit: Bandit) -> Ranked:
    """Deserialise a ranker, with a bandit that many rankers share."""
    header, body = _read(content, "a ranker")
    tree_of(header["tree"], bandit.tree)
    if header["bandit"]["class"] == type(bandit).__name__:
        _check_compatible(type(bandit).__name__, header["bandit"], _specification(bandit))
    if header["bandit"] != _specification(bandit):
        raise FileFormatError(f"This ranker has another bandit, {header['bandit']}: load it with that one.")
    return _restored(header, body, bandit)


def _restored(header: dict[str, Any], body: bytes, bandit: Bandit) -> Ranked:
    kind = _known(ON_DISK, header["ranker"])
    if header["random"]["bit_generator"] != "PCG64":
        raise FileFormatError("This ranker has a random generator of an unknown kind.")
    ranker: Ranked = kind.__new__(kind)
    Ranked.__init__(ranker, bandit, header["slots"], duplicates=header["duplicates"])
    ranker.name, ranker.made = header["name"], header["made"]
    ranker.rng.bit_generator.state = header["random"]
    arrays: dict[str, Array] = {}
    at = 0
    for name, dtype, shape in header["arrays"]:
        kind = np.dtype(dtype if isinstance(dtype, str) else [(field, of) for field, of in dtype])
        size = int(np.prod(shape)) * kind.itemsize
        arrays[name] = np.frombuffer(body[at : at + size], dtype=kind).reshape(shape).copy()
        at += size
    if header["removed"]:
        ranker.remove(bandit.tree.documents.at(header["removed"]))
    ranker.moves = [arrays.pop(f"move {edition}") for edition in range(header["editions"])]
    ranker.answered = FeedbackReceived(arrays.pop("answered").tobytes())
    _check_compatible(type(bandit).__name__, arrays, ranker.learned)
    ranker.state = ranker.state._replace(**arrays)
    earlier = header.get("rule", 0) != bandit.rule
    ranker.recomputed = earlier or header.get("recomputed", False)
    if earlier:
        bandit.recompute(ranker.state)
    return ranker


def has_same_counts(content: bytes, ranker: Ranked) -> bool:
    """Return whether a serialised ranker whose bounds an earlier version computed has counted the same as a ranker."""
    there, here = from_bytes(content, ranker.bandit), ranker.learned
    same = (np.array_equal(there.learned[name], here[name]) for name in set(here) - ranker.bandit.derived)
    return there.recomputed and all(same)


def _read(content: bytes, path: str | os.PathLike[str]) -> tuple[dict[str, Any], bytes]:
    header, end = checked_header(content, MAGIC, VERSION, path)
    parameters = {name: value for name, value in header["bandit"].items() if name not in _GONE}
    if header.get("rule", 0) < _FASTER and "growth" in parameters:
        parameters["growth"] *= 2
    header["bandit"] = parameters
    return header, zlib.decompress(content[end:-32])


def checked_header(
    content: bytes, magic: bytes, version: int, path: str | os.PathLike[str]
) -> tuple[dict[str, Any], int]:
    """Verify a file; return its header and where that ends."""
    if len(content) < PREFIX.size + 32 or content[:8] != magic:
        raise FileFormatError(f"{path} was not written by zoomrank.")
    _, found, length = PREFIX.unpack_from(content)
    if found != version:
        raise FileFormatError(f"{path} has format version {found}; this zoomrank reads version {version}.")
    if hashlib.sha256(content[:-32]).digest() != content[-32:]:
        raise FileFormatError(f"{path} is damaged: its checksum is not that of its content.")
    end = PREFIX.size + length
    return json.loads(content[PREFIX.size : end]), end


def tree_of(wanted: dict[str, Any], tree: DocumentTree | None) -> DocumentTree:
    """Return the tree of a file: rebuilt, or the given one if it is the same."""
    if tree is None:
        if wanted["recipe"] is None:
            raise FileFormatError("This ranker's tree is not in its file: pass it, load(path, tree=...).")
        tree = DocumentTree.exponential(**wanted["recipe"])
    if tree.fingerprint != wanted["fingerprint"]:
        raise FileFormatError("This ranker belongs to another tree (documents, shape or widths differ): pass its own.")
    return tree


def _known(kinds: Mapping[str, Any], name: str) -> Any:
    """Return the class of this name, if it is one of ours."""
    if name not in kinds:
        raise FileFormatError(f"The file contains a {name}, unknown to this zoomrank: use the version that wrote it.")
    return kinds[name]


def _specification(bandit: Bandit) -> dict[str, Any]:
    settings = {
        name: _specification(value) if isinstance(value, Bandit) else value for name, value in bandit.settings.items()
    }
    return {"class": type(bandit).__name__, **settings}


def _bandit(specification: dict[str, Any], tree: DocumentTree) -> Bandit:
    settings = dict(specification)
    kind = _known(_BANDITS, settings.pop("class"))
    inner = settings.pop("bandit", None)
    try:
        made: Bandit = kind.rebuilt(tree, settings) if inner is None else kind(_bandit(inner, tree), **settings)
    except TypeError as error:  # an unknown parameter
        raise FileFormatError(f"{_OTHER_VERSION.format(kind.__name__)} ({error}).") from error
    _check_compatible(kind.__name__, specification, _specification(made))
    return made


def _check_compatible(learner: str, there: Iterable[str], wanted: Iterable[str]) -> None:
    """Raise an error if a learner of the same name had other arrays: its state would be misread."""
    strange = sorted(set(there) ^ set(wanted))
    if strange:
        raise FileFormatError(
            f"{_OTHER_VERSION.format(learner)}: they differ in {', '.join(strange)}. Train a new ranker."
        )
