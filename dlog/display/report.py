"""What a run cost, as the command line tells it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlog.dataclass import dataclass

if TYPE_CHECKING:
    from dlog.engine.runtime.static.executor import RuleProfile


@dataclass(frozen=True, slots=True)
class Report:
    """What a run cost. `rows` is the size of every relation that was loaded or computed: declared ones that no output needs are
    left out, those that passes put in the place of others are there."""

    load_seconds: float
    evaluate_seconds: float
    write_seconds: float
    peak_bytes: int
    rows: dict[str, int]
    rules: tuple[RuleProfile, ...]
