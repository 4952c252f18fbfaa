"""Description of the machine that carries out runs: enough to compare times, nothing that identifies it."""

from __future__ import annotations

import os
import platform
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

_PACKAGES = ("numba", "numpy", "pyarrow", "scipy")


def machine() -> dict[str, Any]:
    """Return the description for a manifest."""
    return {
        "processor": _processor(),
        "cores": cores(),
        "system": platform.system(),
        "python": platform.python_version(),
        **{package: version(package) for package in _PACKAGES},
    }


def cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine() or sys.platform
