"""Progress of a barrier stage in Spark's UI while it runs.

Spark fixes a job's description when it starts, and a run is one job. So what goes on inside is shown by jobs of their own that
have no tasks: Spark ends them at once, without a slot, and lists them with their times and descriptions beside the run.
"""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from dlog.engine.ir.rules import Program
from dlog.engine.spark.error_translation import failures

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from dlog.engine.runtime.static.executor import Progress

BETWEEN = 1.0
"""Seconds between two entries about one stratum."""
ENTRIES_MAX = 200
"""Entries of one run: Spark keeps a thousand jobs by default."""
WIDTH = 400
"""Most characters of a description."""


class Timeline:
    """The entries of one run, from what its workers tell."""

    def __init__(self, spark: SparkSession, program: Program) -> None:
        self._context = spark.sparkContext
        self._strata = [stratum for stratum in program.strata if stratum.rules]
        self._last: dict[int, Progress] = {}
        self._last_entry = (0, 0.0)
        self._entries_left = ENTRIES_MAX if os.environ.get("PYSPARK_PIN_THREAD", "true").lower() == "true" else 0
        # without a JVM thread for each of ours, a description would become that of the user's jobs

    def __call__(self, rank: int, progress: Progress) -> None:
        """Takes a worker's word; shows it if it is time."""
        self._last[rank] = progress
        stratum, at = self._last_entry
        now = time.monotonic()
        if self._entries_left and (progress.stratum > stratum or (progress.stratum == stratum and now - at >= BETWEEN)):
            self._last_entry = progress.stratum, now
            self._entries_left -= 1
            self._show(self.entry(progress.stratum))

    def entry(self, number: int) -> str:
        """The stratum, how far all workers together are, and its rules."""
        there = [progress for progress in self._last.values() if progress.stratum == number]
        rows, iteration = sum(p.rows for p in there), max(p.iteration for p in there)
        far = f"iteration {iteration:,}, {rows:,} rows so far" if iteration else f"{rows:,} rows so far"
        stratum = next((s for s in self._strata if s.relations == there[0].relations), None)
        rules = "  ".join(" ".join(rule.text.split()) for rule in stratum.rules) if stratum is not None else ""
        text = f"dlog: stratum {number} of {there[0].strata}, {' '.join(there[0].relations)}: {far}: {rules}"
        return text if len(text) <= WIDTH else text[: WIDTH - 4] + " ..."

    def _show(self, text: str) -> None:
        """A job without tasks; its description is that of this thread only."""
        with suppress(*failures()):
            self._context.setJobDescription(text)
            self._context._jsc.emptyRDD().count()
            self._context.setJobDescription("")
