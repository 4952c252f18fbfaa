"""Foundations: trees at scale, the floor that learners are measured against, and exact probabilities."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

import zoomrank as zr
from research.bench.measure import Row, in_fresh_process, seconds
from zoomrank.spaces.tree_shape import least_common_ancestor
from zoomrank.users.first_click import count_clicks

VISITORS = 1_000_000
SLOTS = 5

BUILD = """
import gc, time, numpy as np, zoomrank as zr
def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 1e6
zr.DocumentTree.from_parents(np.array([-1, 0, 0], np.int32))  # compiled
{prepare}
before, start = resident(), time.perf_counter()
tree = {build}
print(time.perf_counter() - start, resident() - before, len(tree))
"""
COMPLETE = {"prepare": "", "build": "zr.DocumentTree.exponential(depth=7, branching=10)"}
SHUFFLED = {
    "prepare": """
nodes = 19_999_999
name = np.random.default_rng(0).permutation(nodes).astype(np.int32)
parents = np.empty(nodes, np.int32)
parents[name] = np.where(np.arange(nodes) > 0, name[(np.arange(nodes) - 1) // 2], -1)
del name
""",
    "build": "zr.DocumentTree.from_parents(parents)",
}


def spaces() -> Iterator[Row]:
    for name, script in (("10 children a node", COMPLETE), ("binary, parents in random order", SHUFFLED)):
        took, memory, documents = in_fresh_process(BUILD.format(**script))
        yield Row(
            f"tree of {documents:,.0f} documents, {name}", f"{took:.1f} s, {memory:.0f} MB", "seconds, under 1 GB"
        )
    for depth in (15, 23):
        tree = zr.DocumentTree.exponential(depth=depth)
        leaves = np.random.default_rng(0).choice(tree.shape.leaf, size=(1000, 2)).astype(np.int64)

        def queries(parent=tree.shape.parent, pairs=leaves) -> None:  # type: ignore[no-untyped-def]
            for one, other in pairs:
                least_common_ancestor(parent, one, other)

        per_query = seconds(queries) / len(leaves)
        yield Row(
            f"common ancestor in {len(tree):,} documents, called from Python", f"{per_query * 1e6:.2f} µs", "≤ depth"
        )


def floor() -> Iterator[Row]:
    """Measure fixed rankings of 5 out of 32,768, drawn lazily; learners' targets are fractions of the random one."""
    tree = zr.DocumentTree.exponential()
    rng = np.random.default_rng(1)
    rate = {}
    for model, users in (
        ("two peaks", zr.users.two_peaks(tree, seed=7)),
        ("two peaks, mixture", zr.users.two_peaks(tree, seed=7, reading="mixture")),
        ("Chinese Restaurant", zr.users.chinese_restaurant(tree, seed=7)),
    ):
        greedy = users.documents.positions(users.greedy(SLOTS).documents)
        randoms = [rng.choice(len(tree), size=SLOTS, replace=False) for _ in range(5)]
        for name, rankings in (("random", randoms), ("greedy", [greedy])):
            times = [seconds(lambda r=r, u=users: count_clicks(u.state, r, VISITORS, rng), 3) for r in rankings]  # type: ignore[misc]
            rate[model, name] = VISITORS / float(np.mean(times))
            aim = "3 M visits/s" if model == "two peaks" else ""
            yield Row(f"{model}, {name} ranking", f"{rate[model, name] / 1e6:.2f} M visits/s", aim)
    users = zr.users.two_peaks(tree, seed=7)
    whole = seconds(lambda: users.draw(100, rng), 3) / 100
    yield Row("lazy visitors against whole relevance vectors", f"{rate['two peaks', 'random'] * whole:,.0f} ×")
    large = zr.users.two_peaks(zr.DocumentTree.exponential(depth=20), seed=7)
    ranking = rng.choice(len(large), size=SLOTS, replace=False)
    large_rate = VISITORS / seconds(lambda: count_clicks(large.state, ranking, VISITORS, rng), 3)
    yield Row("the same with 1,048,576 documents", f"{large_rate / 1e6:.2f} M visits/s")


def exact() -> Iterator[Row]:
    for depth, aim in ((15, "under 0.1 s"), (20, "a few seconds")):
        tree = zr.DocumentTree.exponential(depth=depth)
        for model in (zr.users.two_peaks, zr.users.chinese_restaurant):
            for reading in ("network", "mixture", "mutations"):
                users = model(tree, seed=7, reading=reading)
                took = seconds(lambda u=users: u.greedy(SLOTS), 3)  # type: ignore[misc]
                name = f"greedy, {SLOTS} of {len(tree):,}, {model.__name__} ({reading})"
                yield Row(name, f"{took * 1e3:.1f} ms", aim)
        users = zr.users.two_peaks(tree, seed=7)
        ranking = users.greedy(SLOTS).documents
        yield Row(
            f"satisfaction of one ranking, {len(tree):,} documents",
            f"{seconds(lambda u=users, r=ranking: [u.satisfaction(r) for _ in range(100)]) * 1e4:.1f} µs",  # type: ignore[misc]
        )


MILLION = """
import time
import numpy as np
from research.bench.measure import peak_memory
from zoomrank.documents import Collection
rng = np.random.default_rng(1)
topics = rng.normal(size=(2_000, 256)).astype(np.float32)
vectors = np.empty((1_000_000, 256), np.float32)
for start in range(0, len(vectors), 50_000):
    near = topics[rng.integers(len(topics), size=50_000)]
    vectors[start : start + 50_000] = near + 0.5 * rng.standard_normal((50_000, 256), np.float32)
start = time.perf_counter()
collection = Collection.from_vectors(vectors, keep_vectors=False)
seconds = time.perf_counter() - start
print(seconds, peak_memory() / 1000, collection.tree.depth)
"""

KEEP = """
import numpy as np, zoomrank as zr
from zoomrank.documents import Collection
million = np.arange(1_000_000)
tree = zr.DocumentTree.exponential(depth=6, branching=10).with_documents({ids})
texts = [f"some words about the thing with the number {{number}}" for number in million]
vectors = np.random.default_rng(0).standard_normal((len(million), 64), np.float32)
Collection(tree, texts=texts, vectors=vectors).save({path!r})
"""
LOAD = """
import time
from zoomrank.documents import Collection, load_collection
Collection.from_taxonomy(["A > B", "A > C", "D"]).save({path!r} + ".small")
load_collection({path!r} + ".small")  # compiled
def resident():
    with open("/proc/self/status") as file:
        said = dict(line.split(":") for line in file)
    return int(said["VmRSS"].split()[0]) / 1e3, int(said["RssAnon"].split()[0]) / 1e3
(all_before, own_before), start = resident(), time.perf_counter()
collection = load_collection({path!r})
seconds, (all_after, own_after) = time.perf_counter() - start, resident()
print(seconds, all_before, all_after, own_after - own_before)
"""


def documents() -> Iterator[Row]:
    """Build a tree over a million vectors, 2,000 noisy clusters; and load a collection as large by memory map."""
    taken, memory, depth = in_fresh_process(MILLION)
    yield Row("tree of 1,000,000 vectors of 256 dimensions", f"{taken / 60:.1f} min", "10 min")
    yield Row("its memory, vectors included", f"{memory:.1f} GB", "6 GB")
    yield Row("its depth", f"{depth:.0f}")
    with tempfile.TemporaryDirectory() as folder:
        for kind, ids in (("whole numbers", "million"), ("texts", '[f"doc-{number}" for number in million]')):
            path = Path(folder) / "million.zoom"
            in_fresh_process(KEEP.format(ids=ids, path=str(path)))
            taken, before, after, own = in_fresh_process(LOAD.format(path=str(path)))
            what = f"loading 1,000,000 documents with vectors, a file of {path.stat().st_size / 1e6:.0f} MB"
            yield Row(f"{what}, ids are {kind}", f"{taken:.2f} s")
            yield Row("resident before and after", f"{before:.0f} MB, {after:.0f} MB ({own:.0f} MB not in the file)")
