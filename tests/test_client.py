"""The client against a real service on this machine, and against ones that fail in every way."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from tests.support.serving import serving
from zoomrank.cli import main
from zoomrank.cli import sample_library as sample
from zoomrank.client import Client, ClientError, ShownRanking
from zoomrank.documents import Collection, Document
from zoomrank.errors import ParameterError
from zoomrank.service.http.access import Keys

ROOT = Path(__file__).parent.parent
OWLS: list[dict[str, Any]] = [
    {"id": "barn", "title": "Barn owls", "url": "https://birds.example/barn", "path": ["Animals", "Birds"]},
    {"id": "snow", "title": "Snowy owls", "path": ["Animals", "Birds"]},
    {"id": "pike", "path": ["Animals", "Fish"]},
    {"id": "oak", "path": ["Plants"]},
]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A service with keys, in a thread of this process."""
    keys = Keys({"a" * 16: "admin", "r" * 16: "rank", "e" * 16: "read"})
    with serving(tmp_path_factory.mktemp("service"), keys=keys) as address:
        yield address


@pytest.fixture
def client(address: str) -> Iterator[Client]:
    with Client(address, "a" * 16, trust_env=False) as client:
        yield client


def test_documents_go_in_and_what_was_learned_comes_out(client: Client) -> None:
    made = client.create_collection("owls", OWLS, {"slots": 2})
    assert (made["documents"], made["settings"]["slots"]) == (4, 2)
    assert client.collection("owls") == made
    assert "owls" in [one["name"] for one in client.collections()]
    placed = client.documents("owls", limit=2)
    assert [one["path"] for one in placed] == [["Animals", "Birds"]] * 2
    shown = client.rank("owls", "owl")
    assert len(shown.documents) == len(set(shown.ids)) == 2
    assert client.feedback(shown, shown.ids[1]) == "learned"
    assert client.feedback(shown.impression, shown.ids[1]) == "repeated"
    one = client.rank("owls", "owl", slots=1, eligible=["barn", "snow", "pike"], excluded=["pike"])
    known = {
        "barn": Document("barn", "Barn owls", "https://birds.example/barn"),
        "snow": Document("snow", "Snowy owls"),
    }
    assert one.documents == [known[str(one.ids[0])]]
    two = client.rank("owls", "owl")
    results = client.feedback_batch([(one, None), (two, "nothing"), ("no-such", None), (one, one.ids[0])])
    assert [result.get("status", result.get("error")) for result in results] == [
        "learned",
        "unusable",
        "unknown",
        "contradiction",
    ]
    about = client.query("owls", "owl")
    assert (about["impressions"], about["satisfied"], about["abandoned"], about["waiting"]) == (3, 1, 1, 1)
    assert len(about["ranking"]) == 2
    assert all(document["why"] for document in about["ranking"])
    assert all(document["trial"] is not None for document in about["ranking"])
    assert about["forecast"] is not None
    assert len(about["forecast"]["slots"]) == 2
    assert client.queries("owls")[0]["query"] == "owl"
    assert client.tree("owls", "owl")[0]["label"] == "owls"
    for activity in (client.activity("owls"), client.activity(seconds=600, points=10)):
        assert sum(activity["impressions"]) >= 3
    assert client.health() == "ok"
    (alone,) = client.replicas()["replicas"]
    assert (alone["partitions"], alone["chair"]) == (256, True)
    assert alone["load"] is not None
    assert alone["load"]["learners"] >= 1


def test_more_than_a_click_is_told_at_once_or_bit_by_bit(client: Client) -> None:
    client.create_collection("bought", OWLS, {"slots": 3, "satisfied_by": "purchase"})
    shown = client.rank("bought", "owl", eligible=["barn", "snow", "new"], unknown="skip", fewer=True)
    assert set(shown.ids) == {"barn", "snow"}
    assert client.feedback(shown, looked_at=1) == "noted"
    assert client.feedback(shown, iter(shown.ids)) == "noted"
    assert client.feedback(shown, disliked=(shown.ids[0],), purchased=shown.ids[1]) == "learned"
    assert client.feedback(shown, purchased=[shown.ids[1]]) == "repeated"
    another = client.rank("bought", "owl")
    results = client.feedback_batch([(another, another.ids[:2]), (another, None), (shown, None)])
    assert [result["status"] for result in results] == ["noted", "learned", "repeated"]
    about = client.query("bought", "owl")
    assert (about["satisfied"], about["abandoned"], about["examined_by_slot"]) == (1, 1, [2, 2, 1])
    nothing = client.rank("bought", "owl", eligible=["new"], unknown="skip", fewer=True)
    assert (nothing.impression, nothing.ids) == ("", [])
    with pytest.raises(ParameterError, match="Nothing was shown"):
        client.feedback(nothing, None)


