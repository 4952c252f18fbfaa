"""What `deploy/` says: unprivileged, read-only, healthy or not, and with options that the service has.

`python deploy/check.py` does the steps of the Dockerfile, which takes minutes.
"""

from __future__ import annotations

import configparser
import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.test_docs import ROOT
from zoomrank.cli import make_parser

DEPLOY = ROOT / "deploy"
UNIT = DEPLOY / "zoomrank.service"

pytestmark = pytest.mark.full


def steps(stage: int) -> dict[str, list[str]]:
    """The steps of a stage of the Dockerfile, by their kinds."""
    found: dict[str, list[str]] = {}
    text = (DEPLOY / "Dockerfile").read_text()
    for line in text.split("\nFROM ")[stage].splitlines()[1:]:
        if line and not line.startswith("#"):
            found.setdefault(line.split()[0], []).append(line.partition(" ")[2])
    return found


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((DEPLOY / "compose.yaml").read_text())
    return found


def unit() -> dict[str, list[str]]:
    """What the section of the service says; some things are said several times."""
    section = UNIT.read_text().partition("[Service]\n")[2].partition("[Install]")[0]
    found: dict[str, list[str]] = {}
    for line in section.splitlines():
        if line and not line.startswith("#"):
            found.setdefault(line.partition("=")[0], []).append(line.partition("=")[2])
    return found


def commands() -> list[list[str]]:
    """All that is ever started: of the image and of the unit."""
    last = steps(2)
    image = json.loads(last["ENTRYPOINT"][0]) + json.loads(last["CMD"][0])
    return [image, shlex.split(unit()["ExecStart"][0])]


@pytest.mark.parametrize("command", commands())
def test_the_service_is_started_with_options_that_it_has(command: list[str]) -> None:
    program, *options = command
    assert Path(program).name == "zoomrank"
    parsed, unknown = make_parser().parse_known_args(options)
    assert unknown == []
    assert parsed.command == "serve"
    assert parsed.keys is not None


def test_the_image_is_unprivileged_and_says_how_it_is() -> None:
    build, last = steps(1), steps(2)
    assert re.fullmatch(r"[1-9]\d*:[1-9]\d*", last["USER"][0])
    (health,) = last["HEALTHCHECK"]
    assert "/v1/ready" in health
    code = json.loads(health.partition(" CMD ")[2])
    compile(code[-1], "HEALTHCHECK", "exec")
    port = re.search(r"'127.0.0.1', (\d+)", code[-1])
    assert port is not None
    assert port[1] == last["EXPOSE"][0] == json.loads(last["CMD"][0])[4]
    assert last["VOLUME"] == ["/data"]
    cache = [line for line in build["ENV"] if "NUMBA_CACHE_DIR" in line]
    assert cache == [line for line in last["ENV"] if "NUMBA" in line]  # kernels are found only by what made them
    assert not any("apt" in step or "pip" in step for step in last["RUN"])


def test_what_the_image_is_made_of_is_there_and_not_ignored() -> None:
    ignored = (DEPLOY / "Dockerfile.dockerignore").read_text().split()
    copied = [word for step in steps(1)["COPY"] for word in step.split()[:-1]]
    assert {f"!{word}" for word in copied} == {word for word in ignored if word.startswith("!")}
    assert all((ROOT / word).exists() for word in copied)


@pytest.mark.parametrize("name", ["service", "postgres"])
def test_containers_cannot_write_to_their_roots_and_get_no_privileges(name: str) -> None:
    one = compose()["services"][name]
    assert one["read_only"] is True
    assert one["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in one["security_opt"]
    assert any(place.startswith("/tmp") for place in one["tmpfs"])  # noqa: S108
    assert one["volumes"]
    assert one.get("user", steps(2)["USER"][0]) not in ("root", "0")


def test_the_service_waits_for_a_healthy_postgresql_and_no_secret_is_in_the_file() -> None:
    services = compose()["services"]
    assert services["service"]["depends_on"] == {"postgres": {"condition": "service_healthy"}}
    assert "pg_isready" in services["postgres"]["healthcheck"]["test"]
    for one in services.values():
        for name, value in one["environment"].items():
            assert "PASSWORD" not in name or value.startswith("${ZOOMRANK_DATABASE_PASSWORD:?")
    assert re.fullmatch(r"postgresql://\w+@postgres/\w+", services["service"]["environment"]["ZOOMRANK_STORE"])
    assert all(port.startswith("127.0.0.1:") for port in services["service"]["ports"])
    assert "ports" not in services["postgres"]
    place = "/run/secrets/" + services["service"]["secrets"][0]
    assert place in json.loads(steps(2)["CMD"][0])
    ignored = (ROOT / ".gitignore").read_text().split()
    assert {"/deploy/keys.txt", "/deploy/.env"} <= set(ignored)


def test_the_unit_is_hardened() -> None:
    said = unit()
    for name in ("DynamicUser", "NoNewPrivileges", "ProtectHome", "PrivateTmp", "PrivateDevices", "RestrictSUIDSGID"):
        assert said[name] == ["yes"]
    assert said["ProtectSystem"] == ["strict"]
    assert said["CapabilityBoundingSet"] == [""]
    assert said["Restart"] == ["on-failure"]
    assert "MemoryDenyWriteExecute" not in said  # kernels are compiled in memory
    assert f"%S/{said['StateDirectory'][0]}" in said["ExecStart"][0]
    assert said["Environment"] == [f"NUMBA_CACHE_DIR=%C/{said['CacheDirectory'][0]}"]
    assert said["LoadCredential"][0].split(":")[0] in said["ExecStart"][0]
    parser = configparser.ConfigParser(strict=False, interpolation=None)
    parser.read(UNIT)
    assert parser.sections() == ["Unit", "Service", "Install"]


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
def test_systemd_understands_the_unit(tmp_path: Path) -> None:
    there = tmp_path / "zoomrank.service"
    there.write_text(UNIT.read_text().replace("/opt/zoomrank/bin/zoomrank", sys.executable))  # it must exist
    for change, good in (("", True), ("[Service]\nNoSuchThing=yes\n", False)):
        there.write_text(there.read_text() + change)
        command = ["systemd-analyze", "verify", str(there)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
        assert ("zoomrank.service" not in done.stdout + done.stderr) == good, done.stderr
