"""One's own documents: from a taxonomy, vectors, texts or distances to a tree that rankers can learn on."""

from zoomrank.documents.click_calibration import power_of_neighbours, scale_from_clicks
from zoomrank.documents.click_log import ClickLog, read_clicks
from zoomrank.documents.clustering import tree_from_vectors
from zoomrank.documents.collection import Collection, Document
from zoomrank.documents.collection_file import load_collection
from zoomrank.documents.label_calibration import calibrated_scale, mean_relevance, predictive_power
from zoomrank.documents.reading import read_table, read_taxonomy, read_vectors
from zoomrank.documents.texts import text_vectors

__all__ = [
    "ClickLog",
    "Collection",
    "Document",
    "calibrated_scale",
    "load_collection",
    "mean_relevance",
    "power_of_neighbours",
    "predictive_power",
    "read_clicks",
    "read_table",
    "read_taxonomy",
    "read_vectors",
    "scale_from_clicks",
    "text_vectors",
    "tree_from_vectors",
]
