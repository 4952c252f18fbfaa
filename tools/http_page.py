"""MkDocs hook: the HTTP API, generated from the service's own OpenAPI document."""

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from zoomrank.service.server import make_server

PAGE = "reference/http.md"
_BEGINNING = """# The HTTP API

Generated from the OpenAPI document that a running service has at `/v1/openapi.json`; [Behind HTTP](../service.md) shows
how to use it. With keys, send `Authorization: Bearer KEY`. Any request may fail with {statuses}; then the response is
{error}: a word for programs and a sentence for people.

"""
_TYPES = {
    "string": "text",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "null": "null",
}

Schema = Mapping[str, Any]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the page."""
    files.append(File.generated(config, PAGE, content=page(document())))
    return files


def document() -> dict[str, Any]:
    """Return the OpenAPI document of a service, as it would serve it."""

    async def ask() -> Any:
        app: Any = server.config.app
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return (await client.get("/v1/openapi.json")).raise_for_status().json()

    with tempfile.TemporaryDirectory() as folder:
        server = make_server(Path(folder), port=0)
        try:
            return dict(asyncio.run(ask()))
        finally:
            server.listening.close()


def page(api: Mapping[str, Any]) -> str:
    """Return the page: all paths, then all models."""
    everywhere = _refused_everywhere(api)
    error = api["paths"]["/v1/feedback"]["post"]["responses"]["404"]["content"]["application/json"]["schema"]
    paths = (_way(path, method, way, everywhere) for path, method, way in _ways(api))
    models = (_model(name, schema) for name, schema in sorted(api["components"]["schemas"].items()))
    return "".join(
        [
            _BEGINNING.format(statuses=", ".join(sorted(everywhere)), error=_shape(error)),
            "## Paths\n\n",
            *paths,
            "## Requests and responses\n\nA field with a star may be left out.\n\n",
            *models,
        ]
    )


def _ways(api: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for path, methods in api["paths"].items():
        for method, way in methods.items():
            yield path, method.upper(), way


def _refused_everywhere(api: Mapping[str, Any]) -> set[str]:
    return set.intersection(*({status for status in way["responses"] if status >= "4"} for _, _, way in _ways(api)))


def _way(path: str, method: str, way: Mapping[str, Any], everywhere: set[str]) -> str:
    lines = [f"### {method} {path}", "", way.get("description", way.get("summary", "")), ""]
    if parameters := way.get("parameters"):
        lines += ["| parameter | where | what |", "|---|---|---|"]
        lines += [f"| `{one['name']}` | {one['in']} | {_about(one['schema'])} |" for one in parameters] + [""]
    for kind, content in way.get("requestBody", {}).get("content", {}).items():
        lines += [f"Send {_shape(content.get('schema', {})) or 'a file'} (`{kind}`).", ""]
    responses = way["responses"]
    good = [f"{status} {_content(response)}" for status, response in responses.items() if status < "4"]
    refusals = sorted(status for status in responses if status >= "4" and status not in everywhere)
    ending = f"  May also fail with {' and '.join(refusals)}." if refusals else ""
    return "\n".join([*lines, f"Responds with {', '.join(good)}.{ending}", "", ""])


def _content(response: Mapping[str, Any]) -> str:
    contents = response.get("content", {}).items()
    return " or ".join(sorted(_shape(content.get("schema", {})) or f"`{kind}`" for kind, content in contents))


def _model(name: str, schema: Schema) -> str:
    lines = [f"### {name} {{ #{name} }}", "", schema.get("description", ""), ""]
    if fields := schema.get("properties"):
        lines += ["| field | what |", "|---|---|"]
        needed = schema.get("required", ())
        lines += [f"| `{field}`{'' if field in needed else ' *'} | {_about(of)} |" for field, of in fields.items()]
    return "\n".join([*lines, "", ""])


def _about(schema: Schema) -> str:
    """Describe a value: its type, its bounds, and its default."""
    words = [_shape(schema)]
    default = schema.get("default")
    if default is not None and not isinstance(default, dict):
        words.append(f"{json.dumps(default)} by default")
    return ", ".join(words).replace("|", r"\|")


def _shape(schema: Schema) -> str:
    """Describe the type of a value and its bounds, in words."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        return ", or ".join(map(_shape, sorted(choices, key=lambda one: one.get("type") != "null")))
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"a list{_range(schema, 'minItems', 'maxItems', ' of ')}: {_shape(schema.get('items', {}))}"
    words = _TYPES.get(schema.get("type", ""), "anything" if schema else "")
    words += _range(schema, "minLength", "maxLength", ", ", " letters")
    words += _range(schema, "minimum", "maximum", ", ")
    return words + (f", matches `{schema['pattern']}`" if "pattern" in schema else "")


def _range(schema: Schema, least: str, most: str, before: str, after: str = "") -> str:
    low, high = schema.get(least), schema.get(most)
    if high is None or abs(high) >= 2**40:  # not a bound that matters in practice
        return f"{before}{low:,.0f} or more{after}" if low and abs(low) < 2**40 else ""
    return (
        f"{before}{low or 0:,.0f} to {high:,.0f}{after}" if low is not None else f"{before}at most {high:,.0f}{after}"
    )
