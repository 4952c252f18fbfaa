"""`zoomrank reproduce` as people run it: to the end, killed in the middle, on a cluster, and asked for nonsense."""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from zoomrank.cli import main
from zoomrank.lab.paper.figures import FIGURES
from zoomrank.lab.results_folder import ResultsFolder, sweep_request
from zoomrank.lab.run import run

ZOOMRANK = (sys.executable, "-c", "import sys; from zoomrank.cli import main; sys.exit(main())")
SLOW_ENOUGH = ("--visits", "150000", "--instances", "4")  # to be killed before the end

FRAGILE = '''
import os, signal
from pathlib import Path
from zoomrank import RankZoom


class Fragile(RankZoom):
    """Takes its worker down with it, the first time one of its runs is carried out."""

    def __init__(self, tree, slots, seed=None, diary="", dies=False):
        super().__init__(tree, slots, seed=seed)
        diary = Path(diary)
        before = diary.read_text().split() if diary.exists() else []
        with diary.open("a") as file:
            file.write("dies\\n" if dies else "lives\\n")
        if dies and "dies" not in before:
            os.kill(os.getpid(), signal.SIGKILL)
'''

EXPERIMENT = """
from zoomrank.lab import Curve, Experiment, Local, recipe
from zoomrank.lab.results_folder import to_parquet

def experiment(diary):
    return Experiment(
        name="fragile", title="", tree=recipe("exponential", depth=6), users=recipe("two-peaks"), slots=2, visits=2000,
        curves=tuple(
            Curve(name, recipe("fragile:Fragile", diary=str(diary), dies=name == "dying")) for name in ("well", "dying")
        ),
    )

def rows(finished):
    return {one.rows.setting.id: to_parquet(one.rows) for one in finished}
"""

LOCAL = (
    EXPERIMENT
    + """
if __name__ == "__main__":
    settings = experiment("diary").settings(instances=1) + experiment("diary").settings(["well"], instances=4)[1:]
    broken = rows(Local(2).finish(settings))
    whole = rows(Local(1).finish(settings))  # by now the dying one has died
    assert broken == whole and len(whole) == 5, (len(broken), len(whole))
    diary = open("diary").read().split()
    print("well", diary.count("lives") - 4, "dying", diary.count("dies") - 1)
"""
)

CLUSTER = (
    EXPERIMENT
    + """
if __name__ == "__main__":
    from ray.cluster_utils import Cluster
    from zoomrank.lab.sweep import make_runner

    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 1, "include_dashboard": False, "node_ip_address": "127.0.0.1"},
    )
    try:
        cluster.add_node(num_cpus=1, node_ip_address="127.0.0.1")
        place = make_runner("ray", address=cluster.address)
        assert place.workers == 2
        settings = experiment("diary").settings(instances=3)
        away = rows(place.finish(settings))
        diary = open("diary").read().split()
        place.close()
        whole = rows(Local(1).finish(settings))
        assert away == whole and len(whole) == 6, (len(away), len(whole))
        print("well", diary.count("lives"), "dying", diary.count("dies"))
    finally:
        cluster.shutdown()
"""
)

HERE = (
    EXPERIMENT
    + """
if __name__ == "__main__":
    import ray
    from zoomrank.lab.sweep import make_runner

    place = make_runner("ray", workers=2)
    assert place.workers == 2
    settings = experiment("diary").settings(["well"], instances=2)
    away = rows(place.finish(settings))
    another = make_runner("ray")  # while the first is there, both use it
    another.close()
    assert ray.is_initialized()
    place.close()
    assert not ray.is_initialized()
    whole = rows(Local(1).finish(settings))
    assert away == whole and len(whole) == 2, (len(away), len(whole))
    print("started and ended")
"""
)


