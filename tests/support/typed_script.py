"""What somebody writes who uses zoomrank: every ranker with its parameters, a simulation, documents, a client.

Nobody runs it. `mypy --strict` reads it against the built package: then what is right has to be accepted, and every
mistake in `mistakes` be found, as an ignore that ignores nothing is an error, too.
"""

import zoomrank as zr
from zoomrank.client import Client, ClientError, ShownRanking
from zoomrank.documents import Collection


def rankers(tree: zr.DocumentTree) -> list[zr.Ranked]:
    """Every ranker, and all that it can be told."""
    return [
        zr.ZoomRank(
            tree,
            slots=3,
            confidence=0.5,
            growth=2.0,
            optimism=1.0,
            borrow=0.5,
            prior=1.0,
            correlated=True,
            patience=None,
            seed=1,
            duplicates=False,
        ),
        zr.RankUCB1(tree, slots=3, exploration="optimistic", horizon=None, anytime=False, seed=1, duplicates=False),
        zr.RankGridUCB1(
            tree,
            slots=3,
            exploration=0.5,
            horizon=1_000,
            start=1,
            stretch=2.0,
            replay=True,
            anytime=False,
            seed=1,
            duplicates=False,
        ),
        zr.RankEXP3(tree, slots=3, horizon=1_000, anytime=True, seed=1, duplicates=False),
        zr.RankGridEXP3(tree, slots=3, start=1, stretch=2.0, anytime=False, seed=1, duplicates=False),
        zr.RankZoom(tree, slots=3, exploration="pessimistic", horizon=None, anytime=False, seed=1, duplicates=False),
        zr.RankCorrZoom(tree, slots=3, exploration=0.5, horizon=None, anytime=False, seed=1, duplicates=False),
        zr.RankContextZoom(
            tree, slots=3, exploration=0.5, horizon=None, scale=0.2, anytime=False, seed=1, duplicates=False
        ),
        zr.RankKLUCB(tree, slots=3, exploration=1.0, seed=1, duplicates=False),
        zr.CascadeKLUCB(tree, slots=3, exploration=1.0, seed=1, duplicates=False),
        zr.RankExploreCommit(tree, slots=3, looks=2, seed=1, duplicates=False),
        zr.RankThompson(tree, slots=3, prior=1.0, correlated=True, seed=1, duplicates=False),
        zr.RankRandom(tree, slots=3, seed=1, duplicates=False),
        zr.FixedRanking(tree, documents=[0, 1, 2], seed=1),
    ]


def learning(tree: zr.DocumentTree) -> float:
    """By hand, and simulated."""
    users = zr.users.two_peaks(tree, background=0.05, seed=7)
    ranker = zr.ZoomRank(tree, slots=3)
    ranking = ranker.rank()
    shown: list[str | int] = list(ranking.documents)
    ranker.learn(ranking, click=None if not shown else 0)
    trace = zr.simulate(ranker, users, 1_000, seed=7, delay=3, windows=10)
    best = users.greedy(slots=3)
    return trace.rate / best.satisfaction


def documents() -> Collection:
    """Placed by words, kept, loaded."""
    collection = Collection.from_texts(["an owl", "a hen"], ids=["owl", "hen"], titles=["Owl", "Hen"], seed=0)
    collection.save("pages.zoom")
    titles: list[str] = [document.title for document in collection]
    return collection if titles else Collection.from_taxonomy({"owl": "Animals > Birds"}, titles={"owl": "Owl"})


def service(collection: Collection) -> int:
    """A service far away."""
    try:
        with Client("http://127.0.0.1:8000", key="k", timeout=1.0) as client:
            client.create_collection("shop", collection, {"slots": 3})
            shown: ShownRanking = client.rank("shop", "owl", slots=2, excluded=["hen"])
            client.feedback(shown, clicked=shown.ids[0])
            return client.collection("shop")["impressions"]
    except ClientError as error:
        return error.status


def mistakes(tree: zr.DocumentTree, client: Client) -> None:
    """None of these may pass."""
    zr.ZoomRank(tree, slots="three")  # type: ignore[arg-type]
    zr.ZoomRank("tree")  # type: ignore[arg-type]
    zr.simulate(zr.RankZoom(tree), tree, 1_000)  # type: ignore[arg-type]
    zr.FixedRanking(tree, ranking=[1, 2])  # type: ignore[call-arg]
    zr.RankTree(tree)  # type: ignore[attr-defined]
    Collection.from_texts(["an owl"], name="pages")  # type: ignore[call-arg]
    client.rank("shop")  # type: ignore[call-arg]
    client.collection("shop")["size"]  # type: ignore[typeddict-item]
