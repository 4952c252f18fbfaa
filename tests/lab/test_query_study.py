"""The study of similar queries: what its worlds are, who learns there, and that it can be run and reported."""

from pathlib import Path

import numpy as np
import pytest
from research.__main__ import main
from research.studies import queries, query_zooming
from research.studies.queries import EDGES, KINDS, LEARNERS, RELATIONS, Lent, TrafficKind, draw_world, simulate_traffic
from research.studies.query_zooming import QueryZooming
from research.studies.questions import query_experiment

from tests.reference.query_zooming import ActivePairs
from zoomrank import DocumentTree
from zoomrank.errors import ParameterError
from zoomrank.lab.registry import ranker, world

TREE = DocumentTree.exponential(depth=8)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_query_is_the_same_whatever_its_siblings(relation: str) -> None:
    few, many = (draw_world(TREE, np.random.default_rng(3), relation, siblings) for siblings in (1, 8))
    np.testing.assert_array_equal(few.users.mean(), many.users.mean())
    same = [np.array_equal(users.mean(), many.users.mean()) for users in many.siblings]
    assert same == many.alike
    assert sum(same) == {"alike": 8, "half-alike": 4}.get(relation, 0)


def test_pools_mislead_together_and_the_unrelated_each_by_itself() -> None:
    misled, apart = (
        draw_world(TREE, np.random.default_rng(3), name, 3).siblings for name in ("misleading", "unrelated")
    )
    assert np.array_equal(misled[0].mean(), misled[2].mean())
    assert not np.array_equal(apart[0].mean(), apart[2].mean())
    with pytest.raises(ParameterError, match="choose one of alike"):
        draw_world(TREE, np.random.default_rng(3), "cousins", 3)


@pytest.mark.full
def test_lenders_meet_the_visitors_that_were_drawn_with_the_query() -> None:
    setting = next(run for run in query_experiment("alike").settings(instances=1) if run.curve == "lent-5")
    tree, users = world(setting)
    learner = ranker(setting, tree, users)
    assert isinstance(learner, Lent)
    assert users.satisfaction(learner.rank().documents) > 0.3
    assert len(learner.ranker.support(5).lenders) == 5


def test_traffic_is_the_same_again_and_all_visits_are_counted() -> None:
    one, other = (simulate_traffic(KINDS[1], 0, 1, queries=20, visits=300) for _ in range(2))
    assert one == other
    assert sum(one["visits"]) == 300
    assert len(one["visits"]) == len(EDGES)
    assert set(one["clicks"]) == set(LEARNERS)
    assert all(0 < sum(clicks) < sum(one["greedy"]) for clicks in one["clicks"].values())


@pytest.mark.parametrize(("closeness", "narrowest"), [(0.5, "1"), (0.8, "1 > 3")])
def test_contextual_zooming_chooses_the_pairs_of_its_twin(
    closeness: float, narrowest: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over queries in groups in groups, to the last document and query; and there is never too little room."""
    monkeypatch.setattr(query_zooming, "ROOM", 16)
    tree = DocumentTree.exponential(depth=4)
    how = {"exploration": 0.02, "scale": 0.3}
    fast, slow = QueryZooming(tree, 1, closeness=closeness, seed=1, **how), ActivePairs(tree, **how)
    rng = np.random.default_rng(2)
    for query in rng.integers(12, size=3000).tolist():
        path = f"{query % 2} > {query % 4}"
        shown = fast.rank(query, path)
        groups = ["all", path[0], path, query]
        pair, width = slow.select(list(zip(groups, (1.0, closeness, closeness**2, 0.0), strict=True)))
        assert int(fast.slots[0].node[shown.pairs[0]]) == pair[0]
        click = 0 if rng.random() < (0.6 if shown.documents[0] == query else 0.05) else None
        fast.learn(shown, click)
        slow.update(pair, width, int(click == 0))
    assert {group for _, _, group in slow.refined} >= {"all", "0", "1", narrowest}
    assert {pair[2] for pair in slow.n} >= set(range(12))
    assert len(fast.slots[0].node) > 16


def test_contextual_zooming_shows_no_document_twice_and_learns_nothing_below_a_click() -> None:
    zooming = QueryZooming(DocumentTree.exponential(depth=2), 4, seed=1)
    for _ in range(50):
        shown = zooming.rank("lion")
        assert sorted(shown.documents) == [0, 1, 2, 3]
        zooming.learn(shown, click=1)
    assert [int(pairs.plays.sum()) > 0 for pairs in zooming.slots] == [True, True, False, False]
    assert zooming.slots[0].clicks.sum() == 0 < zooming.slots[1].clicks.sum()


def test_leaves_of_a_taxonomy_share_the_wishes_of_their_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "categories.txt"
    file.write_text("".join(f"Shop > {group} > {leaf}\n" for group in "abcd" for leaf in range(6)))
    crowd = TrafficKind("taxonomy", "", file=str(file)).crowd(np.random.default_rng(1), 8)
    assert len(crowd.users) == 8
    best = [set(users.greedy(2).documents) for users in crowd.users]
    for one in range(8):
        for other in range(8):
            assert (crowd.groups[one] == crowd.groups[other]) == (best[one] == best[other])


@pytest.mark.full
def test_the_study_runs_goes_on_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "LEARNED", 10)
    asked = ["study", "queries", "--instances", "1", "--visits", "30", "--out", str(tmp_path / "q"), "--workers", "1"]
    assert not main(asked)
    assert "Traffic: shared/0 is done." in capsys.readouterr().out
    report = (tmp_path / "q" / "report.md").read_text()
    for title in [relation.title for relation in RELATIONS.values()] + [kind.title for kind in KINDS]:
        assert title in report
    assert (tmp_path / "q" / "figures" / "figure-traffic.png").exists()
    assert not main([*asked, "--resume"])
    assert "is done" not in capsys.readouterr().out
    assert (tmp_path / "q" / "report.md").read_text().split("## Made")[0] == report.split("## Made")[0]


@pytest.mark.full
def test_traffic_can_come_without_siblings(tmp_path: Path) -> None:
    asked = ["--instances", "1", "--visits", "20", "--out", str(tmp_path / "q"), "--workers", "1", "--traffic"]
    assert not main(["study", "queries", *asked])
    report = (tmp_path / "q" / "report.md").read_text()
    assert "--traffic" in report
    assert "| contextual zooming |" in report
    assert not any(relation.title in report for relation in list(RELATIONS.values())[:3])
    assert main(["study", "tuning", *asked]) != 0
