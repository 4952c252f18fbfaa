"""Every public ranker says by name what it takes: no `**settings`, nothing without a type, nothing undescribed."""

import ast
import inspect
import re
from typing import Any

import pytest

import zoomrank as zr
from zoomrank.errors import ParameterError
from zoomrank.rankers import registry

TREE = zr.DocumentTree.exponential(depth=4)
PUBLIC = {
    name: getattr(zr, name)
    for name in zr.__all__
    if isinstance(getattr(zr, name), type) and issubclass(getattr(zr, name), zr.Ranked)
}
EXPLICIT = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


def every_parameter_by_name(tree: zr.DocumentTree) -> list[zr.Ranked]:
    """A script as users write it: mypy checks it, and a test below that it leaves nothing out."""
    return [
        zr.ZoomRank(
            tree=tree,
            slots=3,
            confidence=0.4,
            growth=0.5,
            optimism=0.2,
            borrow=10,
            prior=1,
            correlated=False,
            patience=3,
            seed=1,
            duplicates=True,
        ),
        zr.RankThompson(tree=tree, slots=3, prior=0.3, correlated=False, seed=1, duplicates=True),
        zr.RankRandom(tree=tree, slots=3, seed=1, duplicates=True),
        zr.RankCorrZoom(
            tree=tree, slots=3, exploration="pessimistic", horizon=9, anytime=True, seed=1, duplicates=True
        ),
        zr.RankZoom(tree=tree, slots=3, exploration=0.2, horizon=None, anytime=False, seed=1, duplicates=True),
        zr.RankContextZoom(
            tree=tree, slots=3, exploration=0.2, horizon=9, scale=0.3, anytime=True, seed=1, duplicates=True
        ),
        zr.RankUCB1(tree=tree, slots=3, exploration="optimistic", horizon=9, anytime=True, seed=1, duplicates=True),
        zr.RankKLUCB(tree=tree, slots=3, exploration=0.2, seed=1, duplicates=True),
        zr.CascadeKLUCB(tree=tree, slots=3, exploration=0.2, seed=1, duplicates=True),
        zr.RankGridUCB1(
            tree=tree,
            slots=3,
            exploration=1,
            horizon=9,
            start=2,
            stretch=0.5,
            replay=True,
            anytime=True,
            seed=1,
            duplicates=True,
        ),
        zr.RankGridEXP3(tree=tree, slots=3, start=2, stretch=0.5, anytime=True, seed=1, duplicates=True),
        zr.RankEXP3(tree=tree, slots=3, horizon=9, anytime=False, seed=1, duplicates=True),
        zr.RankExploreCommit(tree=tree, slots=3, looks=2, seed=1, duplicates=True),
        zr.FixedRanking(tree=tree, documents=[3, 1, 2], seed=1),
        zr.Ranked(bandit=zr.bandits.UCB1(tree), slots=3, seed=1, duplicates=True),
    ]


def described(kind: type) -> list[str]:
    """The names in the Parameters section of a class."""
    text = inspect.cleandoc(kind.__doc__ or "")
    section = re.search(r"^Parameters\n-{10}\n(.*?)(?=^\w+\n-{3,}$)", text, flags=re.DOTALL | re.MULTILINE)
    assert section is not None, f"{kind.__name__} does not describe its parameters"
    return re.findall(r"^(\w+) : .+\n    \S", section[1], flags=re.MULTILINE)


@pytest.mark.parametrize("name", PUBLIC)
def test_parameters_are_explicit_annotated_and_described(name: str) -> None:
    parameters = inspect.signature(PUBLIC[name], eval_str=True).parameters
    for each in parameters.values():
        assert each.kind in EXPLICIT, each
        assert each.annotation not in (inspect.Parameter.empty, Any), each
    assert described(PUBLIC[name]) == list(parameters)


def test_the_script_names_them_all() -> None:
    calls = {
        call.func.attr: {keyword.arg for keyword in call.keywords}
        for call in ast.walk(ast.parse(inspect.getsource(every_parameter_by_name)))
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr in PUBLIC
    }
    assert calls == {name: set(inspect.signature(kind).parameters) for name, kind in PUBLIC.items()}
    for ranker in every_parameter_by_name(TREE):
        assert len(ranker.rank().documents) == 3


def test_defaults_are_those_of_the_bandit() -> None:
    for name, kind in registry.RANKERS.items():
        given = inspect.signature(kind).parameters
        theirs = inspect.signature(kind.bandit_kind).parameters
        for each in registry.learning_parameters(name):
            if each in theirs:
                assert given[each].default == theirs[each].default, (name, each)


def test_help_shows_what_there_is() -> None:
    text = inspect.getdoc(zr.ZoomRank) or ""
    for name in registry.learning_parameters("ZoomRank"):
        assert f"\n{name} : " in text
    assert "patience: int | None = None" in str(inspect.signature(zr.ZoomRank)).replace("'", "")


def test_a_ranker_for_every_name() -> None:
    assert {**registry.RANKERS, "FixedRanking": zr.FixedRanking, "Ranked": zr.Ranked} == PUBLIC
    assert registry.ON_DISK == PUBLIC


def test_what_rankers_can_is_what_their_bandits_can() -> None:
    for name, kind in registry.RANKERS.items():
        horizon: dict[str, Any] = {"horizon": 9} if kind.bandit_kind.needs_horizon else {}
        make: Any = kind
        ranker = make(TREE, 3, **horizon)
        assert type(ranker.bandit) is kind.bandit_kind
        if kind.bandit_kind.restrictable:
            assert set(ranker.rank([1, 2, 3]).documents) == {1, 2, 3}
            assert name in registry.rankers_that_are("restrictable")
        else:
            with pytest.raises(ParameterError, match=registry.rankers_that_are("restrictable")):
                ranker.rank([1, 2, 3])
        if kind.bandit_kind.growable:
            ranker.grow(TREE.grown({"new": 1}))
            assert "new" in ranker.tree.documents
        else:
            with pytest.raises(ParameterError, match=registry.rankers_that_are("growable")):
                ranker.grow(TREE.grown({"new": 1}))


def test_bandits_that_go_on_for_ever() -> None:
    for name, kind in registry.RANKERS.items():
        bandit = registry.anytime_bandit(name, TREE, {})
        assert bandit.anytime
        assert isinstance(bandit, zr.bandits.Anytime) == (not kind.bandit_kind.anytime)
    with pytest.raises(ParameterError, match="does not take the parameter 'seed'; its parameters are exploration"):
        registry.anytime_bandit("RankZoom", TREE, {"seed": 3})
    with pytest.raises(ParameterError, match="its parameters are none"):
        registry.anytime_bandit("RankRandom", TREE, {"prior": 3})
    with pytest.raises(ParameterError, match="does not take these parameters"):
        registry.anytime_bandit("RankThompson", TREE, {"prior": "many"})
