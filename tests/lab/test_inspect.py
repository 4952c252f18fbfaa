"""What `zoomrank inspect` says of a collection: true on trees where the answer is known."""

from pathlib import Path

import numpy as np
import pytest

import zoomrank as zr
from zoomrank.cli import main
from zoomrank.documents import scale_from_labels
from zoomrank.errors import ParameterError
from zoomrank.lab.evaluation import COMPETITORS, RIVAL
from zoomrank.lab.inspection import RIVAL_EXPLORATION, MetricVerdict, Trial, inspect_tree, suggested_scale
from zoomrank.lab.inspection_report import write_inspection
from zoomrank.lab.recipes import recipe

TREE = zr.DocumentTree.exponential(depth=4, branching=3, epsilon=0.5)


def _topics(good: bool, rng: np.random.Generator) -> list[tuple[list[list[int]], list[float]]]:
    """Visitors who like a subtree of nine, or any nine documents."""
    topics = []
    for _ in range(6):
        rows = [
            list(range(9 * start, 9 * start + 9)) if good else rng.choice(81, size=9, replace=False).tolist()
            for start in rng.choice(9, size=4, replace=False)
        ]
        topics.append((rows, [1.0] * 4))
    return topics


def test_levels_are_counted() -> None:
    look = inspect_tree(TREE)
    assert (look.documents, look.depth, look.mean_depth) == (81, 4, 4.0)
    assert [level.nodes for level in look.levels] == [1, 3, 9, 27, 81]
    assert [level.documents for level in look.levels] == [0, 0, 0, 0, 81]
    assert [level.branching for level in look.levels] == [3, 3, 3, 3, 0]
    assert [level.width for level in look.levels] == pytest.approx([1, 0.5, 0.25, 0.125, 0])
    assert look.dimension == pytest.approx(np.log(3) / np.log(2), abs=0.01)
    assert look.verdict is None


def test_a_good_metric_is_told_from_a_useless_one() -> None:
    rng = np.random.default_rng(1)
    good, useless = (inspect_tree(TREE, _topics(kind, rng)).verdict for kind in (True, False))
    assert good is not None
    assert useless is not None
    assert good.power is not None
    assert useless.power is not None
    assert good.power > 0.95
    assert 0.4 < useless.power < 0.6
    assert good.trial is not None
    assert useless.trial is not None
    assert len(good.trial.ours) == len(useless.trial.ours) == 40
    assert all("take either" in verdict.words for verdict in (good, useless))  # 81 documents are soon tried
    close = {level.depth: level for level in good.levels}
    assert close[2].difference == close[3].difference == 0  # within a subtree of nine all are liked alike
    assert close[2].shared == 1
    assert (close[0].shared or 0) < 0.2
    broken = {level.depth: level for level in useless.levels}
    assert broken[3].violations > 0.2
    assert broken[3].worst > 1


@pytest.mark.parametrize(("scale", "says"), [(5.0, "too small"), (0.1, "larger than they need"), (1.0, "about right")])
def test_scales_are_put_in_words(scale: float, says: str) -> None:
    assert says in MetricVerdict(1, 0.7, scale, ()).words


def test_visitors_who_like_one_document_say_nothing_of_closeness() -> None:
    verdict = inspect_tree(TREE, [([[3], [40]], [1.0, 1.0])]).verdict
    assert verdict is not None
    assert verdict.power is None
    assert verdict.trial is not None


def test_what_is_far_apart_and_who_skipped_have_a_say_in_the_scale() -> None:
    """Close documents are liked alike, but one half of all by everybody and the other by few."""
    rows = [list(range(27)), list(range(27)), list(range(81))]
    assert scale_from_labels(TREE, rows) == 0
    assert suggested_scale(TREE, rows, [1.0] * 3) == pytest.approx(2 / 3)
    groups = [list(range(first, first + 9)) for first in range(0, 81, 9)]  # all please equally many
    assert scale_from_labels(TREE, groups, close=1.0) == 0
    later = suggested_scale(TREE, groups, [1.0] * 9)  # but not those who skipped some
    assert later == max(
        scale_from_labels(TREE, groups[skipped:], close=close) for skipped in range(5) for close in (0.5, 1.0)
    )
    assert later > 0.1
    with pytest.raises(ParameterError, match="No document is relevant"):
        suggested_scale(TREE, [[]], [1.0])
    flat = zr.DocumentTree.from_parents([-1, 0, 0, 0], width=[0.5, 0, 0, 0], ids=[0, 1, 2])  # nothing is close
    assert suggested_scale(flat, [[0], [0, 1]], [1.0, 1.0]) == 2


