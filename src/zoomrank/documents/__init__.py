"""Your own documents: from a taxonomy, vectors, texts or distances to a tree that rankers can learn on."""

from zoomrank.documents.click_calibration import predictive_power_from_clicks, scale_from_clicks
from zoomrank.documents.click_log import ClickLog, read_clicks
from zoomrank.documents.clustering import tree_from_vectors
from zoomrank.documents.collection import Collection, Document
from zoomrank.documents.collection_file import load_collection
from zoomrank.documents.edition_file import load_version, write_version
from zoomrank.documents.editions import CollectionVersion, CrowdedPlace, RemovedDocuments
from zoomrank.documents.label_calibration import mean_relevance, predictive_power_from_labels, scale_from_labels
from zoomrank.documents.logged_impressions import read_impressions
from zoomrank.documents.source_files import read_table, read_taxonomy, read_vectors
from zoomrank.documents.texts import text_vectors

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
