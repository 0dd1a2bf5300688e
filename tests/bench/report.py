"""Tables on the terminal and figures in a file."""

from __future__ import annotations

import json
import math
import os
import platform
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.inputs import cache_folder

console = Console(width=None if Console().is_terminal else 140)


def show(title: str, header: list[str], rows: Iterable[list[str]]) -> None:
    table = Table(*header, title=title, title_justify="left", pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        table.add_row(*row)
    console.print(table)
    console.print()


def seconds(value: float) -> str:
    """Three digits, in the unit that suits."""
    return f"{value * 1000:.3g} ms" if value < 0.1 else f"{value:.3g} s"


def seconds_or_reason(value: float | str) -> str:
    return value if isinstance(value, str) else seconds(value)


def as_ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def quotient(value: float | str, by: float | str) -> float | None:
    """None unless both were measured."""
    return None if isinstance(value, str) or isinstance(by, str) else value / by


def geometric_mean(values: list[float]) -> float:
    return math.exp(sum(map(math.log, values)) / len(values))


def save(bench: str, figures: object, path: Path | None = None) -> Path:
    """Writes the figures as JSON, by default into the cache folder under the bench's name and the present moment."""
    now = datetime.now(UTC)
    if path is None:
        path = cache_folder() / "results" / f"{bench}-{now:%Y%m%dT%H%M%S}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    machine = {"system": platform.platform(), "cores": os.cpu_count(), "load": os.getloadavg()[0]}
    told = {"bench": bench, "time": now.isoformat(timespec="seconds"), "machine": machine, "figures": figures}
    path.write_text(json.dumps(told, indent=2) + "\n", encoding="ascii")
    console.print(f"figures: {path}", soft_wrap=True)
    return path