def test_collections_are_sent_as_their_files(client: Client) -> None:
    collection = Collection.from_texts(
        ["barn owl", "snowy owl", "pike", "trout"], ids=[3, 1, 2, 0], titles=list("abcd")
    )
    made = client.create_collection("a.collection", collection, {"slots": 3, "no_feedback": "unseen"})
    assert (made["documents"], made["settings"]["no_feedback"]) == (4, "unseen")
    sent = {document.id: document.title for document in collection}
    assert {document["id"]: document["title"] for document in client.documents("a.collection")} == sent
    assert set(client.rank("a.collection", "owl").ids) < set(sent)


def test_documents_may_be_documents(client: Client) -> None:
    client.create_collection("texts", [Document("a", text="barn owl"), Document("b", text="pike")], {"slots": 1})
    assert client.rank("texts", "owl").ids[0] in ("a", "b")


def test_a_path_is_never_taken_for_another(client: Client, address: str) -> None:
    """What some libraries and proxies leave of `documents/..` has a slash at its end: it once named the collection."""
    client.create_collection("slashes", OWLS, {"slots": 1})
    key = {"Authorization": f"Bearer {'a' * 16}"}
    for method in ("DELETE", "PUT", "GET"):
        response = httpx.request(method, f"{address}/v1/collections/slashes/", headers=key, trust_env=False)
        assert response.status_code in (404, 405)
    assert client.collection("slashes")["documents"] == len(OWLS)


def test_documents_of_earlier_versions_with_dots_for_an_id_can_be_removed(client: Client) -> None:
    client.create_collection(
        "dotted", Collection.from_taxonomy(dict.fromkeys(["..", ".", "owl"], "Pages")), {"slots": 1}
    )
    for one in ("..", "."):
        for act in (client.remove_document, client.document, client.remove_experiment, client.experiment):
            with pytest.raises(ParameterError, match="cannot be part of a path"):
                act("dotted", one)
        with pytest.raises(ParameterError, match="cannot be part of a path"):
            client.remove_collection(one)
        client.change_documents("dotted", [{"remove": one}])
    assert client.collection("dotted")["documents"] == 1


@pytest.mark.parametrize("bad", ["", ".", "..", "a\nb", "\x00", "x\x7f", "\x85"])
def test_ids_that_nothing_can_carry_are_refused(client: Client, bad: str) -> None:
    client.create_collection("ids" + bad.encode().hex(), OWLS, {"slots": 1})
    with pytest.raises(ClientError, match="an id cannot"):
        client.create_collection("bad", [*OWLS, {"id": bad, "path": ["Plants"]}], {"slots": 1})
    for verb in ("add", "put"):
        with pytest.raises(ClientError, match="an id cannot"):
            client.change_documents("ids" + bad.encode().hex(), [{verb: bad, "path": ["Plants"]}])


