"""Every public name says what it is, what it takes, what it gives, and shows itself at work."""

import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

ROOMS = (
    "zoomrank.spaces",
    "zoomrank.users",
    "zoomrank.bandits",
    "zoomrank.rankers",
    "zoomrank.documents",
    "zoomrank.judging",
    "zoomrank.lab",
    "zoomrank.client",
    "zoomrank",  # last: most of its names come from the others
)
ROOMS_WITH_METHODS = (  # whose methods are looked at, too
    "zoomrank.spaces",
    "zoomrank.users",
    "zoomrank.documents",
    "zoomrank.judging",
    "zoomrank.lab",
    "zoomrank.client",
)


def public_things() -> dict[str, Any]:
    """Classes and functions by name, each once. Errors explain themselves; modules, constants and types are nothing."""
    found: dict[str, Any] = {}
    for room in ROOMS:
        module = importlib.import_module(room)
        for name in module.__all__:
            thing = getattr(module, name)
            ours = getattr(thing, "__module__", "").startswith("zoomrank")
            error = inspect.isclass(thing) and issubclass(thing, Exception)
            if ours and callable(thing) and not error and thing not in found.values():
                found[f"{room}.{name}"] = thing
    return found


def public_methods() -> Iterator[tuple[str, Any]]:
    """Methods of public classes, each where it is first described: what overrides it need not repeat all of that."""
    for name, thing in THINGS.items():
        if not inspect.isclass(thing) or not name.startswith(ROOMS_WITH_METHODS):
            continue
        for attribute, value in vars(thing).items():
            inherited = any(attribute in vars(base) for base in thing.__mro__[1:])
            method = getattr(value, "__func__", getattr(value, "fget", getattr(value, "func", value)))
            if not attribute.startswith("_") and not inherited and inspect.isfunction(method):
                yield f"{name}.{attribute}", method


def sections(thing: Any) -> dict[str, str]:
    """The docstring of a thing (its own, not one that it inherits), taken apart as numpydoc does."""
    lines = inspect.cleandoc(vars(thing).get("__doc__") or thing.__doc__ or "").split("\n")
    heads = [at for at in range(len(lines) - 1) if re.fullmatch("-{3,}", lines[at + 1]) and lines[at].strip()]
    ends = [*heads, len(lines)]
    found = {lines[at]: "\n".join(lines[at + 2 : end]) for at, end in zip(heads, ends[1:], strict=True)}
    return {"": "\n".join(lines[: ends[0]]), **found}


def described(section: str) -> set[str]:
    """The names that a list of parameters describes, such as `one, other : int`, with a sentence below each."""
    heads = re.findall(r"^(\S[^:\n]*?)(?: *:.*)?\n +\S", section, flags=re.MULTILINE)
    return {name.strip().lstrip("*") for head in heads for name in head.split(",")}


def parameters(thing: Any) -> list[str]:
    """What a thing is called with; nobody calls a protocol."""
    if getattr(thing, "_is_protocol", False):
        return []
    return [name for name in inspect.signature(thing).parameters if name not in ("self", "cls")]


def is_record(thing: Any) -> bool:
    """Whether its parameters are what one looks at afterwards: a dataclass, a named tuple."""
    return any(hasattr(thing, mark) for mark in ("__dataclass_fields__", "_fields"))


def returns_something(function: Callable[..., Any]) -> bool:
    return inspect.signature(function).return_annotation not in (None, "None", inspect.Signature.empty)


THINGS = public_things()
METHODS = dict(public_methods())
EVERYTHING = {**THINGS, **METHODS}
FUNCTIONS = [name for name, thing in EVERYTHING.items() if inspect.isfunction(thing)]


def test_there_is_much_to_look_at() -> None:
    assert len(THINGS) > 70
    assert len(METHODS) > 50


@pytest.mark.parametrize("name", EVERYTHING)
def test_a_summary(name: str) -> None:
    summary = sections(EVERYTHING[name])[""].strip().split("\n\n")[0]
    assert re.fullmatch(r"\S.*[.…:]", summary, flags=re.DOTALL), f"{name} has no sentence that says what it is"


@pytest.mark.parametrize("name", EVERYTHING)
def test_parameters_are_described(name: str) -> None:
    thing, found = EVERYTHING[name], sections(EVERYTHING[name])
    known = described(found.get("Parameters", ""))
    if is_record(thing):
        known |= described(found.get("Attributes", ""))
    missing = [parameter for parameter in parameters(thing) if parameter not in known]
    assert not missing, f"{name} does not describe {', '.join(missing)}"
    gone = described(found.get("Parameters", "")) - set(parameters(thing))
    assert not gone, f"{name} describes {', '.join(sorted(gone))}, which it does not take"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_comes_back_is_described(name: str) -> None:
    found = sections(EVERYTHING[name])
    if returns_something(EVERYTHING[name]):
        assert described(found.get("Returns", found.get("Yields", ""))), f"{name} does not say what it returns"


@pytest.mark.parametrize("name", EVERYTHING)
def test_an_example(name: str) -> None:
    assert ">>> " in sections(EVERYTHING[name]).get("Examples", ""), f"{name} has no example"
