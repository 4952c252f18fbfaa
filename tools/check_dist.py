"""`make dist`: check that the built distributions can be published.

Inspects the source archive and the wheel, installs the wheel into an empty environment, and runs it there as after
`pip install zoomrank`.
"""

import argparse
import email
import email.message
import os
import subprocess
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "zoomrank"


def main() -> None:
    """Check the distributions in a folder, and print the result."""
    parser = argparse.ArgumentParser(prog="check_dist", description=__doc__, allow_abbrev=False)
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder with a wheel and a source archive")
    folder = parser.parse_args().folder
    wheel, archive = built(folder)
    check_wheel(wheel)
    check_archive(archive)
    print(f"{wheel.name}: {len(files_of_package())} files, as expected; installing it into an empty environment")
    with tempfile.TemporaryDirectory() as place:
        python = environment(Path(place), pip=True)
        pip = [str(python), "-m", "pip", "install", "--quiet", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, str(wheel)], check=True)  # noqa: S603
        check_installed(python)
    print("It runs.")


def built(folder: Path) -> tuple[Path, Path]:
    """Return the wheel and the source archive in a folder, which must have one of each."""
    (wheel,), (archive,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    return wheel, archive


def files_of_package() -> set[str]:
    """Return the files of the package, sources and pages, by their paths in it."""
    files = (file for file in PACKAGE.rglob("*") if file.is_file() and "__pycache__" not in file.parts)
    return {f"zoomrank/{file.relative_to(PACKAGE).as_posix()}" for file in files}


def check_wheel(wheel: Path) -> None:
    """Check that the wheel has the whole package and nothing else, a licence, and metadata."""
    with zipfile.ZipFile(wheel) as content:
        names = set(content.namelist())
        about = next(name for name in names if name.endswith(".dist-info/METADATA"))
        check_metadata(email.message_from_bytes(content.read(about)))
        licence = content.read(f"{Path(about).parent.as_posix()}/licenses/LICENSE")
    expect({name for name in names if ".dist-info/" not in name} == files_of_package(), "the package, and nothing else")
    expect({"zoomrank/py.typed", "zoomrank/service/http/page/index.html"} <= names, "types and the page are inside")
    expect(licence == (ROOT / "LICENSE").read_bytes(), "the licence is inside")


def check_metadata(metadata: email.message.Message) -> None:
    """Check that the metadata names the package, its Python versions, its licence, and that it has types."""
    expect(metadata["Name"] == "zoomrank", "its name")
    expect(f'__version__ = "{metadata["Version"]}"' in (PACKAGE / "__init__.py").read_text(), "one version")
    expect(metadata["License-Expression"] == "Apache-2.0", "a licence by its name")
    expect(metadata["Requires-Python"] == ">=3.10", "every Python that Numba runs on")
    expect("Typing :: Typed" in metadata.get_all("Classifier", []), "a word that there are types")
    expect(str(metadata.get_payload()).startswith("# zoomrank"), "a description")


def check_archive(archive: Path) -> None:
    """Check that the archive has the sources and the JavaScript client, but no tests, pictures or results."""
    with tarfile.open(archive) as content:
        names = {name.partition("/")[2] for name in content.getnames()}
    beside = {"CHANGELOG.md", "LICENSE", "README.md", "SECURITY.md", "pyproject.toml", "PKG-INFO", ".gitignore"}
    beside |= {file.relative_to(ROOT).as_posix() for file in (ROOT / "clients").rglob("*") if file.is_file()}
    expect({name.removeprefix("src/") for name in names - beside} == files_of_package(), "sources, and nothing else")
    expect(beside <= names and "clients/javascript/zoomrank.js" in names, "what stands beside them")


def environment(folder: Path, *, pip: bool) -> Path:
    """Return the Python of a new virtual environment, empty except for pip if asked for."""
    venv.create(folder, symlinks=os.name != "nt", with_pip=pip)
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def check_installed(python: Path) -> None:
    """Check a plain install: the demo runs, and a command that needs an extra names it."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    zoomrank = [str(python.with_name("zoomrank"))]
    demo = [*zoomrank, "demo", "--depth", "6", "--visits", "200"]
    shown = subprocess.run(demo, check=True, env=environment, capture_output=True, text=True)  # noqa: S603
    expect("64 documents" in shown.stdout and "What to try next" in shown.stdout, "a demo")
    served = subprocess.run([*zoomrank, "serve"], check=False, env=environment, capture_output=True, text=True)  # noqa: S603
    expect(served.returncode == 2 and "pip install 'zoomrank[service]'" in served.stderr, "a word about extras")


def expect(holds: bool, what: str) -> None:
    """Exit with a message unless a condition holds."""
    if not holds:
        raise SystemExit(f"check_dist: failed: {what}")


if __name__ == "__main__":
    main()