def _script(text: str, folder: Path, **environment: str) -> str:
    paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]  # the zoomrank that this process has
    (folder / "fragile.py").write_text(FRAGILE)
    (folder / "script.py").write_text(text)
    done = subprocess.run(
        [sys.executable, "script.py"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def _rows(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in (folder / "rows").rglob("*.parquet")}


def _gone(group: int) -> bool:
    """Whether no process of a group is left, but for ended ones that nobody waited for."""
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = entry.read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return False
    return True


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep that nobody disturbed, by one worker."""
    folder = tmp_path_factory.mktemp("whole") / "out"
    assert main(["reproduce", "5", *SLOW_ENOUGH, "--out", str(folder), "--workers", "1"]) == 0
    return folder


@pytest.mark.full
def test_a_killed_sweep_ends_with_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    command = [*ZOOMRANK, "reproduce", "5", *SLOW_ENOUGH, "--out", str(out), "--workers", "2"]
    with subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL) as process:  # noqa: S603
        deadline = time.monotonic() + 240
        while len(list(out.rglob("*.parquet"))) < 4:
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.kill()  # -9, and only the parent: its workers must find out by themselves
    done = _rows(out)
    assert 4 <= len(done) < len(_rows(whole))
    deadline = time.monotonic() + 60
    while not _gone(process.pid):
        assert time.monotonic() < deadline, "workers outlive their parent"
        time.sleep(0.1)
    assert main(["reproduce", "5", *SLOW_ENOUGH, "--out", str(out), "--workers", "2", "--resume"]) == 0
    assert _rows(out) == _rows(whole)
    assert (out / "report.md").exists()


@pytest.mark.full
def test_the_report_has_everything(whole: Path) -> None:
    text, page = (whole / "report.md").read_text(), (whole / "report.html").read_text()
    for part in (
        "6.4, secondary experiment",
        "Figure 5",
        "covering dimension",
        "RankContextZoom(",
        "numba = ",
        "seed 2013",
    ):
        assert part in text
    assert re.search(r"\| (holds|\*\*differs\*\*|cannot tell) \|", text)
    for kind in ("png", "svg"):
        assert (whole / "figures" / f"figure-5.{kind}").stat().st_size > 10_000
    assert "data:image/svg+xml;base64," in page
    assert not re.search(r'(src|href)="(?!data:|#)', page)  # nothing outside is needed
    assert "<table>" in page


@pytest.mark.full
def test_a_report_can_be_written_again(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (whole / "report.md").read_bytes(), (whole / "figures" / "figure-5.svg").read_bytes()
    assert main(["report", str(whole)]) == 0
    assert "Claims of the paper:" in capsys.readouterr().out
    assert ((whole / "report.md").read_bytes(), (whole / "figures" / "figure-5.svg").read_bytes()) == before


@pytest.mark.full
def test_a_finished_sweep_is_left_alone(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()}
    assert main(["reproduce", "5", *SLOW_ENOUGH, "--out", str(whole)]) == 2
    assert "--resume" in capsys.readouterr().err
    assert main(["reproduce", "5", "--visits", "7", "--out", str(whole), "--resume"]) == 2
    assert "visits = 150000, not 7" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in whole.rglob("*") if path.is_file()} == before


def test_a_folder_of_another_version_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["reproduce", "three", "--visits", "300", "--instances", "2", "--out", str(out), "--workers", "1"]) == 0
    manifest = json.loads((out / "manifest.json").read_text())
    (out / "manifest.json").write_text(json.dumps({**manifest, "version": "0.0.0+elsewhere"}))
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert main(["reproduce", "three", "--visits", "300", "--out", str(out), "--resume"]) == 2
    assert "was made by zoomrank 0.0.0+elsewhere" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["6"], "Unknown figure '6'; choose from 1, 2, 3, 4, 5, three"),
        (["1", "--instances", "0"], "ask for at least one"),
        (["1", "--visits", "-1"], "ask for at least one"),
        (["1", "--workers", "0"], "ask for at least one"),
        (["1", "--engine", "cloud"], "choose local or ray"),
        (["1", "--engine", "ray", "--workers", "0"], "ask for at least one"),
        (["1", "--address", "127.0.0.1:1"], "for --engine ray"),
        (["1", "--engine", "ray", "--address", "127.0.0.1:1"], "No Ray cluster answers at '127.0.0.1:1'"),
        (["1", "--engine", "ray", "--address", "auto", "--workers", "2"], "--workers is only for this machine"),
    ],
)
def test_nonsense_is_refused(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", *arguments, "--out", str(tmp_path / "out")]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []  # nothing was written


def test_reports_of_nothing_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(tmp_path)]) == 2
    assert "no results" in capsys.readouterr().err
    ResultsFolder.create(tmp_path / "out", sweep_request("paper", 1, None, 0, figures=["1"]))
    assert main(["report", str(tmp_path / "out")]) == 2
    assert "no finished runs yet" in capsys.readouterr().err


def test_a_folder_that_is_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for out, options in ((file, ["--resume"]), (file, []), (file / "in", [])):
        assert main(["reproduce", "three", "--visits", "10", "--out", str(out), *options]) == 2
        assert str(file) in capsys.readouterr().err
    assert main(["simulate", "RankZoom", "two-peaks", "--depth", "3", "--visits", "10", "--out", str(file)]) == 2
    assert file.read_text() == "mine"


def test_a_folder_that_is_still_filling_can_be_reported_on(tmp_path: Path) -> None:
    size = FIGURES["size"].settings(instances=2, visits=200)
    small = [setting for setting in size if setting.experiment == "size-1024"]
    folder = ResultsFolder.create(tmp_path / "out", sweep_request("paper", 2, 200, 2013, figures=["size"]))
    for setting in small:
        folder.add(run(setting), 0.1)
        if setting.instance == 0:
            assert main(["report", str(folder.path)]) == 0
    assert (folder.path / "figures" / "figure-size.png").exists()


def test_figures_beyond_the_paper(tmp_path: Path) -> None:
    out = tmp_path / "out"
    arguments = ["three", "delay", "belief", "--visits", "300", "--instances", "2", "--workers", "1"]
    assert main(["reproduce", *arguments, "--out", str(out)]) == 0
    assert {path.name for path in (out / "figures").glob("*.png")} == {
        "figure-three.png",
        "figure-delay.png",
        "figure-belief.png",
    }


def test_simulate_keeps_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [
        "RankContextZoom",
        "two-peaks",
        "--depth",
        "5",
        "--slots",
        "2",
        "--visits",
        "400",
        "--set",
        "scale=0.5",
    ]
    assert main(["simulate", *arguments, "--instances", "2", "--out", str(tmp_path / "out")]) == 0
    assert "the greedy optimum" in capsys.readouterr().out
    kept = list(ResultsFolder(tmp_path / "out").rows())
    assert len(kept) == 4
    assert {rows.setting.ranker.given.get("scale") for rows in kept} == {0.5, None}
    assert main(["report", str(tmp_path / "out")]) == 2
    assert "has rows of the kind simulation, for which this command has no report" in capsys.readouterr().err
    assert main(["simulate", "RankNothing", "two-peaks", "--visits", "10"]) == 2
    assert "RankCorrZoom" in capsys.readouterr().err
    assert main(["simulate", "Greedy", "three-documents", "--slots", "2", "--visits", "60"]) == 0


@pytest.mark.full
def test_a_dead_worker_costs_only_its_run(tmp_path: Path) -> None:
    # Four runs that live, once each; the fifth dies once and is carried out again.
    assert _script(LOCAL, tmp_path).split()[-4:] == ["well", "4", "dying", "2"]


@pytest.mark.full
def test_a_cluster_gives_the_same_rows(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    # Without this Ray takes 127.0.0.1 for the machine's address on the network, where nothing of ours listens.
    shown = _script(CLUSTER, tmp_path, RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0")
    # Three runs that live, once each; of three that may die, one does, and is the only one to be carried out again.
    assert shown.split()[-4:] == ["well", "3", "dying", "4"]


@pytest.mark.full
def test_without_a_cluster_ray_is_started_here_and_ends_with_us(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    # An address that leads nowhere: who means a cluster says so on the command line.
    assert _script(HERE, tmp_path, RAY_ADDRESS="127.0.0.1:1").endswith("started and ended\n")


def test_interruptions_are_not_errors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def stop(_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("zoomrank.cli.simulate.run_demo", stop)
    assert main(["demo"]) == 130
    assert "stopped" in capsys.readouterr().err