def test_from_a_file_to_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    birds, fish = ["barn owl", "snowy owl", "eagle owl", "tawny owl"], ["river pike", "river perch", "river trout"]
    lines = [f"{number}\t{text}\n" for number, text in enumerate([*birds, *fish])]
    (tmp_path / "pages.tsv").write_text("id\ttext\n" + "".join(lines))
    labels = "".join(f"7 {'a' if number < 4 else 'b'} {number} 1\n" for number in range(7))
    (tmp_path / "qrels").write_text(labels + "7 b 99 1\n")
    command = ["inspect", str(tmp_path / "pages.tsv"), "--relevance", str(tmp_path / "qrels")]
    command += ["--out", str(tmp_path / "out"), "--save", str(tmp_path / "pages.zoom")]
    assert main(command) == 2  # nobody has document 99
    assert "99" in capsys.readouterr().err
    assert main([*command, "--unknown", "skip"]) == 0
    shown = capsys.readouterr().out
    assert "1 are not in the collection" in shown
    assert "take either. In 40 runs of 3,000 simulated visits with 5 slots" in shown  # most documents are shown
    assert main(["inspect", str(tmp_path / "pages.zoom"), "--out", str(tmp_path / "bare")]) == 0
    assert "7 documents" in capsys.readouterr().out
    (tmp_path / "paths.txt").write_text("Animals > Owls\nAnimals > Pike\nAnimals\n")
    assert main(["inspect", str(tmp_path / "paths.txt"), "--out", str(tmp_path / "bare")]) == 0
    assert "2 documents, depth 2" in capsys.readouterr().out
    assert main(["inspect", str(tmp_path / "nowhere.tsv"), "--out", str(tmp_path / "no")]) == 2


def test_the_advice_follows_the_trial_not_the_correlation() -> None:
    """All that pleases is in one subtree of 64 among 4,096 documents, and there it is anywhere."""
    tree = zr.DocumentTree.exponential(depth=6, branching=4, epsilon=0.5)
    rng = np.random.default_rng(3)
    topics = [([rng.choice(64, size=10, replace=False).tolist() for _ in range(6)], [1.0] * 6)]
    verdict, again = (inspect_tree(tree, topics, slots=3).verdict for _ in range(2))
    assert verdict is not None
    assert again is not None
    assert verdict.power is not None
    assert verdict.power < 0.6
    assert verdict.words.startswith("Take ZoomRank.")
    assert "with 3 slots" in verdict.words
    assert "closeness helps" in verdict.words
    assert again.words == verdict.words


def test_the_rival_is_that_of_evaluations() -> None:
    assert COMPETITORS[RIVAL] == recipe("RankUCB1", exploration=RIVAL_EXPLORATION)


@pytest.mark.parametrize(
    ("rival", "says"),
    [
        ([0.2, 0.3, 0.25], "Take ZoomRank."),
        ([0.8, 0.9, 0.4], "ZoomRank and RankUCB1 are not clearly apart: take either."),
        ([0.9, 0.91, 0.92], "RankUCB1 with `exploration=0.003` is ahead for as many visits as these."),
    ],
)
def test_advice_needs_an_interval(rival: list[float], says: str) -> None:
    ours = np.array([0.7, 0.72, 0.71])
    trial = Trial(5, ours, np.array(rival), ours)
    assert trial.words.startswith(says)
    assert trial.words.endswith(
        "collected 0.71: closeness makes no clear difference, and other texts or vectors might."
    )
    assert Trial(5, ours, ours, ours - 0.1).words.endswith("closeness helps.")
    assert Trial(5, ours, ours, ours + 0.1).words.endswith(
        "closeness misleads, and other texts or vectors may do better."
    )


def test_documents_that_are_all_as_far_apart(tmp_path: Path) -> None:
    tree = zr.DocumentTree.from_parents([-1, *[0] * 30, *[1] * 3, *[2] * 3], width=[1.0, 0.999, 0.999, *[0.0] * 34])
    write_inspection(inspect_tree(tree), "flat", tmp_path / "out")
    assert "beyond 20" in (tmp_path / "out" / "report.md").read_text()


def test_the_page(tmp_path: Path) -> None:
    look = inspect_tree(TREE, _topics(True, np.random.default_rng(2)))
    page = write_inspection(look, "three by four", tmp_path / "out").read_text()
    assert "three by four" in page
    assert "In 40 runs of 3,000 simulated visits with 5 slots, ZoomRank collected" in page
    assert "is closer than one that does not with probability" in page
    assert "data:image/svg+xml;base64," in page
    text = (tmp_path / "out" / "report.md").read_text()
    assert "| 4 | 81 | 81 | 0.0 | 0 | 0.000 |" in text
    bare = write_inspection(inspect_tree(TREE), "bare", tmp_path / "bare").read_text()
    assert "labels" not in bare
