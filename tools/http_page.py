"""MkDocs hook: the HTTP API and the settings, from the OpenAPI document and the class that checks settings."""

import asyncio
import json
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from zoomrank.rankers import registry
from zoomrank.service.catalogue.settings import Settings
from zoomrank.service.server import make_server

PAGE = "reference/http.md"
SETTINGS_PAGE = "reference/settings.md"
_BEGINNING = """# The HTTP API

Look up a path, its parameters and its responses. Generated from the OpenAPI document that a running service has at
`/v1/openapi.json`; [run the service](../how-to/run-the-service.md) shows the first requests. With keys, send
`Authorization: Bearer KEY`. `HEAD` works wherever `GET` does. Any request may fail with {statuses}. The response is
{error}, a code for programs and a sentence for people ([all codes](service-errors.md)).

"""
_SETTINGS = """# Settings of a collection

Look up what a setting does, which values it takes, and its default. Settings are given when a collection is made and
stay as they are; the arms of an [experiment](../how-to/run-an-experiment.md) may differ in some of them.

| setting | default | values | meaning |
|---|---|---|---|
"""
_AFTER_SETTINGS = """
`eligible` and `excluded` need one of {restrictable}. `parameters` are those of the ranker's class in
[zoomrank.rankers](rankers.md); an unknown name is rejected. [Limits](limits.md) hold for all collections.
"""
MEANING = {
    "algorithm": "the ranker of every query: [choose a ranker](../how-to/choose-a-ranker.md)",
    "parameters": "keyword arguments of that ranker",
    "slots": "documents in a ranking; a request may ask for fewer",
    "seed": "seed of the random numbers: the same seed and the same requests give the same rankings",
    "feedback_within": "feedback deadline, in seconds; an impression without feedback then ends as `no_feedback` says",
    "no_feedback": (
        "the meaning of no feedback: `abandoned` counts as a visit without a click; `unseen` does so only if "
        "[the page said that it was seen](../how-to/send-feedback-from-pages.md#crawlers-and-prefetches), and "
        "otherwise teaches nothing"
    ),
    "satisfied_by": (
        "the success that is learned: a click, or [a purchase](../explanation/feedback.md#when-purchases-count)"
    ),
    "shows": "the ranking that is shown: the learned one, the caller's `order` unchanged, or a fixed list of ids",
    "prior": (
        "how many more visitors may leave than click before the caller's "
        "[`order`](../how-to/choose-what-may-be-shown.md#start-with-an-order-you-have) has no more effect; 0: no effect"
    ),
    "explore": (
        "the share of rankings in which [one slot is replaced](../explanation/propensities.md) by a random document"
    ),
    "similar": (
        "how [similar queries](../how-to/share-between-queries.md) are found, which share what they have seen; "
        "`off`: every query learns alone. ZoomRank only"
    ),
    "fold": "queries that differ only in case, spaces or Unicode form (NFKC) are one query",
    "most_queries": "queries that a collection keeps; a new one beyond that is rejected with 429 `too_many`",
    "new_queries": "new queries an hour from one key (from all requests together, if there are no keys)",
    "asked_again_within": (
        "seconds after which a query is removed that was asked only once; sums over the collection keep its impressions"
    ),
    "keep_events": (
        "seconds that [the log goes back](../explanation/durability.md#how-far-the-log-goes-back), at least an hour "
        "and twice `feedback_within`; null: for ever"
    ),
}

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
    """Add both pages."""
    files.append(File.generated(config, PAGE, content=page(document())))
    files.append(File.generated(config, SETTINGS_PAGE, content=settings_page()))
    return files


def document() -> dict[str, Any]:
    """Return the OpenAPI document of a service."""

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
    """All paths, then all models."""
    everywhere = _errors_everywhere(api)
    error = api["paths"]["/v1/feedback"]["post"]["responses"]["404"]["content"]["application/json"]["schema"]
    paths = (_way(path, method, way, everywhere) for path, method, way in _ways(api))
    models = (_model(name, schema) for name, schema in sorted(api["components"]["schemas"].items()))
    return "".join(
        [
            _BEGINNING.format(statuses=", ".join(sorted(everywhere)), error=shape(error)),
            "## Paths\n\n",
            *paths,
            "## Requests and responses\n\nA field with a star may be left out.\n\n",
            *models,
        ]
    )


