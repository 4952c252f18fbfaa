"""Build a tree from taxonomy paths: "Animals > Birds > Owls" becomes a chain of nodes, shared where paths agree."""

from collections.abc import Iterable, Mapping, Sequence

from zoomrank.errors import DuplicateDocumentError, EmptyCollectionError, TaxonomyError
from zoomrank.spaces.ids import DocumentId

TaxonomyPath = str | Sequence[str]


def nodes_of_paths(
    paths: Mapping[DocumentId, TaxonomyPath] | Iterable[TaxonomyPath], separator: str, categories: str
) -> tuple[list[int], list[str], list[DocumentId]]:
    """Return the parent of each node, the name of each node, and the ids of the leaves in the order of their nodes."""
    if categories not in ("refuse", "skip"):
        raise TaxonomyError(f'categories must be "refuse" or "skip", not {categories!r}.')
    if not separator:
        raise TaxonomyError("The separator between the steps of a path must not be empty.")
    parents, names = [-1], [""]
    child: dict[tuple[int, str], int] = {}

    def grow(steps: Sequence[str]) -> int:
        node = 0
        for step in steps:
            if (node, step) not in child:
                child[node, step] = len(parents)
                parents.append(node)
                names.append(step)
            node = child[node, step]
        return node

    if isinstance(paths, Mapping):
        homes = {document: grow(steps_of(path, separator)) for document, path in paths.items()}
        for document, home in homes.items():
            parents.append(home)
            names.append(str(document))
        ids = list(homes)
    else:
        ids, nodes = [], []
        for path in paths:
            nodes.append(grow(steps_of(path, separator)))
            ids.append(path if isinstance(path, str) else tuple(path))
        ids = _documents_only(nodes, ids, set(parents), categories)
    if not ids:
        raise EmptyCollectionError("There are no documents among the paths.")
    return parents, names, ids


def _documents_only(
    nodes: Sequence[int], ids: Sequence[DocumentId], inner: set[int], categories: str
) -> list[DocumentId]:
    """Keep the ids whose node has no children, in the order of their nodes."""
    kept: dict[int, DocumentId] = {}
    for node, document in zip(nodes, ids, strict=True):
        if node in inner:
            if categories == "refuse":
                raise TaxonomyError(
                    f"{document!r} is a document and also a category of others. Leave categories out with "
                    'categories="skip", or give {id: path} to hang documents below any category.'
                )
            continue
        if node in kept:
            raise DuplicateDocumentError(f"The path {document!r} is given twice.")
        kept[node] = document
    return [kept[node] for node in sorted(kept)]


def steps_of(path: TaxonomyPath, separator: str = " > ") -> list[str]:
    """Return the names along a path, from the top."""
    steps = path.split(separator) if isinstance(path, str) else list(path)
    if not all(isinstance(step, str) for step in steps):
        raise TaxonomyError(f"The path {path!r} has a step that is not a string.")
    steps = [step.strip() for step in steps]
    if not steps or not all(steps):
        raise TaxonomyError(f"The path {path!r} has an empty step.")
    return steps