def test_responses_that_get_lost_leave_one_impression(client: Client, address: str) -> None:
    """As behind a proxy that drops every response but the last."""
    client.create_collection("lossy", OWLS, {"slots": 2})
    lost = 3

    class Lossy(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            nonlocal lost
            response = super().handle_request(request)
            if lost:
                lost -= 1
                response.close()
                raise httpx.ReadError("dropped")
            return response

    with Client(address, "a" * 16, backoff=0.001, transport=Lossy()) as far:
        shown = far.rank("lossy", "owl")
        assert lost == 0
        again = [far.rank("lossy", "owl", once="mine").impression for _ in range(2)]
        assert again[0] == again[1] != shown.impression
    assert client.query("lossy", "owl")["impressions"] == 2


def test_several_rankings_are_one_request(client: Client) -> None:
    client.create_collection("several", OWLS, {"slots": 2})
    place: dict[str, Any] = {"eligible": iter(["barn", "pike"]), "slots": 1, "propensities": True}
    requests: list[str | dict[str, Any]] = ["Barn  owl", {"query": "owl", **place}]
    requests += [{"query": "owl", "eligible": ["none"]}, {"query": "refuse"}]
    told = client.rank_batch("several", requests, once="mine")
    requests[1] = {"query": "owl", **place, "eligible": ("barn", "pike")}
    again = client.rank_batch("several", requests, once="mine")
    assert again[:2] + again[3:] == told[:2] + told[3:]
    first, second, refused, last = told
    assert isinstance(first, ShownRanking)
    assert isinstance(second, ShownRanking)
    assert isinstance(refused, ClientError)
    assert isinstance(last, ShownRanking)
    assert [one.query for one in (first, second, last)] == ["barn owl", "owl", "refuse"]
    assert (set(second.ids) < {"barn", "pike"}, second.propensities) == (True, [0.5])
    assert (refused.status, refused.code) == (200, "unusable")
    assert client.feedback(first, first.ids[0]) == "learned"
    assert refusal(lambda: client.rank_batch("several", [{"query": "owl", "slot": 1}])) == (422, "malformed")
    assert client.query("several", "owl")["impressions"] == 1


def test_what_was_shown_is_seen_and_taken_back(client: Client) -> None:
    client.create_collection("undone", OWLS, {"slots": 2, "no_feedback": "unseen"})
    shown = client.rank("undone", "owl")
    assert [client.seen(shown), client.seen(shown.impression)] == ["noted", "repeated"]
    assert client.void("undone", query="owl", dry_run=True) == {
        "impressions": 1,
        "queries": 1,
        "retired": 0,
        "dry_run": True,
    }
    assert client.void("undone", until=time.time() - 60)["impressions"] == 0
    assert client.void("undone", key="a" * 16, since=0)["impressions"] == 1
    client.remove_query("undone", "owl")
    with pytest.raises(ClientError, match="Nobody has asked"):
        client.query("undone", "owl")


def test_a_query_may_say_where_it_belongs(client: Client) -> None:
    client.create_collection("by-paths", OWLS, {"slots": 1, "similar": "paths"})
    client.create_collection("by-vectors", OWLS, {"slots": 1, "similar": "vectors"})
    for name, one, other in (
        ("by-paths", "Birds > Owls", ("Birds", "Owls")),
        ("by-vectors", [1, 2.5], np.array([1, 2.4], np.float32)),
    ):
        shown = client.rank(name, "Barn  owl", about=one)
        assert shown.query == "barn owl"
        client.feedback(shown, shown.ids[0])
        client.rank(name, "snowy owl", about=other)
        support = client.query(name, "snowy owl")["support"]
        assert support is not None
        assert support["lenders"] == [{"query": "barn owl", "impressions": 1}]
    assert refusal(lambda: client.rank("by-vectors", "owl", about="Birds")) == (422, "unusable")


def refusal(call: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ClientError) as refused:
        call()
    assert refused.value.message
    return refused.value.status, refused.value.code


def test_refusals_say_what_is_wrong(client: Client, address: str) -> None:
    client.create_collection("small", OWLS, {"slots": 2})
    shown = client.rank("small", "owl")
    assert refusal(lambda: client.create_collection("small", OWLS, {"slots": 2})) == (409, "exists")
    assert refusal(lambda: client.create_collection("few", OWLS)) == (422, "unusable")  # five slots
    assert refusal(lambda: client.create_collection("few", OWLS, {"slot": 2})) == (422, "malformed")
    assert refusal(lambda: client.collection("../health")) == (404, "http")
    assert refusal(lambda: client.rank("nowhere", "owl")) == (404, "unknown")
    assert refusal(lambda: client.query("small", "never asked")) == (404, "unknown")
    assert refusal(lambda: client.rank("small", "owl", slots=3)) == (422, "unusable")
    assert refusal(lambda: client.rank("small", "owl", eligible=["nobody"])) == (422, "unusable")
    assert refusal(lambda: client.feedback("made-up", None)) == (404, "unknown")
    assert refusal(lambda: client.feedback(shown, "nobody")) == (422, "unusable")
    assert client.feedback(shown, None) == "learned"
    assert refusal(lambda: client.feedback(shown, shown.ids[0])) == (409, "contradiction")
    client.create_collection("quick", OWLS, {"slots": 2, "feedback_within": 0.001})
    late = client.rank("quick", "owl")
    time.sleep(0.01)
    assert refusal(lambda: client.feedback(late, None)) == (410, "expired")


def test_keys_have_roles(client: Client, address: str) -> None:
    client.create_collection("guarded", OWLS, {"slots": 2})
    with (
        Client(address, trust_env=False) as nobody,
        Client(address, "r" * 16, trust_env=False) as ranks,
        Client(address, "e" * 16, trust_env=False) as reads,
    ):
        assert nobody.health() == "ok"
        assert refusal(nobody.collections) == (401, "missing_key")
        assert ranks.feedback(ranks.rank("guarded", "owl"), None) == "learned"
        assert refusal(lambda: ranks.query("guarded", "owl")) == (403, "forbidden")
        assert reads.query("guarded", "owl")["abandoned"] == 1
        assert refusal(lambda: reads.rank("guarded", "owl")) == (403, "forbidden")
        assert refusal(lambda: reads.create_collection("mine", OWLS)) == (403, "forbidden")


Reply = httpx.Response | type[httpx.TransportError]


def scripted(*replies: Reply) -> tuple[Client, list[httpx.Request]]:
    """A client whose service responds by a script."""
    left, seen = list(replies), []

    def reply(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        next_one = left.pop(0)
        if isinstance(next_one, httpx.Response):
            return next_one
        raise next_one("on purpose", request=request)

    return Client("http://service", transport=httpx.MockTransport(reply), backoff=0.001), seen


def learned() -> httpx.Response:
    return httpx.Response(200, json={"impression": "i", "status": "learned"})


def busy() -> httpx.Response:
    return httpx.Response(503, json={"error": "storage", "message": "Full."}, headers={"Retry-After": "0.002"})


def test_what_failed_on_the_way_is_sent_again() -> None:
    client, seen = scripted(httpx.ConnectError, busy(), httpx.RemoteProtocolError, learned())
    with client:
        assert client.feedback("i", "barn") == "learned"
    assert [json.loads(request.content) for request in seen] == [{"impression": "i", "clicked": "barn"}] * 4


def test_it_gives_up_in_the_end() -> None:
    client, seen = scripted(*[httpx.ReadError] * 4, *[busy() for _ in range(4)])
    with client:
        assert refusal(lambda: client.rank("c", "q")) == (0, "unreachable")
        assert refusal(lambda: client.rank("c", "q")) == (503, "storage")
    assert len(seen) == 8


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (httpx.ReadTimeout, (0, "timeout")),
        (httpx.UnsupportedProtocol, (0, "unreachable")),
        (httpx.Response(410, json={"error": "expired", "message": "Over."}), (410, "expired")),
        (httpx.Response(500, json={"error": "internal", "message": "Oh."}), (500, "internal")),
        (httpx.Response(200, html="<h1>Hello</h1>"), (200, "http")),
    ],
)
def test_other_failures_are_told_at_once(reply: Reply, expected: tuple[int, str]) -> None:
    client, seen = scripted(reply)
    with client:
        assert refusal(lambda: client.rank("c", "q")) == expected
    assert len(seen) == 1


