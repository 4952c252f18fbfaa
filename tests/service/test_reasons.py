"""Why documents stand where they stand: whatever was learned, the numbers that are told agree with each other."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from tests.support.services import served
from zoomrank.rankers import SlotExplanation
from zoomrank.service.engine import Engine
from zoomrank.service.http import page_data
from zoomrank.service.http.page_details import ExplanationContext, percent, why

SETTINGS: list[dict[str, Any]] = [
    {},
    {"similar": "words"},
    {"parameters": {"correlated": False}},
    {"algorithm": "RankCorrZoom"},
    {"algorithm": "RankUCB1"},
    {"algorithm": "RankContextZoom"},
    {"algorithm": "RankGridEXP3"},
    {"algorithm": "RankKLUCB"},
    {"algorithm": "RankThompson"},
]


def _share(text: str) -> tuple[float, float]:
    """Between which shares one lies that is told so."""
    number = float(text.strip("<> %")) / 100
    step = 0.0005 if "." in text else 0.005
    return (0.0, number) if "<" in text else (number, 1.0) if ">" in text else (number - step, number + step)


@pytest.mark.parametrize("settings", SETTINGS, ids=lambda one: "-".join(map(str, one.values())) or "usual")
async def test_nothing_that_is_told_contradicts_itself(engine: Engine, settings: dict[str, Any]) -> None:
    for world in range(3):
        dice = random.Random(world)
        shop = await served(engine, f"shop{world}", **settings)
        likes = {one["id"]: dice.random() ** 3 for one in page_data.documents(shop, 0, 100)["documents"]}
        for visit in range(120):
            query = dice.choice(["owl", "owl", "snowy owl"])
            impression, documents = await engine.rank(shop, query)
            clicked = [one["id"] for one in documents if dice.random() < likes[one["id"]]]
            await engine.feedback(impression, clicked[0] if clicked else None)
            if visit % 4 == 0 or visit < 8:
                _check((await page_data.query(engine, shop, query))["ranking"])


def _check(ranking: list[dict[str, Any]]) -> None:
    above: list[str] = []
    for one in ranking:
        said = (one["why"], one)
        cap = 1.0 if one["cap"] is None else min(1.0, one["cap"])
        assert 0 <= one["estimate"] <= one["bound"] <= 1, said
        assert one["bound"] <= cap + 1e-6, said
        assert re.search(r"\b[Oo]f 0\b", one["why"]) is None, said
        assert ("o visitor has looked" in one["why"]) == (one["visits"] == 0), said
        if one["visits"]:
            assert f"{one['clicks']:,} clicked ({percent(one['clicks'] / one['visits'])})" in one["why"], said
            assert all(title in one["why"] for title in above[:2]), said
        if one["trial"]:
            hopes = [_share(text) for text in re.findall(r"as good as ((?:[<>] )?[\d.]+ %)", one["why"])]
            earns = [_share(text) for text in re.findall(r"earns ((?:[<>] )?[\d.]+ %)", one["why"])]
            assert all(low - 1e-9 <= one["bound"] <= high + 1e-9 for low, high in hopes), said
            assert not hopes or not earns or hopes[0][1] > earns[0][0], said
        elif "expected" in one["why"] or " will." in one["why"]:
            assert f"{percent(one['estimate'])} " in one["why"], said
        above.append(one["title"])


def _reason(**more: Any) -> SlotExplanation:
    usual: dict[str, Any] = {"document": "d", "subtree": "Owls", "documents": 1, "plays": 1200, "clicks": 300}
    usual |= {"mean": 0.25, "estimate": 0.25, "radius": 0.1, "cap": float("inf"), "index": 0.3, "record": 0.25}
    return SlotExplanation(**{**usual, "trial": False, **more})


def test_documents_above_are_named() -> None:
    assert (
        why(_reason(), ExplanationContext("Owls", [])) == "Of 1,200 visitors who saw it at the top, 300 clicked (25 %)."
    )
    assert why(_reason(), ExplanationContext("Owls", ["Pikes"], "Pikes")) == (
        "Of 1,200 visitors who skipped what stood above (now “Pikes”) and saw it, 300 clicked (25 %)."
    )
    several = why(
        _reason(documents=1500, plays=1, clicks=1, mean=1.0), ExplanationContext("Owls", ["A", "B", "C", "D"], "A")
    )
    assert several == (
        "Of 1 visitor who skipped what stood above (now “A”, “B” and 2 more) and saw one of “Owls” (1,500 documents), "
        "1 clicked (100 %); judging by other slots and similar documents, 25 % will."
    )


def test_what_is_like_one_above_is_told_so() -> None:
    found = why(
        _reason(mean=0.4, estimate=0.3, cap=0.3, index=0.3), ExplanationContext("Owls", ["Pikes", "Trout"], "Trout")
    )
    assert found.endswith("it is like “Trout”, which they skip, so 30 % is the most that is expected.")


@pytest.mark.parametrize(
    ("index", "record", "said"),
    [
        (0.6, None, "it may be as good as 60 %, and nothing better is known."),
        (0.6, 0.3, "it may be as good as 60 %, and the best that is known for this slot earns 30 %."),
        (0.304, 0.301, "it may be as good as 30 %, like the best that is known for this slot."),
        (0.3, 0.5, "it replaces a similar one that earns 50 %, to see which is better."),
    ],
)
def test_why_it_is_tried(index: float, record: float | None, said: str) -> None:
    found = why(_reason(trial=True, index=index, record=record), ExplanationContext("Owls", []))
    assert found == f"On trial: of 1,200 visitors who saw it at the top, 300 clicked (25 %); {said}"
