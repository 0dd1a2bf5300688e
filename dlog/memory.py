"""The memory that this process uses, and sizes as people write them."""

from __future__ import annotations

import re
import sys

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def parse_size(text: str) -> int:
    """Bytes of `2G`, `512M`, `1.5GiB` or a bare number; powers of 1024. Raises ValueError.

    >>> parse_size("2G"), parse_size("1.5 KiB"), parse_size("100")
    (2147483648, 1536, 100)
    """
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:I?B)?\s*", text.upper())
    if found is None or float(found[1]) == 0:
        raise ValueError(f"not a size: {text!r}")
    return int(float(found[1]) * UNITS[found[2]])


def current_bytes() -> int:
    """Resident memory now (the highest so far where the system does not tell)."""
    return _from_proc("VmRSS") or peak_bytes()


def peak_bytes() -> int:
    """The most resident memory this process ever had.

    `ru_maxrss` is only the second choice: on Linux it survives `exec`, so it may tell the size of the process that started
    this one."""
    return _from_proc("VmHWM") or _from_rusage()


def _from_proc(field: str) -> int:
    try:
        with open("/proc/self/status", encoding="ascii", errors="replace") as lines:
            for line in lines:
                if line.startswith(field + ":"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    return 0


def _from_rusage() -> int:
    try:
        import resource
    except ImportError:  # Windows
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak if sys.platform == "darwin" else peak * 1024)
