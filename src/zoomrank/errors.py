"""Exceptions of zoomrank.

All are `ZoomrankError`s and `ValueError`s; the message says what is wrong, the value, and what to do.
"""


class ZoomrankError(ValueError):
    """Base class of all errors of zoomrank."""


class TreeError(ZoomrankError):
    """The nodes do not form one rooted tree: a cycle, two roots, none, a parent that is not there."""


class EmptyCollectionError(ZoomrankError):
    """There is not a single document."""


class WidthError(ZoomrankError):
    """A width or edge length is not a finite non-negative number, grows downwards, or sits on a leaf."""


class MetricParameterError(ZoomrankError):
    """A parameter of a metric (base, constant, depth, branching) is outside its range."""


class MetricError(ZoomrankError):
    """Distances that are not a metric: not symmetric, zero off the diagonal, a broken triangle."""


class DuplicateDocumentError(ZoomrankError):
    """One document id stands for two documents, or a document is named twice."""


class UnknownDocumentError(ZoomrankError, KeyError):
    """A document id that the collection does not have."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would print the quoted repr


class TaxonomyError(ZoomrankError):
    """A taxonomy path that is empty, has an empty step, or is both a category and a document."""


class MeanError(ZoomrankError):
    """A mean relevance outside the range that is needed here, or of the wrong length."""


class ContinuityError(ZoomrankError):
    """A function that should be L-continuous is not."""


class MutationError(ZoomrankError):
    """Mutation probabilities outside [0, 1], or against one of the two conditions of Section 3.1."""


class WeightError(ZoomrankError):
    """Weights of users or of mixture components that are not a probability distribution."""


class SlotsError(ZoomrankError):
    """Fewer than one slot, or more slots than documents."""


class ImpossibleEventError(ZoomrankError):
    """A question about visitors that do not exist: no visitor skips all these documents."""


class SearchTooLargeError(ZoomrankError):
    """An exhaustive search would take too long."""


class ParameterError(ZoomrankError):
    """A parameter is outside its range."""


class ExplorationError(ZoomrankError):
    """An exploration constant that is not positive, or an unknown name."""


class HorizonError(ZoomrankError):
    """A learner that needs a horizon was given none."""


class FeedbackError(ZoomrankError):
    """Feedback that does not fit: for another ranker's ranking, or a click outside the list."""


class RepeatedFeedbackError(FeedbackError):
    """Feedback for a ranking that has had its feedback already."""


class CannotTellError(ZoomrankError):
    """A log that cannot answer the question; the message says why, and what to do."""


class CatalogueError(ZoomrankError):
    """An unknown name of a figure, a ranker, or visitors."""


class ResultsError(ZoomrankError):
    """A folder of results that cannot be used: of another version, of other settings, or not one at all."""


class RunnerError(ZoomrankError):
    """Runs could not be carried out: no cluster at this address, a worker that dies again and again."""


class FileFormatError(ZoomrankError):
    """A file that zoomrank did not write, wrote in another version, or that is damaged."""


class SourceError(ZoomrankError):
    """A file of documents that cannot be read: missing, empty, or without a column that is needed."""


class MissingExtraError(ZoomrankError, ImportError):
    """An optional package is missing; the message says how to install it."""


class VectorError(ZoomrankError):
    """Vectors that cannot place documents: not a matrix, not finite, or without a direction."""


class TextError(ZoomrankError):
    """Texts that cannot place documents: not strings, or all of them empty."""


class ChangeError(ZoomrankError):
    """A change to a collection that cannot be made; `change` is its place in the batch, from 0."""

    def __init__(self, message: str, change: int | None = None) -> None:
        super().__init__(message)
        self.change = change
