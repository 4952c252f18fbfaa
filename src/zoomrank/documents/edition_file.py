"""Versions on disk: the file of a collection (`collection_file.py`), with the numbers of documents and nodes beside it.

Such a file can be read as a collection as well; the file of a collection is read as a first version.
"""

from __future__ import annotations

from typing import IO

import numpy as np

from zoomrank.documents.collection_file import loaded, packed_arrays, strings_of, write
from zoomrank.documents.editions import CollectionVersion, RemovedDocuments
from zoomrank.documents.source_files import PathLike
from zoomrank.errors import FileFormatError
from zoomrank.spaces.packed_strings import PackedStrings

NUMBERS = ("documents", "nodes", "heirs", "marks")


def write_version(edition: CollectionVersion, file: IO[bytes]) -> None:
    """Write a version of a collection to an open file.

    Parameters
    ----------
    edition : Edition
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
    Edition
        The version.

    Examples
    --------
    >>> import io
    >>> from zoomrank.documents import Collection
    >>> file = io.BytesIO()
    >>> write_edition(Edition.first(Collection.from_taxonomy(["Animals", "Plants"])), file)
    >>> load_edition(file)
    Edition(2 documents, 0 gone)
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
