"""Errors of the service: each has an HTTP status and a code that programs can read."""

from __future__ import annotations

from zoomrank.errors import ZoomrankError


class ServiceError(ZoomrankError):
    """A request that is rejected."""

    status, code = 400, "bad_request"


class NotFoundError(ServiceError):
    """No such collection, query or impression."""

    status, code = 404, "unknown"


class ExistsError(ServiceError):
    """A collection of this name exists already."""

    status, code = 409, "exists"


class ContradictionError(ServiceError):
    """The impression already has different feedback."""

    status, code = 409, "contradiction"


class ExpiredError(ServiceError):
    """The feedback is too late."""

    status, code = 410, "expired"


class VoidedError(ServiceError):
    """The impression was voided."""

    status, code = 410, "voided"


class KeyReusedError(ServiceError):
    """The idempotency key was used for another request."""

    status, code = 422, "key_reused"


class QuotaExceededError(ServiceError):
    """More new queries than the quota allows."""

    status, code = 429, "too_many"


class MalformedError(ServiceError):
    """The request is malformed."""

    status, code = 422, "malformed"


class UnprocessableError(ServiceError):
    """The request is well formed but cannot be carried out."""

    status, code = 422, "unusable"


class MissingKeyError(ServiceError):
    """The API key is missing or unknown."""

    status, code = 401, "missing_key"


class ForbiddenError(ServiceError):
    """The API key does not permit this."""

    status, code = 403, "forbidden"


class BodyTooLargeError(ServiceError):
    """The body exceeds the size limit."""

    status, code = 413, "too_large"


class MediaTypeError(ServiceError):
    """The media type of the body is not supported."""

    status, code = 415, "media"


class StorageError(ServiceError):
    """Nothing could be stored, so nothing was done."""

    status, code = 503, "storage"


class StoppingError(StorageError):
    """The service is shutting down and starts nothing new."""

    def __init__(self) -> None:
        super().__init__("The service is stopping.")


class DamagedError(StorageError):
    """Stored data is damaged."""


class NotOwnerError(StorageError):
    """Another replica owns this partition."""

    status, code = 421, "elsewhere"

    def __init__(self) -> None:
        super().__init__("Another replica owns this partition now: retry.")


class FencedError(StorageError):
    """Another replica has taken over the partition, so nothing was written."""

    def __init__(self) -> None:
        super().__init__("Nothing was written: another replica has taken over this partition. Retry.")


class RemoteError(ServiceError):
    """An error that another replica returned."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
