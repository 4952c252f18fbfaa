"""`kill -9` at random moments under load: nothing acknowledged is lost, nothing counts twice, the log has it all.

One kill in `make test`, a few on both stores in `make test-all`; `ZOOMRANK_KILLS=50 pytest -s
tests/service/test_kill.py` kills as often as you like.
"""

import os

import pytest

from tests.support.killing import torment
from tests.support.services import Place

KILLS = int(os.environ.get("ZOOMRANK_KILLS", "5"))
SEED = int(os.environ.get("ZOOMRANK_KILL_SEED", "7"))


def test_killed_once(sqlite: Place) -> None:
    numbers = torment(sqlite, 1, 20, longest=1.0, similar="words", no_feedback="unseen")  # after 0.9 s
    assert numbers["kills"] == 1
    assert numbers["feedback acknowledged"] > 0
    assert numbers["outcomes in the log"] >= numbers["feedback acknowledged"]


@pytest.mark.full
@pytest.mark.parametrize("similar", ["off", "words"])
def test_killed_again_and_again(place: Place, similar: str) -> None:
    no_feedback = "unseen" if similar == "words" else "abandoned"
    longest = 0.5 if KILLS < 10 else 1.5
    numbers = torment(place, KILLS, SEED, longest=longest, similar=similar, no_feedback=no_feedback)
    print(numbers)
    assert (numbers["loans in the log"] > 0) == (similar == "words")
    assert numbers["feedback acknowledged"] > 0
    assert numbers["asked again"] > 0
    assert numbers["visitors counted"] > 0
    assert numbers["changes acknowledged"] > 0
    assert numbers["impressions void"] > 0 or KILLS < 10  # few lives may have none
    assert numbers["outcomes in the log"] >= numbers["feedback acknowledged"]
