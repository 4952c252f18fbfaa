"""Stores that earlier versions have written: each opens with everything in it. `tests/fixtures` has one per layout."""

import gzip
from contextlib import closing
from pathlib import Path

from tests.support.services import Place, look_at, started
from zoomrank.service.engine import Engine
from zoomrank.service.verification import verify

STORE = Path(__file__).parents[1] / "fixtures" / "layout-8.sqlite.gz"


async def _answers(engine: Engine, query: str) -> int:
    learner = await engine.learners.find(engine.collections.by_name["shop"], query)
    assert learner is not None
    return learner.counts.satisfied + learner.counts.abandoned


async def test_a_store_whose_bounds_an_earlier_rule_has_computed(tmp_path: Path) -> None:
    """Counts are kept, bounds recomputed; the audit compares counts, also after the learners have gone on."""
    place = Place(tmp_path / "data")
    place.folder.mkdir()
    (place.folder / "zoomrank.sqlite").write_bytes(gzip.decompress(STORE.read_bytes()))
    for opened in range(3):
        async with started(place) as engine:
            assert await _answers(engine, "snowy owl") == 60
            assert await _answers(engine, "owl") == 25 + 7 * opened
            assert await _answers(engine, "oak") == 40
            for _ in range(7):
                impression, documents = await engine.rank(engine.collections.by_name["shop"], "owl")
                assert await engine.feedback(impression, documents[0]["id"]) == "learned"
        with closing(look_at(place.open())) as view:
            assert verify(view).findings == []
        place.close()
