"""`CollectionBuilder`: builds collection files from uploads without blocking requests: small ones in a thread, large
ones in a separate process, one at a time. Changes of a collection are read here, too: one JSON document, or a line of
JSON for each change.
"""

from __future__ import annotations

import asyncio
import io
import json
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from pydantic import BaseModel, TypeAdapter

from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.catalogue.version_history import temp_file
from zoomrank.service.catalogue_updates import MOST_AT_ONCE
from zoomrank.service.errors import RemoteError, StoppingError, StorageError
from zoomrank.service.http import schema
from zoomrank.service.http.builder_process import INVALID_UPLOAD, UploadedCollection, make
from zoomrank.service.http.fast_path import validated

LARGE = 2**18  # bytes of JSON: parsing blocks all threads, about 0.1 s per megabyte
_AT_ONCE = 2**20  # bytes per write
_COMMAND = [sys.executable, "-m", "zoomrank.service.http.builder_process"]

_log = logging.getLogger(__name__)


class CollectionBuilder:
    """Builds anonymous collection files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._one_at_a_time = asyncio.Lock()
        self._starting = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = False

    async def received(self, pieces: AsyncIterable[bytes]) -> IO[bytes]:
        """Receive an upload into a file."""
        try:
            file = await asyncio.to_thread(temp_file, self._folder)
            try:
                gathered = bytearray()
                async for piece in pieces:
                    gathered += piece
                    if len(gathered) >= _AT_ONCE:
                        await asyncio.to_thread(file.write, bytes(gathered))
                        gathered.clear()
                await asyncio.to_thread(_finish, file, bytes(gathered))
            except BaseException:
                file.close()
                raise
        except OSError as error:
            raise _not_kept(error) from error
        return file

    async def make(self, body: IO[bytes]) -> tuple[UploadedCollection, IO[bytes]]:
        """Build a collection file from the JSON in a file; return it with the other data of the upload."""
        size = body.seek(0, os.SEEK_END)
        if size <= LARGE or isinstance(body, io.BytesIO):  # a memory file, which no other process can read
            return await asyncio.to_thread(self._into_a_file, lambda body, file: make(body.read(), file), body)
        async with self._one_at_a_time:
            return await asyncio.to_thread(self._into_a_file, self._make_elsewhere, body)

    def _into_a_file(self, how: Any, body: IO[bytes]) -> tuple[UploadedCollection, IO[bytes]]:
        try:
            body.seek(0)
            file = temp_file(self._folder)
            try:
                return how(body, file), file
            except BaseException:
                file.close()
                raise
        except OSError as error:
            raise _not_kept(error) from error

    def _make_elsewhere(self, body: IO[bytes], file: IO[bytes]) -> UploadedCollection:
        process = self._started(body, file)
        said = process.communicate()[1].decode(errors="replace").strip()
        if self._stopped:
            raise StoppingError()
        if process.returncode not in (0, INVALID_UPLOAD):
            _log.error("The process that built a collection exited with status %d: %s", process.returncode, said)
            raise StorageError(
                f"The collection was not built: its process exited with status {process.returncode}. Check that there "
                "is enough memory, or build it elsewhere with Collection.save and PUT the file."
            )
        told = json.loads(said.rpartition("\n")[2])
        if process.returncode == INVALID_UPLOAD:
            raise RemoteError(**told)
        return UploadedCollection(told["name"], Settings.model_validate_json(told["settings"]))

    def _started(self, body: IO[bytes], file: IO[bytes]) -> subprocess.Popen[bytes]:
        with self._starting:
            if self._stopped:
                raise StoppingError()
            where = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "PYTHONSAFEPATH": "1"}
            self._process = subprocess.Popen(  # noqa: S603
                [*_COMMAND, str(os.getpid())],
                stdin=body,
                stdout=file,
                stderr=subprocess.PIPE,
                env=os.environ | where,
                start_new_session=True,  # Ctrl-C goes to the service, which stops it
            )
            return self._process

    def stop(self) -> None:
        """Cancel what is being built, and start nothing more."""
        with self._starting:
            self._stopped = True
            if self._process is not None:
                self._process.kill()


def _finish(file: IO[bytes], rest: bytes) -> None:
    file.write(rest)
    file.flush()


def _not_kept(error: OSError) -> StorageError:
    return StorageError(f"The collection was not stored: {error}.")


# Changes in the body of a request. Lines are read some thousand at a time; each such part is a revision of its own, so
# other changes need not wait for all of them.

LINES = "application/x-ndjson"
_MOST_BYTES = 2**23  # of the lines of one part

_DOCUMENT: TypeAdapter[schema.AddedDocument] = TypeAdapter(schema.AddedDocument)
_CHANGE: TypeAdapter[schema.Change] = TypeAdapter(schema.Change)


class ChangePart(NamedTuple):
    """Changes that are applied together, and the number of their first line."""

    changes: list[dict[str, Any]]
    line: int


def documents_in(body: IO[bytes], is_lines: bool, there: str) -> Iterator[ChangePart]:
    """Yield the documents of a body as changes that add them, or (`there`) change those that exist."""
    verb = "put" if there == "change" else "add"
    if is_lines:
        yield from _parts(body, _DOCUMENT, lambda one: _as_change(one, verb))
        return
    asked = _whole(body, schema.DocumentsRequest)
    yield ChangePart([_as_change(one, verb) for one in asked.documents], 0)


def changes_in(body: IO[bytes], is_lines: bool) -> Iterator[ChangePart]:
    """Yield the changes of a body."""
    if is_lines:
        yield from _parts(body, _CHANGE, _said)
        return
    yield ChangePart([_said(one) for one in _whole(body, schema.ChangesRequest).changes], 0)


def _as_change(document: schema.AddedDocument, verb: str) -> dict[str, Any]:
    said = _said(document)
    return {verb: said.pop("id"), **said}


def _said(one: BaseModel) -> dict[str, Any]:
    return one.model_dump(exclude_unset=True, exclude_none=True)


def _whole(body: IO[bytes], kind: Any) -> Any:
    body.seek(0)
    return validated(kind, body.read(), "body")


def _parts(body: IO[bytes], kind: TypeAdapter[Any], said: Any) -> Iterator[ChangePart]:
    body.seek(0)
    changes: list[dict[str, Any]] = []
    first, size = 1, 0
    for number, line in enumerate(body, 1):
        if not line.strip():
            continue
        if not changes:
            first = number
        changes.append(said(validated(kind, line, f"line {number}")))
        size += len(line)
        if len(changes) >= MOST_AT_ONCE or size >= _MOST_BYTES:
            yield ChangePart(changes, first)
            changes, size = [], 0
    if changes:
        yield ChangePart(changes, first)


def is_lines(content_type: str) -> bool:
    """Return whether a body has a line for each change."""
    return content_type.partition(";")[0].strip().lower() in (LINES, "application/jsonl", "application/x-jsonlines")
