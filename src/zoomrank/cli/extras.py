"""What a plain `pip install zoomrank` does without: which modules come with which extra, and how to ask for them.

Commands name their extras when they describe themselves; one that lacks any is refused in a sentence before it begins.
"""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from zoomrank.errors import MissingExtraError

# Modules that zoomrank imports, by the extra that brings them. What an extra includes is written out, as pip does not.
_CLIENT = ("httpx", "typing_extensions")
_DOCUMENTS = ("pyarrow", "sklearn", "threadpoolctl")
_LAB = ("PIL", "markdown_it", "matplotlib", "pyarrow", "rich")
_SERVICE = (
    *_CLIENT,
    *_DOCUMENTS,
    "fastapi",
    "plotly",
    "prometheus_client",
    "pydantic",
    "pydantic_core",
    "starlette",
    "uvicorn",
)
MODULES: Mapping[str, tuple[str, ...]] = {
    "client": _CLIENT,
    "cluster": (*_SERVICE, "aiohttp", "psycopg", "ray", "yarl"),
    "documents": _DOCUMENTS,
    "embeddings": (*_DOCUMENTS, "wordllama"),
    "lab": _LAB,
    "postgres": (*_SERVICE, "psycopg"),
    "ray": (*_LAB, "ray"),
    "service": _SERVICE,
}


def installing(extras: Iterable[str]) -> str:
    """What to type to get these extras.

    >>> installing(["documents", "lab"])
    "pip install 'zoomrank[documents,lab]'"
    """
    return f"pip install 'zoomrank[{','.join(extras)}]'"


def require(command: str, extras: Iterable[str]) -> None:
    """Refuse a command unless all modules of its extras are installed.

    Raises
    ------
    MissingExtraError
        Says what is missing and how to install it.
    """
    wanted = dict.fromkeys(module for extra in extras for module in MODULES[extra])
    missing = [module for module in wanted if find_spec(module) is None]
    if missing:
        few = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise MissingExtraError(f"`zoomrank {command}` needs {few}: {installing(extras)}")
