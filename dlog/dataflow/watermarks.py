"""Watermarks: how far the time of events has come that arrive out of order."""

from __future__ import annotations

from functools import partial
from typing import Any, Generic, TypeVar

import numpy as np

from dlog.arguments import bad_argument
from dlog.dataflow.base import Base, Definition
from dlog.dataflow.expressions import Expression, col, column_or
from dlog.dataflow.kinds import Kind, decode, float_words, word_floats
from dlog.dataflow.schema import Schema, mismatch, plain
from dlog.engine.operators.delta import Delta
from dlog.engine.operators.operator import same
from dlog.engine.operators.slices import LEAST
from dlog.engine.operators.watermark import LATE, RELEASED, WAITING, Release, Watermark
from dlog.grammar.diagnostics import Diagnostic, DlogError

STATE, TIME = "#state", "#time"
C = TypeVar("C", bound=Base)


class Watermarked(Generic[C]):
    """Events by what a watermark says of them. Together the three are the collection: every event is in one of them.

    `waiting` are those whose time it has not passed yet; `released` those that have waited until it did; `late` those that came
    in a round that began with the watermark beyond their time. What is taken back goes from where it is."""

    def __init__(self, events: C, time: Expression, marks: C) -> None:
        self.marks = marks
        """The watermark: a row once there is one."""
        self._kind = marks.schema.kinds[0]
        (term,) = marks.terms
        assert isinstance(term.source, Watermark)
        self._watermark = term.source
        names = events.schema.names
        timed = events.with_columns(**{TIME: time})
        operator = timed._ordered((TIME, *names))._operator(Release, 1 + events.schema.arity)
        operator.connect(self._watermark, same, 1)
        schema = Schema((TIME, *names, STATE), (self._kind, *events.schema.kinds, int))
        sorted_out = events._emitted(operator, schema, Definition("watermark", (events,)))
        self.released, self.late, self.waiting = (
            sorted_out.filter(col(STATE) == state).map(*names) for state in (RELEASED, LATE, WAITING)
        )

    @property
    def watermark(self) -> Any:
        """What it is after the last batch; None before there is any."""
        mark = self._watermark.present
        return None if mark == LEAST else decode(self._kind, np.array([mark]), self.marks.graph.objects)[0].item()

    def release(self, events: C, time: Any) -> Watermarked[C]:
        """Other events by the same watermark, such as windows by their end."""
        self.marks._check_together(events, "events")
        return Watermarked(events, timed_by(events, time, self._kind), self.marks)

    def __repr__(self) -> str:
        return f"dlog.dataflow.Watermarked ({self.released.schema}), watermark {self.watermark}"


def watermarked(events: C, time: Any, lateness: Any, marks: C | None) -> Watermarked[C]:
    """Events by the watermark `lateness` behind the latest of them, and by other marks."""
    plain(events.schema, "`watermark`")
    if events.scope.inner.depth > 1:
        raise DlogError(Diagnostic("partially-ordered", "there is no watermark within a loop"))
    events = events.consolidate()  # what comes and goes in one round has never been there
    by = timed_by(events, time, None)
    kind = by.kind(events.schema)
    given = [] if lateness is None else [_behind(events, by, kind, lateness)]
    if marks is not None:
        events._check_together(marks, "marks")
        if marks.schema.kinds != (kind,) or marks.schema.diffs:
            raise mismatch("watermark", Schema(("watermark",), (kind,)), marks.schema)
        given.append(marks.consolidate().rename(watermark=marks.schema.names[0]))
    if not given:
        raise DlogError(Diagnostic("bad-argument", "`watermark` needs a lateness, or marks"))
    every = given[0].concat(*given[1:])
    return Watermarked(events, by, every._emitted(every._operator(Watermark), every.schema, Definition("watermark", (every,))))


def timed_by(events: Base, time: Any, kind: Kind | None) -> Expression:
    """The expression for the time of events, of a kind of numbers."""
    found = column_or(time)
    if found.kind(events.schema) not in ((int, float) if kind is None else (kind,)):
        raise bad_argument("time", f"of kind {'int or float' if kind is None else kind.__name__}", time)
    return found


def _behind(events: C, time: Expression, kind: Kind, lateness: Any) -> C:
    whole = isinstance(lateness, int | np.integer) and not isinstance(lateness, bool)
    if not (whole or (kind is float and isinstance(lateness, float))) or not 0 <= lateness < 2**62:
        raise bad_argument("lateness", f"a {'number' if kind is float else 'whole number'}, 0 or more", lateness)
    return events.map(watermark=time)._changed("lateness", partial(_later, kind, kind(lateness)))


def _later(kind: Kind, lateness: Any, delta: Delta) -> Delta:
    """Times less some lateness, none before the least. NaN is no time."""
    (words,) = delta.columns
    if kind is float:
        times = word_floats(words)
        return delta.with_columns([float_words(times - lateness)]).only(~np.isnan(times))
    return delta.with_columns([np.where(words < LEAST + 1 + lateness, LEAST + 1, words - lateness)])
