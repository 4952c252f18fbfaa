"""`Collection`: documents, their tree, and the vectors they were placed by.

A tree from a taxonomy or from vectors has distances between documents (its *geometry*). A ranker needs to know how much
their click probabilities may differ. One number relates the two, the scale: a subtree's width in click probability is
its geometric width times the scale, and never more than 1, since probabilities differ by no more. By default the scale
makes the whole collection exactly 1 wide; `calibration` estimates it from labels or clicks.

Documents of a taxonomy are placed below the category that their path names, or at the end of the path. Titles, urls and
texts come by id, or in the caller's order, and are kept in the order of the tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zoomrank.documents.clustering import (
    GivenIds,
    Progress,
    checked_distances,
    linked,
    tree_and_rows,
    tree_from_vectors,
)
from zoomrank.documents.source_files import PathLike, Table, is_text, read_table, read_taxonomy, read_vectors
from zoomrank.documents.vectors import VectorRows, text_vectors
from zoomrank.errors import DuplicateDocumentError, ParameterError, TaxonomyError, UnknownDocumentError, VectorError
from zoomrank.spaces.document_tree import DocumentTree
from zoomrank.spaces.ids import DocumentId, DocumentIds
from zoomrank.spaces.tree_shape import TaxonomyPath
from zoomrank.types import Array

Column = Sequence[str] | Mapping[DocumentId, str] | None  # in the order of the documents, or by id


@dataclass(frozen=True, slots=True)
class Document:
    """One document; unknown metadata is empty.

    Attributes
    ----------
    id : DocumentId
        Its id.
    title, url, text : str
        Its metadata, for people.
    """

    id: DocumentId
    title: str = ""
    url: str = ""
    text: str = ""


class Collection:
    """Documents in the order of the leaves of their tree.

    Build one by `from_taxonomy`, `from_vectors`, `from_texts` or `from_distances`, or load one by `load_collection`.

    Parameters
    ----------
    geometry : DocumentTree
        The tree with distances in units of their own.
    scale : float, optional
        Factor from widths of the geometry to differences of click probabilities. Without it the whole collection is 1
        wide.
    titles, urls, texts : sequence of str, optional
        Metadata of the documents, in the order of the tree.
    vectors : ndarray, optional
        A row for each document, in the order of the tree.
    notes : sequence of str
        Remarks for people on how documents were placed.

    Attributes
    ----------
    tree : DocumentTree
        The tree for rankers: the geometry in units of click probability.

    Examples
    --------
    >>> paths = {"owl": "Animals > Birds", "pike": "Animals > Fish"}
    >>> collection = Collection.from_taxonomy(paths, titles={"owl": "Owls"})
    >>> collection["owl"]
    Document(id='owl', title='Owls', url='', text='')
    >>> len(collection), collection.tree.distance("owl", "pike") == 0.837
    (2, True)
    """

    def __init__(
        self,
        geometry: DocumentTree,
        *,
        scale: float | None = None,
        titles: Sequence[str] | None = None,
        urls: Sequence[str] | None = None,
        texts: Sequence[str] | None = None,
        vectors: Array | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        widest = float(geometry.width[0])
        self.geometry = geometry
        self.scale = checked_scale(_whole(widest) if scale is None else scale)
        self.tree = geometry
        if self.scale != 1 or widest > 1:
            self.tree = geometry.with_width(np.minimum(1.0, self.scale * geometry.width))
        for name, column in (("titles", titles), ("urls", urls), ("texts", texts), ("vectors", vectors)):
            if column is not None and len(column) != len(geometry):
                raise UnknownDocumentError(f"{len(column)} {name} were given for {len(geometry)} documents.")
        self.titles, self.urls, self.texts = titles, urls, texts
        self.vectors = vectors
        self.notes = tuple(notes)

    @classmethod
    def from_taxonomy(
        cls,
        source: PathLike | Mapping[DocumentId, TaxonomyPath] | Iterable[TaxonomyPath],
        *,
        titles: Mapping[DocumentId, str] | None = None,
        urls: Mapping[DocumentId, str] | None = None,
        texts: Mapping[DocumentId, str] | None = None,
        columns: Mapping[str, str] | None = None,
        place: str | None = None,
        categories: str = "refuse",
        separator: str = " > ",
        epsilon: float = 0.837,
        scale: float | None = None,
    ) -> Collection:
        """Place documents by their taxonomy.

        Parameters
        ----------
        source : path-like, mapping or iterable
            A file (see `read_taxonomy`), a mapping {id: path}, or paths. A path is a string such as
            `"Animals > Birds"`, or a sequence of names.
        titles, urls, texts : mapping of str, optional
            Metadata of the documents, by id.
        columns : mapping of str to str, optional
            Unusual names of columns of the file, such as `{"id": "sku"}`.
        place : {"below", "end"}, optional
            With "below" documents hang below the category that their path names, as they do in a mapping or in a table
            with ids. With "end" the last step of a path is the document itself, as it is for bare paths and in a text
            file.
        categories : {"refuse", "skip"}
            Treatment of a document at the end of a path that is a category of others.
        separator : str
            Separator of the steps of a path.
        epsilon : float
            Factor by which widths shrink from level to level (see `DocumentTree.exponential`).
        scale : float, optional
            Factor of all widths; without it the whole collection is 1 wide.

        Returns
        -------
        Collection
            The documents in their tree.
        """
        table: Table
        if isinstance(source, str | os.PathLike):
            table = read_taxonomy(source, columns)
            usual = "end" if "id" not in table or is_text(source) else "below"
        elif isinstance(source, Mapping):
            table, usual = {"id": list(source), "path": list(source.values())}, "below"
        else:
            table, usual = {"path": list(source)}, "end"
        tree, table = taxonomy_tree(table, place or usual, separator, categories, epsilon)
        given = {"titles": titles, "urls": urls, "texts": texts}
        return cls(tree, scale=scale, **columns_by_id(given, table, tree.documents))

    @classmethod
    def from_vectors(
        cls,
        vectors: Array | PathLike,
        *,
        ids: GivenIds = None,
        titles: Column = None,
        urls: Column = None,
        texts: Column = None,
        columns: Mapping[str, str] | None = None,
        scale: float | None = None,
        normalise: bool = True,
        branching: int = 8,
        seed: int = 0,
        progress: Progress | None = None,
        keep_vectors: bool = True,
    ) -> Collection:
        """Place documents by their vectors.

        Parameters
        ----------
        vectors : ndarray or path-like
            A row for each document, or a `.npy` or Parquet file.
        ids : sequence of DocumentId, optional
            The ids of the documents in the order of the rows; without them those of the file, or else the numbers of
            the rows.
        titles, urls, texts : sequence or mapping of str, optional
            Metadata of the documents, in the same order, or by id.
        columns : mapping of str to str, optional
            Unusual names of columns of the file, such as `{"vector": "embedding"}`.
        scale : float, optional
            Factor of all widths; without it the whole collection is 1 wide.
        normalise : bool
            True: only the directions of the vectors count.
        branching : int
            Approximate number of parts into which a large subtree is split.
        seed : int
            Seed of the random numbers.
        progress : callable, optional
            Called now and then with the number of documents that are placed.
        keep_vectors : bool
            True: the collection keeps the vectors, which `nearest` needs.

        Returns
        -------
        Collection
            The documents in their tree.

        Examples
        --------
        >>> collection = Collection.from_vectors(np.eye(3)[[0, 1, 0]], ids=["a", "b", "c"])
        >>> collection.tree.distance("a", "c"), collection.tree.distance("a", "b")
        (0.0, 1.0)
        """
        table: Table = {}
        if isinstance(vectors, str | os.PathLike):
            vectors, table = read_vectors(vectors, columns)
        matrix = np.asarray(vectors)
        ids = table.get("id") if ids is None else ids
        if ids is not None:
            DocumentIds(len(matrix), ids)  # raises for a wrong number, or a duplicate, before the long work
        given = {"titles": titles, "urls": urls, "texts": texts}
        check_lengths(given, len(matrix))
        tree, rows = tree_from_vectors(
            matrix, ids, normalise=normalise, branching=branching, seed=seed, progress=progress
        )
        arranged = columns_in_order(given, table, rows, tree.documents)
        kept = VectorRows(matrix, normalise).take(rows) if keep_vectors else None
        return cls(tree, scale=scale, vectors=kept, **arranged)

    @classmethod
    def from_texts(
        cls,
        texts: Sequence[str] | PathLike,
        *,
        ids: GivenIds = None,
        titles: Column = None,
        urls: Column = None,
        columns: Mapping[str, str] | None = None,
        dimensions: int = 128,
        pieces: str = "letters",
        scale: float | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Collection:
        """Place documents by their words.

        Parameters
        ----------
        texts : sequence of str or path-like
            A text for each document, or a table with the columns id, title, url, text.
        ids : sequence of DocumentId, optional
            The ids of the documents in the order of the texts; without them those of the table, or else the numbers of
            the texts.
        titles, urls : sequence or mapping of str, optional
            Metadata of the documents, in the same order, or by id.
        columns : mapping of str to str, optional
            Unusual names of columns of the file, such as `{"text": "abstract"}`.
        dimensions : int
            Number of dimensions that texts are reduced to.
        pieces : {"letters", "words", "meanings"}
            Features by which texts are compared (see `text_vectors`).
        scale : float, optional
            Factor of all widths; without it the whole collection is 1 wide.
        seed : int
            Seed of the random numbers.
        progress : callable, optional
            Called now and then with the number of documents that are placed.

        Returns
        -------
        Collection
            The documents in their tree. Blank texts stand together, and a note says how many there are.

        Examples
        --------
        >>> collection = Collection.from_texts(["barn owl", "barn owls", "pike"], ids=[1, 2, 3])
        >>> collection.tree.distance(1, 2) < collection.tree.distance(1, 3)
        True
        """
        table: Table = {}
        if isinstance(texts, str | os.PathLike):
            table = read_table(texts, columns, needs=("text",))
            texts = table["text"]
        vectors, blank = text_vectors(texts, dimensions=dimensions, pieces=pieces, seed=seed)
        collection = cls.from_vectors(
            vectors,
            ids=table.get("id") if ids is None else ids,
            titles=table.get("title") if titles is None else titles,
            urls=table.get("url") if urls is None else urls,
            texts=texts,
            scale=scale,
            seed=seed,
            progress=progress,
        )
        if blank.any():
            note = f"{int(blank.sum())} of {len(blank)} texts are empty; they stand together, apart from all others."
            collection.notes = (note,)
        return collection

    @classmethod
    def from_distances(
        cls,
        matrix: Sequence[Sequence[float]] | Array,
        *,
        ids: GivenIds = None,
        titles: Column = None,
        urls: Column = None,
        texts: Column = None,
        scale: float | None = None,
    ) -> Collection:
        """Place documents by all distances between them. The triangle inequality is not required.

        Parameters
        ----------
        matrix : array-like
            The distance of each pair, in both directions.
        ids : sequence of DocumentId, optional
            The ids of the documents in the order of the rows; without them the numbers of the rows.
        titles, urls, texts : sequence or mapping of str, optional
            Metadata of the documents, in the same order, or by id.
        scale : float, optional
            Factor of all widths; without it the whole collection is 1 wide.

        Returns
        -------
        Collection
            The documents in their tree.

        Examples
        --------
        >>> Collection.from_distances([[0, 1, 4], [1, 0, 4], [4, 4, 0]], ids="abc").tree.distance("a", "b")
        0.25
        """
        import scipy.spatial.distance

        distances = checked_distances(matrix)
        if ids is not None:
            DocumentIds(len(distances), ids)
        given = {"titles": titles, "urls": urls, "texts": texts}
        check_lengths(given, len(distances))
        parents, widths = np.array([-1]), np.zeros(1)
        if len(distances) > 1:
            parents, widths = linked(scipy.spatial.distance.squareform(distances, checks=False))
        tree, rows = tree_and_rows(parents, widths, len(distances), ids)
        return cls(tree, scale=scale, **columns_in_order(given, {}, rows, tree.documents))

    def __len__(self) -> int:
        return len(self.tree)

    def __repr__(self) -> str:
        return f"Collection({len(self)} documents, {self.tree.nodes} nodes, depth {self.tree.depth})"

    def __contains__(self, document: object) -> bool:
        return document in self.tree.documents

    def __getitem__(self, document: DocumentId) -> Document:
        return self._document(self.tree.documents.position(document))

    def __iter__(self) -> Iterator[Document]:
        return (self._document(position) for position in range(len(self)))

    def restricted(self, ids: Iterable[DocumentId]) -> Collection:
        """Build the collection of some documents alone, as far from each other as they were.

        Parameters
        ----------
        ids : iterable of DocumentId
            The documents to keep, in any order.

        Returns
        -------
        Collection
            The smaller collection, with the same scale.
        """
        geometry = self.geometry.restricted(ids)
        kept = self.geometry.documents.positions(geometry.documents)
        columns = [None if column is None else [column[i] for i in kept] for column in self.columns]
        return self.replaced(geometry, columns, None if self.vectors is None else self.vectors[kept])

    def scaled(self, factor: float) -> Collection:
        """Build the same collection with all widths times a factor; 1 remains the largest.

        Parameters
        ----------
        factor : float
            The factor, such as `scale_from_labels` or `scale_from_clicks` estimate it.

        Returns
        -------
        Collection
            The same documents.
        """
        scale = self.scale * checked_scale(factor)
        return self.replaced(self.geometry, self.columns, self.vectors, scale)

    def grown(self, near: Mapping[DocumentId, DocumentId], documents: Iterable[Document] = ()) -> Collection:
        """Build the collection with more documents, each beside the one that it is near to.

        Rankers follow by `ranker.grow(collection.tree)` and keep all that they have learned.

        Parameters
        ----------
        near : mapping of DocumentId to DocumentId
            For each new document the present one that it is placed beside (see `nearest`).
        documents : iterable of Document
            Metadata of the new ones.

        Returns
        -------
        Collection
            The larger collection. Vectors are not kept, since the new documents have none.

        Examples
        --------
        >>> small = Collection.from_taxonomy({"owl": "Animals > Birds", "pike": "Animals > Fish"})
        >>> large = small.grown({"hen": "owl"}, [Document("hen", title="Hens")])
        >>> large["hen"].title, large.tree.name(large.tree.leaf("hen"))
        ('Hens', 'Animals > Birds > hen')
        """
        known = {document.id: document for document in (*self, *documents)}
        geometry = self.geometry.grown(near)
        unknown = [name for name in known if name not in geometry.documents]
        if unknown:
            raise UnknownDocumentError(f"{unknown[0]!r} is described, but `near` does not say where it belongs.")
        everything = [known.get(name, Document(name)) for name in geometry.documents]
        columns = [[getattr(document, name) for document in everything] for name in ("title", "url", "text")]
        grown = self.replaced(geometry, columns, None)
        grown.tree = self.tree.grown(near)  # the same widths; and it knows which tree it has grown from
        return grown

    def nearest(self, vector: Sequence[float] | Array) -> DocumentId:
        """Find the document whose vector is closest to another one in direction.

        Parameters
        ----------
        vector : sequence of float
            The vector to compare with, of as many numbers as those of the documents.

        Returns
        -------
        DocumentId
            The document.

        Examples
        --------
        >>> Collection.from_vectors(np.eye(3), ids=["a", "b", "c"]).nearest([0.1, 0.9, 0.2])
        'b'
        """
        if self.vectors is None:
            raise VectorError("This collection has no vectors; say near which document a new one belongs.")
        wanted = np.asarray(vector, dtype=np.float64)
        if wanted.shape != self.vectors.shape[1:] or not np.isfinite(wanted).all() or not wanted.any():
            raise VectorError(f"A vector of {self.vectors.shape[1]} finite numbers is needed, not all of them 0.")
        return self.tree.documents[int(np.argmax(self.vectors @ wanted))]

    def save(self, path: PathLike) -> None:
        """Write the collection to one file; it appears whole or not at all.

        Parameters
        ----------
        path : path-like
            The file, for `load_collection`.
        """
        from zoomrank.documents.collection_file import save

        save(self, path)

    @property
    def columns(self) -> tuple[Sequence[str] | None, ...]:
        """Titles, urls and texts, where there are any.

        Returns
        -------
        tuple of sequence of str or None
            Three columns, each in the order of the tree.
        """
        return self.titles, self.urls, self.texts

    def replaced(
        self,
        geometry: DocumentTree,
        columns: Sequence[Sequence[str] | None],
        vectors: Array | None,
        scale: float | None = None,
    ) -> Collection:
        """Build a collection with other documents, or another tree of the same, and the same scale and notes.

        Parameters
        ----------
        geometry : DocumentTree
            The tree.
        columns : sequence of sequence of str or None
            Titles, urls and texts, in the order of the tree.
        vectors : ndarray or None
            Vectors, in the order of the tree.
        scale : float, optional
            Another scale.

        Returns
        -------
        Collection
            The other collection.
        """
        named = dict(zip(("titles", "urls", "texts"), columns, strict=True))
        scale = self.scale if scale is None else scale
        return Collection(geometry, scale=scale, vectors=vectors, notes=self.notes, **named)

    def _document(self, position: int) -> Document:
        known = ("" if column is None else column[position] for column in self.columns)
        return Document(self.tree.documents[position], *known)


def checked_scale(scale: float) -> float:
    """Return the scale; raise if it is not a positive number."""
    if not 0 < scale < np.inf:
        raise ParameterError(f"A scale must be a positive number, not {scale}.")
    return float(scale)


def _whole(widest: float) -> float:
    """Return the scale that makes the whole collection 1 wide: rounding must not leave it a little narrower."""
    if widest <= 0:
        return 1.0
    scale = 1 / widest
    return scale if scale * widest >= 1 else float(np.nextafter(scale, np.inf))


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


def check_lengths(columns: Mapping[str, Column], documents: int) -> None:
    """Raise an error for a column that does not have one string for each document."""
    for name, column in columns.items():
        if isinstance(column, str):
            raise UnknownDocumentError(f"The {name} must be a sequence, one for each document, not a single string.")
        if column is not None and not isinstance(column, Mapping) and len(column) != documents:
            raise UnknownDocumentError(f"{len(column)} {name} were given for {documents} documents.")


def columns_in_order(columns: Mapping[str, Column], table: Table, rows: Array, ids: DocumentIds) -> dict[str, Any]:
    """Sort columns in the order of the leaves; those that the caller does not give may be in the table."""
    arranged: dict[str, list[str] | None] = {}
    for name, given in columns.items():
        column = table.get(name.removesuffix("s")) if given is None else given
        if column is None or isinstance(column, Mapping):
            arranged[name] = _by_id(name, column, ids)
        else:
            arranged[name] = [column[row] for row in rows]
    return arranged


def columns_by_id(
    columns: Mapping[str, Mapping[DocumentId, str] | None], table: Table, ids: DocumentIds
) -> dict[str, Any]:
    """Sort columns that are keyed by id in the order of the leaves; those not given may be in the table."""
    arranged = {}
    for name, given in columns.items():
        known = name.removesuffix("s")
        if given is None and known in table:
            given = dict(zip(table["id"], table[known], strict=True))
            given = {document: given[document] for document in ids}  # without the categories that are left out
        arranged[name] = _by_id(name, given, ids)
    return arranged


def _by_id(name: str, column: Mapping[DocumentId, str] | None, ids: DocumentIds) -> list[str] | None:
    if column is None:
        return None
    strange = next((document for document in column if document not in ids), None)
    if strange is not None:
        raise UnknownDocumentError(f"The {name} mention {strange!r}, which is not a document of this collection.")
    return [column.get(document, "") for document in ids]
