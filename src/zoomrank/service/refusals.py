"""What the service refuses: each with the HTTP status that says so and a word that programs can read."""

from __future__ import annotations

from zoomrank.errors import ZoomrankError


class ServiceError(ZoomrankError):
    """A request that is refused."""

    status = 400
    code = "bad_request"


class NotFoundError(ServiceError):
    """No such collection, query or impression."""

    status = 404
    code = "unknown"


class ExistsError(ServiceError):
    """A collection of this name exists already."""

    status = 409
    code = "exists"


class ContradictionError(ServiceError):
    """The impression has had its feedback, and this is another."""

    status = 409
    code = "contradiction"


class ExpiredError(ServiceError):
    """The feedback comes too late."""

    status = 410
    code = "expired"


class VoidedError(ServiceError):
    """The impression was taken back."""

    status = 410
    code = "voided"


class KeyReusedError(ServiceError):
    """The key of another request."""

    status = 422
    code = "key_reused"


class TooManyError(ServiceError):
    """More new queries than are taken."""

    status = 429
    code = "too_many"


class MalformedError(ServiceError):
    """What was sent is not formed as it should be."""

    status = 422
    code = "malformed"


class UnusableError(ServiceError):
    """What was sent is well formed and cannot be done."""

    status = 422
    code = "unusable"


class MissingKeyError(ServiceError):
    """No key, or one that nobody has."""

    status = 401
    code = "missing_key"


class ForbiddenError(ServiceError):
    """A key that may not do this."""

    status = 403
    code = "forbidden"


class BodyTooLargeError(ServiceError):
    """More bytes than the service takes."""

    status = 413
    code = "too_large"


class MediaError(ServiceError):
    """A body of a kind that is not taken."""

    status = 415
    code = "media"


class StorageError(ServiceError):
    """Nothing could be written down, so nothing was done."""

    status = 503
    code = "storage"


class StoppingError(StorageError):
    """Nothing more is begun."""

    def __init__(self) -> None:
        super().__init__("The service is stopping.")


class DamagedError(StorageError):
    """What was written down is not what can be read."""


class ElsewhereError(StorageError):
    """Another process looks after this just now."""

    status = 421
    code = "elsewhere"

    def __init__(self) -> None:
        super().__init__("Another replica looks after this just now: ask again.")


class FencedError(StorageError):
    """Another process has taken over, so nothing was written down."""

    def __init__(self) -> None:
        super().__init__("Nothing was written down: another replica has taken this over. Ask again.")


class ReportedError(ServiceError):
    """What another process refused."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
