"""Type slots: a union-find whose classes know the kinds still possible, the record type, and who said so.

A conflict is reported once, with the place where it shows and the place of the contrary evidence; the class then keeps what it
knew, so that one mistake gives one message.
"""

from __future__ import annotations

from dlog.dataclass import immutable
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.ir.kinds import ALL, INTEGRAL, NUMERIC, ORDERED
from dlog.engine.ir.rules import Kind, Type
from dlog.grammar.source import Span

_NAMES = {
    NUMERIC: "number, unsigned or float",
    INTEGRAL: "number or unsigned",
    ORDERED: "number, unsigned, float or symbol",
}


@immutable
class Evidence:
    """`span` is used as `what` because of `why`, and `declared` is where that was declared."""

    span: Span
    what: str
    why: str
    declared: Span | None = None


def kinds_name(kinds: frozenset[Kind]) -> str:
    if kinds in _NAMES:
        return _NAMES[kinds]
    return " or ".join(k.value for k in Kind if k in kinds)


class Slots:
    def __init__(self, problems: Problems) -> None:
        self.problems = problems
        self._parent: list[int] = []
        self._kinds: list[frozenset[Kind]] = []
        self._why: list[Evidence | None] = []
        self._record: list[str | None] = []

    def __len__(self) -> int:
        return len(self._parent)

    def new(self, kinds: frozenset[Kind] = ALL, why: Evidence | None = None) -> int:
        self._parent.append(len(self._parent))
        self._kinds.append(kinds)
        self._why.append(why)
        self._record.append(None)
        return len(self._parent) - 1

    def find(self, slot: int) -> int:
        while self._parent[slot] != slot:
            self._parent[slot] = slot = self._parent[self._parent[slot]]
        return slot

    def kinds(self, slot: int) -> frozenset[Kind]:
        return self._kinds[self.find(slot)]

    def record(self, slot: int) -> str | None:
        return self._record[self.find(slot)]

    def restrict(self, slot: int, kinds: frozenset[Kind], why: Evidence) -> bool:
        """Narrow a slot's class; false on a conflict."""
        root = self.find(slot)
        common = self._kinds[root] & kinds
        if not common:
            self._conflict(why, self._why[root], why.span)
            return False
        if common != self._kinds[root]:
            self._kinds[root] = common
            self._why[root] = why
        return True

    def restrict_type(self, slot: int, found: Type, why: Evidence) -> None:
        if not self.restrict(slot, frozenset({found.kind}), why) or found.kind is not Kind.RECORD:
            return
        root = self.find(slot)
        if self._record[root] is None:
            self._record[root] = found.name
            self._why[root] = why
        elif self._record[root] != found.name:
            self._conflict(why, self._why[root], why.span)

    def unify(self, a: int, b: int, where: Span) -> bool:
        """Make two slots one class; false on a conflict."""
        a, b = self.find(a), self.find(b)
        if a == b:
            return True
        common = self._kinds[a] & self._kinds[b]
        records = {self._record[a], self._record[b]} - {None}
        if not common or len(records) > 1:
            self._conflict(self._why[b], self._why[a], where)
            return False
        # the class keeps the evidence of the narrower side
        if len(self._kinds[b]) < len(self._kinds[a]) or (self._record[b] is not None and self._record[a] is None):
            self._why[a] = self._why[b]
        self._parent[b] = a
        self._kinds[a] = common
        self._record[a] = self._record[a] or self._record[b]
        return True

    def _conflict(self, one: Evidence | None, other: Evidence | None, where: Span) -> None:
        known = [e for e in (one, other) if e is not None]
        whats = list(dict.fromkeys(e.what for e in known))
        message = f"type mismatch: {' and '.join(whats)}" if len(whats) > 1 else "type mismatch"
        if len(known) == 2 and known[0].span == known[1].span:
            labels = [Label(known[0].span, f"{known[1].what} ({known[1].why}), but {known[0].what} ({known[0].why})")]
        else:
            labels = [Label(e.span, f"{e.what}: {e.why}") for e in known]
        if one is None or one.span != where:
            labels.insert(0, Label(where, "these must have one type"))
        labels += [Label(e.declared, "declared here") for e in known if e.declared is not None]
        self.problems.add("type-mismatch", message, *labels, notes=_advice(known))


def _advice(known: list[Evidence]) -> list[str]:
    whats = {e.what for e in known}
    if whats <= {"number", "unsigned", "float"} and len(whats) == 2:
        return [f"convert one of them with {' or '.join(f'to_{w}(...)' for w in sorted(whats))}"]
    if "symbol" in whats and whats & {"number", "unsigned", "float"}:
        other = min(whats & {"number", "unsigned", "float"})
        return [f"convert with to_{other}(...) or to_string(...)"]
    if "symbol" in whats and (dates := whats & {"date", "timestamp"}):
        return [f"a text becomes one with {min(dates)}(...)"]
    return []