def settings_page() -> str:
    """Return the page of settings; one that `MEANING` does not explain, or explains in vain, is an error."""
    schema = Settings.model_json_schema()
    fields: dict[str, Any] = schema["properties"]
    if fields.keys() != MEANING.keys():
        raise ValueError(f"MEANING has to explain exactly the settings; these differ: {fields.keys() ^ MEANING.keys()}")
    rows = [
        f"| `{name}` | `{_default(field)}` | {shape(field, schema)} | {MEANING[name]} |\n"
        for name, field in fields.items()
    ]
    return _SETTINGS + "".join(rows) + _AFTER_SETTINGS.format(restrictable=registry.rankers_that_are("restrictable"))


def _default(field: Schema) -> str:
    default = field.get("default", {})
    whole = not isinstance(default, bool) and isinstance(default, int | float) and default == int(default)
    return f"{default:,.0f}" if whole else json.dumps(default)


def _ways(api: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    for path, methods in api["paths"].items():
        for method, way in methods.items():
            yield path, method.upper(), way


def _errors_everywhere(api: Mapping[str, Any]) -> set[str]:
    return set.intersection(*({status for status in way["responses"] if status >= "4"} for _, _, way in _ways(api)))


def _way(path: str, method: str, way: Mapping[str, Any], everywhere: set[str]) -> str:
    lines = [f"### {method} {path}", "", way.get("description", way.get("summary", "")), ""]
    if parameters := way.get("parameters"):
        lines += ["| parameter | where | what |", "|---|---|---|"]
        lines += [f"| `{one['name']}` | {one['in']} | {_about(one['schema'])} |" for one in parameters] + [""]
    for kind, content in way.get("requestBody", {}).get("content", {}).items():
        lines += [f"Send {shape(content.get('schema', {})) or 'a file'} (`{kind}`).", ""]
    responses = way["responses"]
    good = [f"{status} {_content(response)}" for status, response in responses.items() if status < "4"]
    errors = sorted(status for status in responses if status >= "4" and status not in everywhere)
    ending = f" May also fail with {' and '.join(errors)}." if errors else ""
    return "\n".join([*lines, f"Responds with {', '.join(good)}.{ending}", "", ""])


def _content(response: Mapping[str, Any]) -> str:
    contents = response.get("content", {}).items()
    return " or ".join(sorted(shape(content.get("schema", {})) or f"`{kind}`" for kind, content in contents))


def _model(name: str, schema: Schema) -> str:
    lines = [f"### {name} {{ #{name} }}", "", schema.get("description", ""), ""]
    if fields := schema.get("properties"):
        lines += ["| field | what |", "|---|---|"]
        needed = schema.get("required", ())
        lines += [f"| `{field}`{'' if field in needed else ' *'} | {_about(of)} |" for field, of in fields.items()]
    return "\n".join([*lines, "", ""])


def _about(schema: Schema) -> str:
    """A value: its type, what bounds it, and what it is unless given."""
    words = [shape(schema)]
    default = schema.get("default")
    if default is not None and not isinstance(default, dict):
        words.append(f"{json.dumps(default)} by default")
    return ", ".join(words).replace("|", r"\|")


def shape(schema: Schema, models: Schema | None = None) -> str:
    """Return the type of a value and its bounds, in words; `models` has the definitions that it may refer to."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if models is not None:
            return shape(models["$defs"][name], models)
        return f"[{name}](#{name})"
    choices = schema.get("anyOf") or schema.get("oneOf")
    if choices:
        ordered = sorted(choices, key=lambda one: one.get("type") != "null")
        return ", or ".join(shape(one, models) for one in ordered)
    if "enum" in schema or "const" in schema:
        return ", ".join(f"`{value}`" for value in schema.get("enum", [schema.get("const")]))
    if schema.get("type") == "array":
        return f"a list{_range(schema, 'minItems', 'maxItems', ' of ')}: {shape(schema.get('items', {}), models)}"
    words = _TYPES.get(schema.get("type", ""), "anything" if schema else "")
    words += _range(schema, "minLength", "maxLength", ", ", " letters")
    words += _range(schema, "minimum", "maximum", ", ")
    return words + (f", matches `{schema['pattern']}`" if "pattern" in schema else "")


def _range(schema: Schema, least: str, most: str, before: str, after: str = "") -> str:
    low, high = schema.get(least), schema.get(most)
    if high is None or abs(high) >= 2**40:  # no request reaches such a bound
        return f"{before}{low:,.0f} or more{after}" if low and abs(low) < 2**40 else ""
    return (
        f"{before}{low or 0:,.0f} to {high:,.0f}{after}" if low is not None else f"{before}at most {high:,.0f}{after}"
    )
