"""What windows, moving aggregates and folds mean: functions of all events, worked out anew."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise
from typing import Any

Event = tuple[str, int, int]
"""A key, a time and a value."""
Rows = Counter


def groups(rows: Rows) -> Iterable[list[Event]]:
    """The events of each key in order."""
    for key in {row[0] for row, count in rows.items() if count > 0}:
        yield sorted(row for row in rows.elements() if row[0] == key)


def sliding(rows: Rows, size: Any, slide: Any, origin: Any = 0) -> dict:
    found: Counter = Counter()
    for row, count in rows.items():
        last = (row[1] - origin) // slide
        for start in (origin + k * slide for k in range(int(last) - 20, int(last) + 3)):
            if start <= row[1] < start + size:
                found[*row, start, start + size] += count
    return {row: count for row, count in found.items() if count}


def sessions(rows: Rows, gap: Any) -> dict:
    found: Counter = Counter()
    for events in groups(rows):
        runs = [[events[0]]]
        for before, event in pairwise(events):
            if event[1] - before[1] >= gap:
                runs.append([])
            runs[-1].append(event)
        for run in runs:
            found.update((*event, run[0][1], run[-1][1] + gap) for event in run)
    return dict(found)


def moving(rows: Rows, window: Callable[[list[Event], int], list[int]]) -> dict:
    """Events with the number, sum, mean and greatest of what is in their window, and its variance, 0 where there is none."""
    found: Counter = Counter()
    for events in groups(rows):
        for place, event in enumerate(events):
            values = window(events, place)
            variance = statistics.variance(map(float, values)) if len(values) > 1 else 0.0
            mean = sum(values) / len(values)
            found[*event, len(values), sum(values), mean, max(values), values[0], round(variance, 6)] += 1
    return dict(found)


def last_rows(size: int) -> Callable[[list[Event], int], list[int]]:
    return lambda events, place: [value for _, _, value in events[max(0, place - size + 1) : place + 1]]


def last_range(length: int) -> Callable[[list[Event], int], list[int]]:
    return lambda events, place: [value for _, at, value in events if events[place][1] - length < at <= events[place][1]]


def scan(rows: Rows, function: Callable[[int, int], int], start: int) -> dict:
    found: Counter = Counter()
    for events in groups(rows):
        state = start
        for event in events:
            state = function(state, event[2])
            found[*event, state] += 1
    return dict(found)
