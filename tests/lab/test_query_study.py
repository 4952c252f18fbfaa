"""The study of similar queries: what its worlds are, who learns there, and that it can be run and reported."""

from pathlib import Path

import numpy as np
import pytest

from zoomrank import DocumentTree
from zoomrank.cli import main
from zoomrank.errors import ParameterError
from zoomrank.lab.catalogue import ranker, world
from zoomrank.lab.studies import query_worlds
from zoomrank.lab.studies.query_traffic import EDGES, KINDS, LEARNERS, Traffic, traffic
from zoomrank.lab.studies.query_worlds import RELATIONS, Lent, drawn
from zoomrank.lab.studies.questions import query_experiment

TREE = DocumentTree.exponential(depth=8)


@pytest.mark.parametrize("relation", RELATIONS)
def test_the_query_is_the_same_whatever_its_siblings(relation: str) -> None:
    few, many = (drawn(TREE, np.random.default_rng(3), relation, siblings) for siblings in (1, 8))
    np.testing.assert_array_equal(few.users.mean(), many.users.mean())
    same = [np.array_equal(users.mean(), many.users.mean()) for users in many.siblings]
    assert same == many.alike
    assert sum(same) == {"alike": 8, "half-alike": 4}.get(relation, 0)


def test_pools_mislead_together_and_the_unrelated_each_by_itself() -> None:
    misled, apart = (drawn(TREE, np.random.default_rng(3), name, 3).siblings for name in ("misleading", "unrelated"))
    assert np.array_equal(misled[0].mean(), misled[2].mean())
    assert not np.array_equal(apart[0].mean(), apart[2].mean())
    with pytest.raises(ParameterError, match="there are alike"):
        drawn(TREE, np.random.default_rng(3), "cousins", 3)


def test_lenders_meet_the_visitors_that_were_drawn_with_the_query() -> None:
    setting = next(run for run in query_experiment("alike").settings(instances=1) if run.curve == "lent-5")
    tree, users = world(setting)
    learner = ranker(setting, tree, users)
    assert isinstance(learner, Lent)
    assert users.satisfaction(learner.rank().documents) > 0.3
    assert len(learner.ranker.support(5).lenders) == 5


def test_traffic_is_the_same_again_and_all_visits_are_counted() -> None:
    one, other = (traffic(KINDS[1], 0, 1, queries=20, visits=300) for _ in range(2))
    assert one == other
    assert sum(one["visits"]) == 300
    assert len(one["visits"]) == len(EDGES)
    assert set(one["clicks"]) == set(LEARNERS)
    assert all(0 < sum(clicks) < sum(one["greedy"]) for clicks in one["clicks"].values())


def test_leaves_of_a_taxonomy_share_the_wishes_of_their_neighbours(tmp_path: Path) -> None:
    file = tmp_path / "categories.txt"
    file.write_text("".join(f"Shop > {group} > {leaf}\n" for group in "abcd" for leaf in range(6)))
    crowd = Traffic("taxonomy", "", file=str(file)).crowd(np.random.default_rng(1), 8)
    assert len(crowd.users) == 8
    best = [set(users.greedy(2).documents) for users in crowd.users]
    for one in range(8):
        for other in range(8):
            assert (crowd.groups[one] == crowd.groups[other]) == (best[one] == best[other])


def test_the_study_runs_goes_on_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_worlds, "LEARNED", 10)
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
