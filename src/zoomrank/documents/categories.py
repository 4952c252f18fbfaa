"""Trees from taxonomies: documents are placed below the category that their path names, or at the end of the path."""

from __future__ import annotations

from zoomrank.documents.source_files import Table
from zoomrank.errors import DuplicateDocumentError, TaxonomyError
from zoomrank.spaces.trees.document_tree import DocumentTree


def taxonomy_tree(
    table: Table, place: str, separator: str, categories: str, epsilon: float
) -> tuple[DocumentTree, Table]:
    """Build the tree of a taxonomy; return it with the table, which gets an id for each path, perhaps a title."""
    if place not in ("below", "end"):
        raise TaxonomyError(f'place is {place!r}; it must be "below" a category or at the "end" of a path.')
    paths = [path if isinstance(path, str) else tuple(path) for path in table["path"]]
    table = {"id": paths, **table}
    if place == "below":
        homes = dict(zip(table["id"], paths, strict=True))
        if len(homes) < len(paths):
            raise DuplicateDocumentError("A path is given twice; give documents below one category ids of their own.")
        return DocumentTree.from_paths(homes, separator=separator, epsilon=epsilon), table
    tree = DocumentTree.from_paths(paths, separator=separator, categories=categories, epsilon=epsilon)
    called = dict(zip(paths, table["id"], strict=True))
    last = [(path.split(separator) if isinstance(path, str) else path)[-1].strip() for path in paths]
    return tree.with_documents([called[path] for path in tree.documents]), {"title": last, **table}
