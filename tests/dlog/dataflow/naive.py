"""What a random dataflow means: its terms evaluated anew at every time, from what its inputs have come to."""

from __future__ import annotations

from collections import Counter, defaultdict

from hypothesis import assume

from tests.dlog.dataflow.terms import LAST_ITERATION, MODULUS, Loop, Term

LARGEST = 2**40
"""Counts beyond which examples are of no interest: products of them may need more than 64 bits."""
Row = tuple[int, int]
Rows = dict[Row, int]
Time = tuple[int, ...]


def nonzero(found: dict[Row, int]) -> Rows:
    return {row: count for row, count in found.items() if count}


class Naive:
    """Terms at times: a round, and an iteration for each loop around."""

    def __init__(self, changes: list[tuple[int, Row, int, int]]) -> None:
        self.changes = changes
        self.known: dict[tuple[int, Time], Rows] = {}

    def at(self, term: Term, time: Time) -> Rows:
        """The rows of a term; of one that is of a lower level, those at the time there."""
        if len(time) <= term.level and time[0] < 0:
            return {}
        time = time[: term.level + 1]
        key = (id(term), time)
        if key not in self.known:
            self.known[key] = nonzero(self._find(term, time))
            assume(all(abs(count) < LARGEST for count in self.known[key].values()))
        return self.known[key]

    def _find(self, term: Term, time: Time) -> Rows:
        if term.name == "input":
            found: Counter[Row] = Counter()
            for number, row, round, diff in self.changes:
                if number == term.number and round <= time[0]:
                    found[row] += diff
            return found
        if isinstance(term, Loop):
            return self._defined(term, (*time, LAST_ITERATION))
        if term.name == "variable":
            (loop,) = term.parts
            assert isinstance(loop, Loop)
            return self._defined(loop, (*time[:-1], time[-1] - 1)) if time[-1] else self.at(loop.parts[0], time[:-1])
        if term.name == "delay_iteration":
            return self.at(term.parts[0], (*time[:-1], time[-1] - 1)) if time[-1] else {}
        parts = [self.at(part, time) for part in term.parts]
        return getattr(self, f"_{term.name}")(term, time, *parts)  # type: ignore[no-any-return]

    def _defined(self, loop: Loop, time: Time) -> Rows:
        assert loop.body
        return self.at(loop.body[0], (*time[:-1], min(time[-1], LAST_ITERATION)))

    # -------------------------------------------------------------------------------------------------------------- linear

    def _each(self, rows: Rows, function) -> Rows:  # type: ignore[no-untyped-def]
        found: Counter[Row] = Counter()
        for row, count in rows.items():
            for other, weight in function(*row):
                found[other] += count * weight
        return found

    def _map(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [(((a + term.number) % MODULUS, b), 1)])

    def _swap(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((b, a), 1)])

    def _filter(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((a, b), 1)] if a <= term.number or b == 0 else [])

    def _flat_map(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((k, b), 1) for k in range(a)])

    def _explode(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((b, b), a - term.number)])

    def _negate(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((a, b), -1)])

    def _consolidate(self, term: Term, time: Time, rows: Rows) -> Rows:
        return rows

    def _series(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((k, b), 1) for k in range(a, b + 1)])

    def _repeat(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((a, b), b - a)])

    def _join_function(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((a, b), d) for at, d in ((a, 1), (b + 1, -a)) if at <= time[0]])

    def _temporal(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((a, b), 1)] if a <= time[0] < b + 1 else [])

    def _window(self, term: Term, time: Time, rows: Rows) -> Rows:
        slide = 1 + term.number % 2
        starts = range(-2 * slide, MODULUS * slide, slide)
        return self._each(rows, lambda a, b: [(((k + 2) % MODULUS, b), 1) for k in starts if k <= a < k + 2])

    def _enter_at(self, term: Term, time: Time, rows: Rows) -> Rows:
        return self._each(rows, lambda a, b: [((a, b), 1)] if a <= time[-1] else [])

    # --------------------------------------------------------------------------------------------------------------- joins

    def _concat(self, term: Term, time: Time, left: Rows, right: Rows) -> Rows:
        return {row: left.get(row, 0) + right.get(row, 0) for row in {*left, *right}}

    def _join(self, term: Term, time: Time, left: Rows, right: Rows) -> Rows:
        found: Counter[Row] = Counter()
        for (a, b), count in left.items():
            for (c, d), other in right.items():
                if a == c:
                    found[b, d] += count * other
        return found

    _half_join = _join

    def _semijoin(self, term: Term, time: Time, left: Rows, right: Rows) -> Rows:
        keys: Counter[int] = Counter()
        for (a, _), count in right.items():
            keys[a] += count
        return {(a, b): count * keys[a] for (a, b), count in left.items()}

    def _antijoin(self, term: Term, time: Time, left: Rows, right: Rows) -> Rows:
        met = self._semijoin(term, time, left, right)
        return {row: count - met[row] for row, count in left.items()}

    # ---------------------------------------------------------------------------------------------------------- reductions

    def _groups(self, rows: Rows) -> dict[int, list[tuple[int, int]]]:
        """By `a`, the values of `b` in order, with their counts."""
        groups: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for (a, b), count in sorted(rows.items()):
            groups[a].append((b, count))
        return groups

    def _distinct(self, term: Term, time: Time, rows: Rows) -> Rows:
        return {row: 1 for row, count in rows.items() if count > 0}

    def _threshold(self, term: Term, time: Time, rows: Rows) -> Rows:
        return {row: count * count % 3 - 1 for row, count in rows.items()}

    def _count(self, term: Term, time: Time, rows: Rows) -> Rows:
        counts = {a: sum(count for _, count in group) for a, group in self._groups(rows).items()}
        return {(a, count % MODULUS): 1 for a, count in counts.items() if count}

    def _min(self, term: Term, time: Time, rows: Rows) -> Rows:
        there = {a: [b for b, count in group if count > 0] for a, group in self._groups(rows).items()}
        return {(a, min(values)): 1 for a, values in there.items() if values}

    def _max(self, term: Term, time: Time, rows: Rows) -> Rows:
        there = {a: [b for b, count in group if count > 0] for a, group in self._groups(rows).items()}
        return {(a, max(values)): 1 for a, values in there.items() if values}

    def _top_k(self, term: Term, time: Time, rows: Rows) -> Rows:
        found: Counter[Row] = Counter()
        for a, group in self._groups(rows).items():
            listed = [b for b, count in reversed(group) for _ in range(count)]
            for b in listed[: term.number + 1]:
                found[a, b] += 1
        return found

    def _sum(self, term: Term, time: Time, rows: Rows) -> Rows:
        found: Rows = {}
        for a, group in self._groups(rows).items():
            total, size = sum(b * count for b, count in group), sum(count for _, count in group)
            if total or size:
                found[a, total % MODULUS] = 1
        return found

    def _reduce(self, term: Term, time: Time, rows: Rows) -> Rows:
        found: Counter[Row] = Counter()
        for a, group in self._groups(rows).items():
            found[a, len(group) % MODULUS] += 1
            found[a, group[-1][0]] += group[0][1]
        return found

    # ------------------------------------------------------------------------------------------------------- ordered groups

    def _session(self, term: Term, time: Time, rows: Rows) -> Rows:
        found: Counter[Row] = Counter()
        gap = 1 + term.number
        for group in self._groups({row: count for row, count in rows.items() if count > 0}).values():
            there = [b for b, _ in group]
            for b, count in group:
                end = next(x for x in there if x >= b and not any(x < y < x + gap for y in there))
                found[(end + gap) % MODULUS, b] += count
        return found

    def _moving(self, term: Term, time: Time, rows: Rows) -> Rows:
        found: Counter[Row] = Counter()
        size = 1 + term.number
        for a, there in self._sets(rows).items():
            for k, b in enumerate(there):
                last = there[max(0, k - term.number) : k + 1] if term.number % 2 else [x for x in there if b - size < x <= b]
                found[a, sum(last) % MODULUS] += 1
        return found

    def _scan(self, term: Term, time: Time, rows: Rows) -> Rows:
        found: Counter[Row] = Counter()
        for a, there in self._sets(rows).items():
            state = term.number
            for b in there:
                state = (2 * state + b + 1) % MODULUS
                found[a, state] += 1
        return found

    def _sets(self, rows: Rows) -> dict[int, list[int]]:
        """By `a`, the values of `b` that are there, in order."""
        groups = self._groups({row: 1 for row, count in rows.items() if count > 0})
        return {a: [b for b, _ in group] for a, group in groups.items()}