@pytest.mark.parametrize("status", [500, 502, 504])
def test_what_was_lost_before_the_service_is_asked_for_again(status: int) -> None:
    """By a proxy, or by what starts replicas."""
    lost = httpx.Response(status, html="<h1>Nobody there</h1>")
    client, seen = scripted(lost, lost, lost, lost)
    with client:
        assert refusal(lambda: client.rank("c", "q")) == (status, "http")
    assert len(seen) == 4


def test_making_a_collection_is_never_repeated() -> None:
    client, seen = scripted(httpx.ReadError)
    with client:
        assert refusal(lambda: client.create_collection("c", OWLS)) == (0, "unreachable")
    assert len(seen) == 1


def test_without_httpx_it_says_what_to_install() -> None:
    code = "import sys; sys.modules['httpx'] = None; import zoomrank.client"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)  # noqa: S603
    assert "pip install 'zoomrank[client]'" in done.stderr


def test_the_page_about_the_service_runs(
    address: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    text = (ROOT / "docs" / "how-to" / "call-from-python.md").read_text()
    known: dict[str, Any] = {}
    for example in re.findall(r"```python\n(.*?)```", text, flags=re.DOTALL):
        example = example.replace("http://127.0.0.1:8000", address).replace('key="KEY"', f'key="{"a" * 16}"')
        exec(compile(example, "call-from-python.md", "exec", dont_inherit=True), known)  # noqa: S102
    assert re.search(r"\nlearned\n.*\n409 contradiction", capsys.readouterr().out)

    async def visit() -> list[str]:
        transport = httpx.ASGITransport(known["app"])
        async with httpx.AsyncClient(transport=transport, base_url="http://page") as browser:
            page = (await browser.get("/search", params={"q": "what barks"})).text
            impression, clicked = re.findall(r'data-(?:impression|id)="([^"]+)"', page)[:2]
            body = json.dumps({"impression": impression, "clicked": clicked})
            for strange, status in ((" ", 200), ("", 200), ("x" * 600, 422)):
                said = await browser.get("/search", params={"q": strange})
                assert said.status_code == status
                assert said.text == "<p>What are you looking for?</p>" or "512" in said.text
            return [(await browser.post("/clicked", content=body)).json() for _ in range(2)]

    with known["service"]:
        assert asyncio.run(visit()) == ["learned", "repeated"]


@pytest.mark.parametrize("key", ["…", "k" * 20 + "é", "first\nsecond", "k\x00"])
def test_a_key_that_cannot_be_sent_is_refused(key: str) -> None:
    with pytest.raises(ParameterError, match="cannot be sent, since headers carry plain ASCII alone") as refused:
        Client("http://127.0.0.1:8000", key)
    assert "kkk" not in str(refused.value)


def test_the_library_is_worth_a_diverse_ranking() -> None:
    collection = sample.library()
    assert len({document.title for document in collection}) == len(collection)
    for query, users in sample.visitors(collection).items():
        best = users.greedy(slots=3).documents
        shelves = {collection.tree.name(collection.tree.leaf(book)).rpartition(" > ")[0] for book in best}
        assert len(shelves) == 3, query


def test_demo_service_learns_and_stops(tmp_path: Path) -> None:
    keys, data = tmp_path / "keys", tmp_path / "data"
    keys.write_text(f"read {'e' * 16}\n")
    command = ["demo-service", "--port", "0", "--visitors-per-second", "100", "--keys", str(keys), "--data", str(data)]
    process = subprocess.Popen(  # noqa: S603
        [sys.executable, "-c", "import sys; from zoomrank.cli import main; sys.exit(main(sys.argv[1:]))", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        with Client(address, "e" * 16, trust_env=False) as client:
            until = time.monotonic() + 120
            while time.monotonic() < until and not any(one["satisfied"] > 5 for one in client.collections()):
                time.sleep(0.05)
            library = client.collection("library")
            assert library["satisfied"] > 5
            assert {row["query"] for row in client.queries("library")} <= set(sample.TASTES)
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert "Traceback" not in told
    assert "zoomrank: stopped; everything is kept in" in told


def test_demo_experiment_looks_and_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo-experiment", "--visits", "600"]) == 0
    told = capsys.readouterr().out.splitlines()
    looks = [line for line in told if " visits, " in line]
    assert [line.split()[0] for line in looks] == ["500", "600"]
    assert all("is not known yet: between -" in line for line in looks)  # so few can tell nothing
    assert "The decision: nothing was promoted" in told[-1]
    assert main(["demo-experiment", "--visits", "10"]) == 2


def test_nobody_comes_backwards(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo-service", "--visitors-per-second", "-1"]) == 2
    assert "must be 0 or more" in capsys.readouterr().err
