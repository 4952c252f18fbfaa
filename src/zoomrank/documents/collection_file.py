"""Collections on disk: one file, mapped rather than read, validated before use. Never a pickle.

| bytes | content |
|---|---|
| 8 | `zoomdocs` |
| 4 | format version, little-endian like all numbers here |
| 8 | length of the header |
| 32 | SHA-256 of the header |
| … | header: JSON with scale, notes, size and SHA-256 of the body; type, shape and place of each array |
| … | body: the arrays, each at a multiple of 64 bytes, zeros between |

Arrays: `parent` and `width` of the nodes, breadth first (everything else about the tree follows from them), `vectors`,
and two for each of `ids`, `names`, `titles`, `urls`, `texts`: letters in UTF-8, and where each string ends.

Loading maps the file: the header is always checked, and so are the sizes and the tree; `verify=True` also reads the
whole body to compare its checksum. Temporary files without a name, and files in memory, can be written and loaded too.

A version of a collection is the same file with more arrays: the numbers of its documents and nodes (`edition.…`).
Such a file can be read as a collection as well, and the file of a collection as a first version.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import numpy as np

from zoomrank.documents.collection import Collection
from zoomrank.documents.source_files import PathLike
from zoomrank.documents.versions import CollectionVersion, RemovedDocuments
from zoomrank.errors import FileFormatError, SourceError, ZoomrankError
from zoomrank.files import atomic_file
from zoomrank.spaces.document_tree import DocumentTree
from zoomrank.spaces.ids import DocumentIds, PackedStrings
from zoomrank.spaces.tree_shape import shape_from_breadth_first
from zoomrank.types import Array

MAGIC = b"zoomdocs"
VERSION = 1
ALIGNMENT = 64
_PREFIX = struct.Struct("<8sIQ32s")
_TYPES = ("|u1", "<u4", "<i8", "<f4", "<f8")
_TYPE_OF = {  # of arrays, by their names or the last part of these
    **{"parent": ("<u4",), "width": ("<f8",), "vectors": ("<f4", "<f8"), "ids": ("<i8",)},
    **{"letters": ("|u1",), "ends": ("<i8",)},
}
_LONGEST_HEADER = 1 << 24
_PIECE = 1 << 24


def save(collection: Collection, path: PathLike) -> None:
    """Write a collection to a file; the file appears whole or not at all."""
    with atomic_file(path) as file:
        write(collection, file)


def write(
    collection: Collection,
    file: IO[bytes],
    more: Mapping[str, Array] | None = None,
    about: Mapping[str, Any] | None = None,
) -> None:
    """Write a collection to an open file, with more arrays, and more in its header, for readers who know of these."""
    everything = {**_arrays(collection), **(more or {})}
    arrays = {name: np.ascontiguousarray(array) for name, array in everything.items()}
    placed, size = [], 0
    for name, array in arrays.items():
        size += -size % ALIGNMENT
        placed.append({"name": name, "type": array.dtype.str, "shape": list(array.shape), "place": size})
        size += array.nbytes
    digest = hashlib.sha256()
    for piece in _pieces(arrays):
        digest.update(piece)
    header = json.dumps(
        {
            "scale": collection.scale,
            "notes": list(collection.notes),
            "body": size,
            "sha256": digest.hexdigest(),
            "arrays": placed,
            **(about or {}),
        }
    ).encode()
    header += b" " * (-(_PREFIX.size + len(header)) % ALIGNMENT)  # so that the body begins at a multiple of 64
    file.write(_PREFIX.pack(MAGIC, VERSION, len(header), hashlib.sha256(header).digest()) + header)
    for piece in _pieces(arrays):
        file.write(piece)


def load_collection(path: PathLike | IO[bytes], verify: bool = False) -> Collection:
    """Read a collection back; its arrays stay in the file until they are needed.

    Parameters
    ----------
    path : path-like or open file
        The file, as `Collection.save` wrote it. A binary file that is open is mapped as well, from its beginning, and
        may be closed or lose its name afterwards; a file that cannot be mapped, such as `io.BytesIO`, is read.
    verify : bool
        True: read every byte, compare the checksum, and check texts and vectors. The header and the tree are always
        checked.

    Returns
    -------
    Collection
        The collection.

    Examples
    --------
    >>> import os, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Collection.from_taxonomy(["Animals", "Plants"]).save(os.path.join(folder, "all"))
    ...     load_collection(os.path.join(folder, "all"), verify=True)
    ...     with open(os.path.join(folder, "all"), "rb") as file:
    ...         load_collection(file)
    Collection(2 documents, 3 nodes, depth 1)
    Collection(2 documents, 3 nodes, depth 1)
    """
    return loaded(path, verify)[0]


class LoadedFile(NamedTuple):
    """A collection, and everything else in its file."""

    collection: Collection
    header: dict[str, Any]
    arrays: dict[str, Array]


def loaded(path: PathLike | IO[bytes], verify: bool = False) -> LoadedFile:
    """Read a collection back with everything in its file."""
    if isinstance(path, str | os.PathLike):
        if not Path(path).is_file():
            raise SourceError(f"There is no file {path}.")
        with Path(path).open("rb") as file:
            return _loaded(file, str(path), verify)
    return _loaded(path, "This file", verify)


def _loaded(file: IO[bytes], path: str, verify: bool) -> LoadedFile:
    header, body = _opened(file, path)
    if verify:
        digest = hashlib.sha256()
        for start in range(0, len(body), _PIECE):
            digest.update(body[start : start + _PIECE].tobytes())
        if digest.hexdigest() != header["sha256"]:
            raise FileFormatError(f"{path} is damaged: the checksum of its body does not match.")
    try:
        arrays = dict(_mapped(header, body))
        columns = {name: strings_of(arrays, name) for name in ("titles", "urls", "texts")}
        tree = _tree(arrays)
        vectors = arrays.get("vectors")
        if verify:  # a client that alters a file computes its checksums again
            for strings in (tree.names, *columns.values()):
                if isinstance(strings, PackedStrings):
                    strings.checked()
            if vectors is not None and not all(np.isfinite(some).all() for some in np.array_split(vectors, 64)):
                raise FileFormatError("its vectors are not all finite.")
        collection = Collection(tree, scale=header["scale"], vectors=vectors, notes=header["notes"], **columns)
        return LoadedFile(collection, header, arrays)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        says = f": {error}" if isinstance(error, ZoomrankError) else "."
        raise FileFormatError(f"{path} is damaged{says}") from error


def _arrays(collection: Collection) -> dict[str, Array]:
    tree = collection.geometry
    arrays: dict[str, Array] = {
        "parent": tree.shape.parent.astype("<u4", copy=False),
        "width": tree.width.astype("<f8", copy=False),
    }
    ids = tree.documents.column
    if tree.documents.are_numbers:
        arrays["ids"] = np.asarray(ids, "<i8")
    elif isinstance(ids, PackedStrings) or all(isinstance(document, str) for document in ids):
        arrays |= packed_arrays("ids", cast("Sequence[str]", ids))
    else:
        raise FileFormatError("A collection can be saved if its ids are all strings or all whole numbers.")
    columns = {"names": tree.names, "titles": collection.titles, "urls": collection.urls, "texts": collection.texts}
    for name, column in columns.items():
        if column is not None:
            arrays |= packed_arrays(name, column)
    if collection.vectors is not None:
        little = collection.vectors.dtype.newbyteorder("<")
        arrays["vectors"] = collection.vectors.astype(little, copy=False)
    return arrays


def packed_arrays(name: str, strings: Sequence[str]) -> dict[str, Array]:
    """Return strings as two arrays of a file."""
    packed = strings if isinstance(strings, PackedStrings) else PackedStrings.packed(strings)
    return {f"{name}.letters": packed.letters, f"{name}.ends": packed.ends.astype("<i8", copy=False)}


def _pieces(arrays: Mapping[str, Array]) -> Iterator[Any]:
    """Yield the bytes of the body, piece by piece, without a copy."""
    size = 0
    for array in arrays.values():
        yield b"\0" * (-size % ALIGNMENT)
        size += -size % ALIGNMENT + array.nbytes
        if array.size:
            yield array.reshape(-1).view(np.uint8).data


def _opened(file: IO[bytes], path: str) -> tuple[dict[str, Any], Array]:
    """Return the header, checked, and the body, mapped and of the right size."""
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    prefix = file.read(_PREFIX.size)
    if len(prefix) < _PREFIX.size or prefix[:8] != MAGIC:
        raise FileFormatError(f"{path} is not a collection that zoomrank wrote.")
    _, version, length, digest = _PREFIX.unpack(prefix)
    if version > VERSION:
        raise FileFormatError(
            f"{path} has format version {version}, this zoomrank reads up to {VERSION}: a newer zoomrank wrote it."
        )
    if version < 1 or length > min(size, _LONGEST_HEADER):
        raise FileFormatError(f"{path} is damaged: its first bytes are invalid.")
    content = file.read(length)
    if hashlib.sha256(content).digest() != digest:
        raise FileFormatError(f"{path} is damaged: the checksum of its header does not match.")
    header: dict[str, Any] = json.loads(content)
    start = _PREFIX.size + length
    if size != start + header["body"]:
        raise FileFormatError(f"{path} is damaged: it has {size} bytes and should have {start + header['body']}.")
    try:
        return header, np.memmap(file, np.uint8, "r", offset=start, shape=(header["body"],))
    except io.UnsupportedOperation:  # it is in memory already, say
        file.seek(start)
        return header, np.frombuffer(file.read(header["body"]), np.uint8)


def _mapped(header: Mapping[str, Any], body: Array) -> Iterator[tuple[str, Array]]:
    """Yield the arrays, each a window into the file."""
    for entry in header["arrays"]:
        name, dtype, shape, place = entry["name"], entry["type"], tuple(entry["shape"]), entry["place"]
        wanted = _TYPE_OF.get(name, _TYPE_OF.get(name.rpartition(".")[2], _TYPES))
        if dtype not in wanted or min((place, *shape)) < 0 or place % ALIGNMENT:
            raise FileFormatError(f"the array {name!r} is of a kind that zoomrank does not write.")
        count = int(np.prod(shape, dtype=object))
        if place + count * np.dtype(dtype).itemsize > len(body):
            raise FileFormatError(f"the array {name!r} does not fit into it.")
        yield name, np.frombuffer(body, dtype, count, offset=place).reshape(shape)


def strings_of(arrays: Mapping[str, Array], name: str) -> PackedStrings | None:
    """Return the strings of a file by their name, if it has them."""
    if f"{name}.ends" not in arrays:
        return None
    letters, ends = arrays[f"{name}.letters"], arrays[f"{name}.ends"]
    if len(ends) == 0 or ends[0] != 0 or ends[-1] != len(letters) or (np.diff(ends) < 0).any():
        raise FileFormatError(f"the {name} do not end where they should.")
    return PackedStrings(letters, ends)


def _tree(arrays: Mapping[str, Array]) -> DocumentTree:
    parent, width = arrays["parent"], arrays["width"]
    nodes = np.arange(len(parent))
    if (
        len(parent) == 0
        or parent[0] != 0
        or (parent[1:] >= nodes[1:]).any()
        or (np.diff(parent[1:].astype(int)) < 0).any()
    ):
        raise FileFormatError("its nodes are not those of a tree.")
    child_start = (1 + np.searchsorted(parent[1:], np.arange(len(parent) + 1))).astype(np.uint32)
    shape = shape_from_breadth_first(parent, child_start)
    strings, names = strings_of(arrays, "ids"), strings_of(arrays, "names")
    ids = DocumentIds(len(shape.leaf), arrays["ids"] if strings is None else strings.checked())
    if names is not None and len(names) != len(parent):
        raise FileFormatError("its names are not one for each node.")
    return DocumentTree(shape, width, ids, names)


NUMBERS = ("documents", "nodes", "heirs", "marks")


def write_version(edition: CollectionVersion, file: IO[bytes]) -> None:
    """Write a version of a collection to an open file.

    Parameters
    ----------
    edition : CollectionVersion
        The version to write.
    file : open file
        A binary file.
    """
    gone = edition.gone
    arrays = {f"edition.{name}": getattr(edition, name) for name in NUMBERS}
    arrays["edition.gone"] = gone.numbers
    if isinstance(gone.ids, PackedStrings):
        arrays |= packed_arrays("edition.gone_ids", gone.ids)
    else:
        arrays["edition.gone_ids"] = gone.ids
    write(edition.collection, file, arrays, {"edition": {"ratio": edition.ratio}})


def load_version(path: PathLike | IO[bytes], verify: bool = False) -> CollectionVersion:
    """Read a version back, or a collection as a first version.

    Parameters
    ----------
    path : path-like or open file
        A file that `write_version` or `Collection.save` wrote.
    verify : bool
        True: read every byte and compare the checksum.

    Returns
    -------
    CollectionVersion
        The version.

    Examples
    --------
    >>> import io
    >>> from zoomrank.documents import Collection
    >>> file = io.BytesIO()
    >>> write_version(CollectionVersion.first(Collection.from_taxonomy(["Animals", "Plants"])), file)
    >>> load_version(file)
    CollectionVersion(2 documents, 0 gone)
    """
    collection, header, arrays = loaded(path, verify)
    if "edition" not in header:
        return CollectionVersion.first(collection)
    try:
        documents, nodes, heirs, marks = (arrays[f"edition.{name}"] for name in NUMBERS)
        strings = strings_of(arrays, "edition.gone_ids")
        gone = RemovedDocuments(arrays["edition.gone"], arrays["edition.gone_ids"] if strings is None else strings)
        edition = CollectionVersion(collection, documents, nodes, heirs, gone, marks, float(header["edition"]["ratio"]))
        _check(edition)
    except (KeyError, TypeError, ValueError) as error:
        says = f": {error}" if isinstance(error, FileFormatError) else "."
        raise FileFormatError(f"The file of this version is damaged{says}") from error
    return edition


def _check(edition: CollectionVersion) -> None:
    """Raise if numbers do not belong to this collection, or stand for two things."""
    tree, nodes, heirs = edition.collection.tree, edition.nodes, edition.heirs
    every = np.concatenate([edition.documents, edition.gone.numbers])
    fits = (
        (len(edition.documents), len(edition.marks), len(nodes)) == (len(tree), len(tree), tree.nodes)
        and len(edition.gone.ids) == len(edition.gone.numbers)
        and bool((np.bincount(every, minlength=len(every))[: len(every)] == 1).all())
        and max(int(nodes.max()), int(heirs.max(initial=0))) < len(heirs)
    )
    if fits:
        there = np.zeros(len(heirs), bool)
        there[nodes] = True
        fits = np.count_nonzero(there) == tree.nodes and bool(there[heirs].all())
    if not fits:
        raise FileFormatError("its numbers are not those of its documents and nodes.")
