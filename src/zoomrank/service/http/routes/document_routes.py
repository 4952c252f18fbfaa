"""Routes that list, search and describe documents of a collection."""

from __future__ import annotations

import asyncio
from typing import Any

from fastapi import FastAPI

from zoomrank import wire
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data
from zoomrank.service.http.routes.parameters import (
    ANY_DOCUMENT,
    CollectionName,
    DocumentText,
    Limit,
    Offset,
    Search,
)


def add_documents(api: FastAPI, engine: Engine) -> None:
    """Add the routes."""
    find = engine.collections.find

    @api.get(wire.DOCUMENTS, response_model=wire.DocumentsResponse)
    async def documents(name: CollectionName, offset: Offset = 0, limit: Limit = 100, search: Search = "") -> Any:
        """Documents in the order of the tree, so that neighbours are alike: all, or those that have some letters in
        their title, id or address, in whatever case.
        """
        return await asyncio.to_thread(page_data.documents, find(name), offset, limit, search)

    @api.get(ANY_DOCUMENT, response_model=wire.DocumentInfo)
    async def document(name: CollectionName, document: DocumentText) -> Any:
        """One document, and in which queries it stands."""
        return await page_data.document(engine, find(name), document)
