"""Many clients at once, over real connections: no update is lost."""

import threading

from tests.killing import Client, Memory, check, kill, make_collection, nursery
from tests.service import Place


def test_clients_at_once_lose_nothing(place: Place) -> None:
    make_collection(place)
    memory = Memory()
    with nursery() as servers:
        pid, address = servers.start(place, 2**20)
        clients = [Client(address, memory, seed) for seed in range(12)]
        for client in clients:
            client.start()
        enough = threading.Event()
        while len(memory.told) < 400 and any(client.is_alive() for client in clients):
            enough.wait(0.01)
        for client in clients:
            client.stopping = True
            client.join(30)
            assert client.failure is None
        kill(pid)
    assert len(memory.told) >= 400
    assert not memory.unsure
    found = check(place, memory)
    assert len(found.answers) == len(memory.shown)
    assert len(memory.told) <= found.answered
