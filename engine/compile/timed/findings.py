"""What events have found, by rule: which relation keeps it, what its columns are called, and from where it comes back.

    .input pay(found="pay@order", filename="pay@order.csv")

reads it in a session that begins with files: then the rows that come with it are events that have been.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.compile.problems import Label, Problems
from dlog.engine.compile.timed.events import PAIRS
from dlog.engine.ir.rules import Atom, Io, Program, Variable

FOUND: Final = "found"
"""The parameter of an `.input` that names what events have found."""


@dataclass(frozen=True, slots=True)
class Finding:
    """`name` is made of the names of the rule's relation and the event's; a second one of these has a number. `columns` are
    those of the relation `kept` but for the last two, as the rule calls them."""

    name: str
    kept: str
    columns: tuple[str, ...]


def findings(program: Program) -> Iterator[Finding]:
    """Those of all rules with an event."""
    times: Counter[str] = Counter()
    for rule in (rule for stratum in program.strata for rule in stratum.rules):
        for atom in rule.body:
            timed = program.timed.get(atom.relation) if isinstance(atom, Atom) else None
            if isinstance(atom, Atom) and timed is not None and timed.how == "kept":
                name = f"{rule.head.relation}@{program.timed[timed.event].source.removesuffix(PAIRS)}"
                times[name] += 1
                number = f"-{times[name]}" if times[name] > 1 else ""
                attributes = program.relations[atom.relation].names
                called = (
                    rule.variables[arg.id] if isinstance(arg, Variable) and rule.variables[arg.id][0] not in "_@" else attribute
                    for arg, attribute in zip(atom.args[:-2], attributes, strict=False)
                )
                yield Finding(f"{name}{number}", atom.relation, tuple(called))


def with_findings(program: Program, problems: Problems) -> Program:
    """The program whose inputs of what events have found are of the relations that keep it."""
    if not any(_asked(io) for io in program.io):
        return program
    kept = {finding.name: finding.kept for finding in findings(program)}
    io = []
    for one in program.io:
        name = _asked(one)
        if name and (name not in kept or name.split("@")[0] != one.relation):
            own = ", ".join(f"`{other}`" for other in kept if other.split("@")[0] == one.relation)
            note = f"its rules have {own}" if own else "none of its rules has events"
            problems.add("event", f"no events of `{one.relation}` have found `{name}`", Label(one.span), notes=[note])
        elif name:
            params = tuple((key, value) for key, value in one.params if key != FOUND)
            one = replace(one, relation=kept[name], params=params)
        io.append(one)
    return replace(program, io=tuple(io))


def _asked(io: Io) -> str:
    """What an input says it is, if that is what events have found."""
    return io.get(FOUND) if io.action == "input" else ""


def given_relations(program: Program) -> frozenset[str]:
    """The relations that rounds feed of rules for which inputs say what events have found."""
    kept = program.inputs & program.timed.keys()
    return kept | {program.timed[name].event for name in kept}
