"""What a service logged is judged: the propensities that an export has are those that its rankings had."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.support.services import Clock, Place, client_of, served, started
from zoomrank.errors import CannotTellError
from zoomrank.judging import ImpressionLog, judge, read_log
from zoomrank.service.feedback import ImpressionFeedback

VISITS = 1_500


async def exported_log(place: Place, file: Path, explore: float) -> ImpressionLog:
    """The log of a query whose visitors like the documents that come first in the collection best."""
    rng = np.random.default_rng(1)
    async with started(place, Clock()) as engine, client_of(engine) as client:
        shop = await served(engine, explore=explore, slots=1)
        places = {document: place for place, document in enumerate(shop.version.tree.documents)}
        for _ in range(VISITS):
            name, documents = await engine.rank(shop, "query")
            ids = [one["id"] for one in documents]
            liked = next((one for one in ids if rng.random() < earns(places[one])), None)
            await engine.record_feedback(name, ImpressionFeedback.of_click(liked))
        file.write_bytes((await client.get("/v1/collections/shop/export")).content)
    return read_log(file)


def earns(place: int) -> float:
    return 0.6 / (1 + place)


async def test_an_export_is_judged(sqlite: Place, tmp_path: Path) -> None:
    log = await exported_log(sqlite, tmp_path / "log.jsonl", explore=0.5)
    assert len(log) == VISITS
    assert not np.isnan(log.propensity).any()
    assert (log.propensity < 1).any()
    often = Counter(log.shown[:, 0].tolist()).most_common(1)[0][0]
    found = judge(log, [log.documents[often]])
    plain = (log.click[log.shown[:, 0] == often] == 0).mean()  # fair, too, but for what the learner made of its clicks
    assert abs(found.target.value - plain) < 4 * found.target.error
    assert 100 <= found.sample <= VISITS


async def test_what_a_service_does_not_know_is_refused(sqlite: Place, tmp_path: Path) -> None:
    log = await exported_log(sqlite, tmp_path / "log.jsonl", explore=0.5)
    with pytest.raises(CannotTellError, match="never shows the target's rankings"):
        judge(log, ["nothing of the kind"])
    unknown = ImpressionLog(**{**vars(log), "propensity": np.full(log.propensity.shape, np.nan)})
    with pytest.raises(CannotTellError, match="have no propensities"):
        judge(unknown, [log.documents[0]])
