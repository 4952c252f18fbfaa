"""Timing that survives a noisy machine: the median of several runs, after one that does not count."""

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple


class Row(NamedTuple):
    what: str
    measured: str
    aim: str = ""


def seconds(work: Callable[[], object], runs: int = 5) -> float:
    """Return the median time of one call; the first call, which may compile, is not counted."""
    work()
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def in_fresh_process(script: str) -> list[float]:
    """Run a script that prints numbers in a new process, so that memory is measured from a clean start."""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)  # noqa: S603
    return [float(number) for number in done.stdout.split()]


def peak_memory() -> float:
    """Return the peak memory of this process, in MB.

    `resource.getrusage` would include the memory of the parent process.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024
