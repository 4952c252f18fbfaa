"""Every public name has a docstring that describes its parameters and what it returns."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

PACKAGES = (
    "zoomrank.spaces",
    "zoomrank.users",
    "zoomrank.bandits",
    "zoomrank.rankers",
    "zoomrank.documents",
    "zoomrank.judging",
    "zoomrank.lab",
    "zoomrank.client",
    "zoomrank",
)
WITHOUT_METHODS = ("zoomrank.bandits", "zoomrank.rankers", "zoomrank")  # whose methods are described by their protocols


def public_names(package: str) -> dict[str, Any]:
    """Classes and functions in `__all__`, with their methods; not errors, modules, constants and types."""
    module = importlib.import_module(package)
    found: dict[str, Any] = {}
    for name in module.__all__:
        thing = getattr(module, name)
        ours = getattr(thing, "__module__", "").startswith("zoomrank")
        error = inspect.isclass(thing) and issubclass(thing, Exception)
        if ours and callable(thing) and not error:
            found[name] = thing
            if inspect.isclass(thing) and package not in WITHOUT_METHODS:
                found |= {f"{name}.{method}": function for method, function in public_methods(thing)}
    return found


def public_methods(thing: type) -> Iterator[tuple[str, Any]]:
    """Methods of a class that no base has: an override need not repeat the docstring."""
    for name, value in vars(thing).items():
        inherited = any(name in vars(base) for base in thing.__mro__[1:])
        method = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
        if not name.startswith("_") and not inherited and inspect.isfunction(method):
            yield name, method


def sections(thing: Any) -> dict[str, str]:
    """Split a docstring (not an inherited one) into the sections that numpydoc knows."""
    lines = inspect.cleandoc(vars(thing).get("__doc__") or thing.__doc__ or "").split("\n")
    heads = [at for at in range(len(lines) - 1) if re.fullmatch("-{3,}", lines[at + 1]) and lines[at].strip()]
    ends = [*heads, len(lines)]
    found = {lines[at]: "\n".join(lines[at + 2 : end]) for at, end in zip(heads, ends[1:], strict=True)}
    return {"": "\n".join(lines[: ends[0]]), **found}


def described(section: str) -> set[str]:
    """Names that a list of parameters describes: `one, other : int`, with a sentence below."""
    heads = re.findall(r"^(\S[^:\n]*?)(?: *:.*)?\n +\S", section, flags=re.MULTILINE)
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def parameters(thing: Any) -> list[str]:
    """Names of the parameters of a call; a protocol is not called."""
    if getattr(thing, "_is_protocol", False):
        return []
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def is_record(thing: Any) -> bool:
    """Return True for a dataclass or a named tuple: its parameters may be described as attributes."""
    return any(hasattr(thing, mark) for mark in ("__dataclass_fields__", "_fields"))


def returns_something(function: Callable[..., Any]) -> bool:
    return inspect.signature(function).return_annotation not in (None, "None", inspect.Signature.empty)


def faults(name: str, thing: Any) -> Iterator[str]:
    """What is missing from a docstring, or describes nothing."""
    found = sections(thing)
    summary = found[""].strip().split("\n\n")[0]
    if not re.fullmatch(r"\S.*[.…:]", summary, flags=re.DOTALL):
        yield f"{name} has no summary"
    taken, listed = parameters(thing), described(found.get("Parameters", ""))
    known = listed | (described(found.get("Attributes", "")) if is_record(thing) else set())
    if missing := [parameter for parameter in taken if parameter not in known]:
        yield f"{name} does not describe {', '.join(missing)}"
    if gone := sorted(listed - set(taken)):
        yield f"{name} describes {', '.join(gone)}, which it does not take"
    returned = described(found.get("Returns", found.get("Yields", "")))
    if inspect.isfunction(thing) and returns_something(thing) and not returned:
        yield f"{name} does not say what it returns"


@pytest.mark.parametrize("package", PACKAGES)
def test_public_names_are_described(package: str) -> None:
    names = public_names(package)
    assert names
    wrong = [fault for name, thing in names.items() for fault in faults(name, thing)]
    assert not wrong, "\n".join([f"In {package}:", *wrong])
