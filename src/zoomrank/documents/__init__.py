"""Your own documents: from a taxonomy, vectors, texts or distances to a tree that rankers can learn on."""

from zoomrank.documents.calibration import (
    mean_relevance,
    predictive_power_from_clicks,
    predictive_power_from_labels,
    scale_from_clicks,
    scale_from_labels,
)
from zoomrank.documents.click_log import ClickLog, read_clicks, read_impressions
from zoomrank.documents.clustering import tree_from_vectors
from zoomrank.documents.collection import Collection, Document
from zoomrank.documents.collection_file import load_collection, load_version, write_version
from zoomrank.documents.source_files import read_table, read_taxonomy, read_vectors
from zoomrank.documents.vectors import text_vectors
from zoomrank.documents.versions import CollectionVersion, CrowdedPlace, RemovedDocuments

__all__ = [
    "ClickLog",
    "Collection",
    "CollectionVersion",
    "CrowdedPlace",
    "Document",
    "RemovedDocuments",
    "load_collection",
    "load_version",
    "mean_relevance",
    "predictive_power_from_clicks",
    "predictive_power_from_labels",
    "read_clicks",
    "read_impressions",
    "read_table",
    "read_taxonomy",
    "read_vectors",
    "scale_from_clicks",
    "scale_from_labels",
    "text_vectors",
    "tree_from_vectors",
    "write_version",
]
