"""Taxonomies of the user, stored as they came beside the rows of a study.

As for judged topics (`zoomrank.lab.registry`), the name of a stored file contains a fingerprint of its content.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from zoomrank.errors import TaxonomyError
from zoomrank.files import atomic_file
from zoomrank.lab.registry import WORLDS


@dataclass(frozen=True)
class Taxonomy:
    """A file with a path such as "Animals > Birds" in each line, as it was read."""

    name: str
    content: bytes


def read_taxonomy(path: Path) -> Taxonomy:
    """Read a taxonomy file."""
    try:
        return Taxonomy(path.name, path.read_bytes())
    except OSError as error:
        raise TaxonomyError(f"The taxonomy {path} cannot be read: {error}.") from error


def store_taxonomy(taxonomy: Taxonomy, path: Path) -> None:
    """Write the file of a taxonomy, unless it exists."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(taxonomy.content)


def taxonomy_file(taxonomy: Taxonomy) -> str:
    """Return the path of a stored taxonomy, relative to the folder of results; it keeps its name in a folder of its
    own.
    """
    digest = hashlib.sha256(taxonomy.content).hexdigest()[:12]
    return str(PurePosixPath(WORLDS, digest, taxonomy.name))
