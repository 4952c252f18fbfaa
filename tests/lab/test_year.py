"""A shop that lives through a year: its changes, its visitors, its plan."""

import numpy as np
import pytest
from research.year.shop import BAD_DAYS, EVENTS, GONE, Plan, Shop, Tastes, name_of, number_of
from research.year.traffic import SearchEngine

from zoomrank.documents.versions import CollectionVersion
from zoomrank.errors import ParameterError


def _shop(products: int = 600) -> tuple[Shop, np.random.Generator]:
    rng = np.random.default_rng(5)
    shop = Shop(products, rng)
    shop.turn(0, rng)
    return shop, rng


def _paths(edition: CollectionVersion) -> dict[str, tuple[str, ...]]:
    tree = edition.collection.tree
    assert tree.names is not None
    found = {}
    for position, name in enumerate(tree.documents):
        leaf = int(tree.shape.leaf[position])
        up = [tree.names[node] for node in tree.ancestors(leaf) if node != leaf and tree.names[node]]
        found[name] = tuple(reversed(up))
    return found


def test_the_collection_that_was_told_all_changes_is_the_shop() -> None:
    shop, rng = _shop()
    edition = CollectionVersion.first(shop.collection())
    for day in range(24):
        changes = [shop.day(0.05, rng)]
        if day % 6 == 5:
            changes.append(shop.turn((day // 6 + 1) % 4, rng))
        if day == 3:
            changes.append(shop.move_category(rng))
        if day == 8:
            changes.append(shop.rename_category(rng))
        for some in changes:
            edition = edition.changed(edition.placed(some))
        assert _paths(edition) == {name_of(number): shop.paths[shop.shelf[number]] for number in shop.there.tolist()}
    titles = edition.collection.titles
    assert titles is not None
    assert sum("model" in title for title in titles) > 10


def test_as_many_products_come_as_go_and_seasons_empty_shelves() -> None:
    shop, rng = _shop()
    before = len(shop.there)
    changes = shop.day(0.1, rng)
    assert len(shop.there) == before
    assert len(changes) == pytest.approx(0.1 * before, abs=3)
    summer, winter = (np.flatnonzero(shop.season == season) for season in (2, 0))
    assert not np.isin(summer, shop.shelf).any()
    standing = shop.there[np.isin(shop.shelf[shop.there], winter)]
    assert len(standing)
    shop.turn(2, rng)
    assert np.isin(summer, shop.shelf).all()
    assert (shop.shelf[standing] == GONE).all()
    shop.turn(0, rng)
    again = (shop.shelf[standing] != GONE).sum()
    assert 0 < again < len(standing)


def test_products_stay_on_their_shelves_if_nothing_moves() -> None:
    shop, rng = _shop()
    before = shop.shelf.copy()
    assert sum("path" in change for change in shop.day(0.2, rng, moves=False) if "change" in change) == 0
    there = shop.shelf[: len(before)] != GONE
    assert (shop.shelf[: len(before)] == before)[there].all()
    assert sum("path" in change for change in shop.day(0.2, rng) if "change" in change) > 5


def test_satisfaction_is_the_share_of_visitors_who_click() -> None:
    shop, rng = _shop()
    tastes = Tastes(shop, 8, rng)
    for query in (0, 3):
        liked = shop.there[np.isin(shop.shelf[shop.there], tastes.likes(query))]
        products = np.concatenate([rng.choice(liked, 3, replace=False), rng.choice(shop.there, 2, replace=False)])
        clicks = [tastes.click(query, 0, shop, products, rng) is not None for _ in range(4000)]
        assert tastes.satisfaction(query, 0, shop, products) == pytest.approx(np.mean(clicks), abs=0.03)


def test_greedy_chooses_what_adds_most() -> None:
    shop, rng = _shop(100)
    tastes = Tastes(shop, 4, rng)
    for query in range(4):
        chosen: list[int] = []
        for _ in range(3):
            left = [number for number in shop.there.tolist() if number not in chosen]
            gains = [tastes.satisfaction(query, 1, shop, np.array([*chosen, number])) for number in left]
            chosen.append(left[int(np.argmax(gains))])
        best = tastes.satisfaction(query, 1, shop, np.array(chosen))
        assert tastes.greedy(query, 1, shop, 3) == pytest.approx(best)
        assert tastes.random(query, 1, shop, 3, rng) < best


def test_what_is_asked_changes_with_the_season() -> None:
    shop, rng = _shop()
    tastes = Tastes(shop, 40, rng)
    for season in range(4):
        assert tastes.asked(season).sum() == pytest.approx(1)
        assert all(tastes.shares(query, season).sum() == pytest.approx(1) for query in range(40))
    assert (tastes.asked(0) != tastes.asked(2)).any()
    tastes.with_seasons = False
    assert (tastes.asked(0) == tastes.asked(2)).all()


def test_a_search_engine_passes_what_is_there_and_some_that_is_not() -> None:
    shop, rng = _shop()
    tastes = Tastes(shop, 4, rng)
    shop.day(0.05, rng)
    search = SearchEngine(shop, tastes, rng)
    lists = [search.candidates(query % 4) for query in range(100)]
    assert all(len(set(names)) == len(names) for names in lists)
    there = set(shop.there.tolist())
    unknown = [sum(number_of(name) not in there for name in names) for names in lists]
    assert min(unknown) >= 1
    assert min(map(len, lists)) < 10 < 200 < max(map(len, lists))


def test_a_plan_has_room_for_all_that_happens() -> None:
    for days in (20, 30, 365):
        plan = Plan.of(days)
        assert len(set(plan.marks.values())) == len(plan.marks) == 7
        bad = [day for day in range(days) if plan.nonsense(day)]
        assert len(bad) == 2 * BAD_DAYS
        noticed = [(day, found) for day in range(days) if (found := plan.noticed(day))]
        assert len(noticed) == 2
        assert all(plan.nonsense(began) == name and began + BAD_DAYS < day for day, (name, began) in noticed)
        assert sum(plan.turns(day) for day in range(days)) == 4
    assert Plan.of(30).undisturbed().marks == {}
    assert not any(Plan.of(30, EVENTS).turns(day) for day in range(30))
    with pytest.raises(ParameterError, match="'wars' cannot be left out"):
        Plan.of(30, ["wars"])
    with pytest.raises(ParameterError, match="too few"):
        Plan.of(5)
