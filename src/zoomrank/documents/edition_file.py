"""Editions on disk: the file of a collection (`collection_file.py`), with the numbers of documents and nodes beside it.

Whoever reads the file as a collection finds the collection; a plain collection is a first edition.
"""

from __future__ import annotations

from typing import IO

from zoomrank.documents.editions import Edition
from zoomrank.documents.source_files import PathLike


def write_edition(edition: Edition, file: IO[bytes]) -> None:
    """Write an edition to a file that is open.

    Parameters
    ----------
    edition : Edition
        The edition.
    file : open file
        Where to.

    Examples
    --------
    >>> import io
    >>> from zoomrank.documents import Collection
    >>> write_edition(Edition.first(Collection.from_taxonomy(["Animals", "Plants"])), io.BytesIO())
    """
    raise NotImplementedError


def load_edition(path: PathLike | IO[bytes], verify: bool = False) -> Edition:
    """Read an edition back, or a collection as a first edition.

    Parameters
    ----------
    path : path-like or open file
        What `write_edition` or `Collection.save` wrote.
    verify : bool
        Whether to read every byte and compare the checksum.

    Returns
    -------
    Edition
        The edition.

    Examples
    --------
    >>> import io
    >>> from zoomrank.documents import Collection
    >>> file = io.BytesIO()
    >>> write_edition(Edition.first(Collection.from_taxonomy(["Animals", "Plants"])), file)
    >>> load_edition(file)
    Edition(2 documents, 0 gone)
    """
    from zoomrank.documents import load_collection

    return Edition.first(load_collection(path, verify=verify))
