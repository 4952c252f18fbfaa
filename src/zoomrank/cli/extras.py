"""Optional dependencies: which modules come with which extra, and how to install them.

Commands name their extras when they are defined; a command that lacks any ends with an error before it begins.
"""

from collections.abc import Iterable, Mapping
from importlib.util import find_spec

from zoomrank.errors import MissingExtraError

# Modules that zoomrank imports, by the extra that brings them. Extras that an extra includes are listed in full.
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
    """Return the command that installs these extras.

    >>> installing(["documents", "lab"])
    "pip install 'zoomrank[documents,lab]'"
    """
    return f"pip install 'zoomrank[{','.join(extras)}]'"


def require(command: str, extras: Iterable[str]) -> None:
    """Raise an error unless all modules of the command's extras are installed.

    Raises
    ------
    MissingExtraError
        Names what is missing and how to install it.
    """
    wanted = dict.fromkeys(module for extra in extras for module in MODULES[extra])
    missing = [module for module in wanted if find_spec(module) is None]
    if missing:
        few = ", ".join(missing[:3]) + (", …" if len(missing) > 3 else "")
        raise MissingExtraError(f"`zoomrank {command}` needs {few}: {installing(extras)}")
