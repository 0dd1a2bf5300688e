"""A program in supersteps: tasks that know nothing of each other evaluate strata, each on its share, and what they derive for
others reaches these between two supersteps.

The placement is that of `dlog.engine.plan.exchange.pivots`. A rule that sends derives rows of a relation of its own,
`path@out`, which are handed to their owners as rows of `path`. A step evaluates all strata whose rows are there. Those that
send are read in the next one, where owners put together what arrived. Only recursion that sends takes more supersteps, until
nothing is sent: each derives from what the last one added (`increments`). What a task finds by itself takes none, however many
iterations it is.

Source: monotone strata iterate locally to quiescence between exchanges (bulk synchronous parallel: Valiant, CACM 1990).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field, replace

from dlog.dataclass import dataclass
from dlog.engine.ir.rules import Head, Io, Program, Stratum
from dlog.engine.ir.traversal import occurrences
from dlog.engine.plan.exchange.increments import increment
from dlog.engine.plan.exchange.pivots import HERE, PivotPlan, pivot_plan
from dlog.engine.plan.exchange.places import EVERYWHERE, ROOT, Place

SENDING = 10
"""What a rule that sends costs (see `together`): a superstep is a job."""


@dataclass(frozen=True, slots=True)
class Superstep:
    """One superstep: tasks evaluate `program`. It leaves rows of `relations`: of those that are `external`, of those
    that the step before sent, which are `settled` here, and of those that it derives. It `reads` what earlier steps left.
    `outgoing` says whose rows its relations of rows to be sent have.

    Where it sends rows of a recursive stratum, the `growing` relations, later supersteps evaluate `increment`.
    """

    relations: tuple[str, ...]
    external: tuple[str, ...]
    program: Program
    settled: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    outgoing: Mapping[str, str] = field(default_factory=dict)
    growing: tuple[str, ...] = ()
    increment: Program | None = None


@dataclass(frozen=True, slots=True)
class Supersteps:
    """`program` has all relations, at their `homes`; `stored_names` says by which names rows of a relation that was given are
    known, the one to read them by first. `alone`: one task evaluates everything."""

    program: Program
    homes: Mapping[str, Place]
    stored_names: Mapping[str, tuple[str, ...]]
    steps: tuple[Superstep, ...]
    alone: bool = False


def supersteps(program: Program, tasks: int) -> Supersteps:
    """The supersteps of a program."""
    plan = pivot_plan(program, SENDING) if tasks > 1 else None
    if plan is None:
        names = tuple(program.relations)
        only = Superstep(names, names, program)
        return Supersteps(program, dict.fromkeys(names, ROOT), {name: (name,) for name in names}, (only,), True)
    outside = {io.relation for io in program.io if io.action == "input"} | {n for n, facts in program.facts.items() if facts}
    given = {held for name in outside for held in plan.stored_names[name]}
    return Supersteps(plan.program, plan.homes, plan.stored_names, tuple(_steps(plan, given)))


@dataclass
class _Draft:
    """A step as it is put together: its strata, as they are in the plan, and which of their rules send."""

    settled: list[str] = field(default_factory=list)
    strata: list[tuple[Stratum, frozenset[int]]] = field(default_factory=list)

    @property
    def lasting(self) -> Stratum | None:
        """The stratum that takes more than one superstep: there is one at most."""
        return next((s for s, sends in self.strata if s.recursive and sends), None)


def _steps(plan: PivotPlan, given: set[str]) -> Iterator[Superstep]:
    drafts = _drafts(plan)
    inputs = [name for s in plan.program.strata if not s.rules for name in s.relations]
    for number, draft in enumerate(drafts):
        yield _step(plan, draft, inputs if number == 0 else [], given)


def _drafts(plan: PivotPlan) -> list[_Draft]:
    """Each stratum in the first step that has all that it reads."""
    drafts = [_Draft()]
    there = {name: 0 for s in plan.program.strata if not s.rules for name in s.relations}
    for stratum, sends in zip(plan.program.strata, plan.sends, strict=True):
        if not stratum.rules:
            continue
        at = max((there[name] for name in _below(stratum)), default=0)
        while stratum.recursive and sends and drafts[at].lasting:
            at += 1
            drafts += [_Draft()] * (at == len(drafts))
        drafts[at].strata.append((stratum, sends))
        there |= dict.fromkeys(stratum.relations, at + bool(sends))
        if sends and at + 1 == len(drafts):
            drafts.append(_Draft())
        if sends and not stratum.recursive:
            drafts[at + 1].settled += stratum.relations
    return drafts if drafts[-1].settled or drafts[-1].strata or not drafts[1:] else drafts[:-1]


def _below(stratum: Stratum) -> list[str]:
    """The relations of others that a stratum reads."""
    read = dict.fromkeys(x.atom.relation for rule in stratum.rules for x in occurrences(rule.body))
    return [name for name in read if name not in stratum.relations]


def _step(plan: PivotPlan, draft: _Draft, inputs: list[str], given: set[str]) -> Superstep:
    derived = [name for s, _ in draft.strata for name in s.relations]
    relations = (*inputs, *draft.settled, *derived)
    reads = tuple(dict.fromkeys(n for s, _ in draft.strata for n in _below(s) if n not in relations))
    sending = [(_apart(s, sends), _outgoing(s, sends)) for s, sends in draft.strata]
    sent = {o: name for _, outs in sending for o, name in outs.items()}
    program = _program(plan.program, (*reads, *inputs, *draft.settled), relations, sending)
    from_outside = tuple(name for name in (*inputs, *derived) if name in given or name in inputs)
    lasting = draft.lasting
    step = Superstep(relations, from_outside, program, tuple(draft.settled), reads, sent)
    if lasting is None:
        return step
    (recursion,) = [(s, tuple(outs)) for s, outs in sending if s.relations == lasting.relations]
    return replace(step, growing=lasting.relations, increment=increment(program, *recursion))


def _outgoing(stratum: Stratum, sends: frozenset[int]) -> dict[str, str]:
    """The relations with rows to be sent, and whose rows these are."""
    return {out(name): name for name in dict.fromkeys(stratum.rules[n].head.relation for n in sorted(sends))}


def _apart(stratum: Stratum, sends: frozenset[int]) -> Stratum:
    """The stratum whose rules that send derive rows of relations of their own."""
    rules = tuple(
        replace(r, head=Head(out(r.head.relation), r.head.args, r.head.span)) if number in sends else r
        for number, r in enumerate(stratum.rules)
    )
    return replace(stratum, rules=rules)


def _program(
    whole: Program, below: tuple[str, ...], relations: tuple[str, ...], sending: list[tuple[Stratum, dict[str, str]]]
) -> Program:
    """The part of the `whole` program that a task evaluates; all of its relations may be given."""
    strata = (*(Stratum((name,), (), False) for name in below), *(p for s, outs in sending for p in _parts(s, tuple(outs))))
    sent = {o: name for _, outs in sending for o, name in outs.items()}
    named = {name: whole.relations[name] for name in dict.fromkeys((*below, *relations))}
    named |= {o: replace(whole.relations[name], name=o) for o, name in sent.items()}
    lattices = {name: lattice for name, lattice in whole.lattices.items() if name in relations}
    lattices |= {o: replace(lattices[name], relation=o) for o, name in sent.items() if name in lattices}
    inputs = tuple(Io("input", name) for name in named if name not in sent)
    return replace(whole, relations=named, strata=strata, facts={}, io=inputs, lattices=lattices)


def _parts(stratum: Stratum, sent: tuple[str, ...]) -> Iterator[Stratum]:
    every = (*stratum.relations, *sent)
    if stratum.recursive:
        yield Stratum(every, stratum.rules, True)
    else:
        yield from (Stratum((n,), tuple(r for r in stratum.rules if r.head.relation == n), False) for n in every)


def out(name: str) -> str:
    """The relation with the rows of another one that are to be sent."""
    return f"{name}@out"


# ------------------------------------------------------------------------------------------------------------------- as text

AGAIN = ", and again from what is new until nothing is sent"


def explain_supersteps(plan: Supersteps) -> str:
    """The steps as text: what each evaluates, and where its rows go.

    step 1, and again from what is new until nothing is sent
      reads up@1 by 1
      reads up@all everywhere
      sg by 0: sg(x, y) :- up(x, a), sg(a, b), up(y, b).  (sent to the owners)
    """
    if plan.alone:
        return "all strata in one task: there is one, or the program numbers or limits something in one place\n"
    return "\n".join(_explained(plan, number, step) for number, step in enumerate(plan.steps, 1))


def _explained(plan: Supersteps, number: int, step: Superstep) -> str:
    lines = [f"step {number}{AGAIN if step.increment else ''}"]
    read = {name for stratum in step.program.strata for name in _below(stratum)}.difference({HERE}, step.settled)
    there = [name for s in step.program.strata if not s.rules for name in s.relations if name in read]
    lines += [f"  puts together {name} {_where(plan.homes[name])}" for name in step.settled]
    lines += [f"  reads {name} {_where(plan.homes[name])}" for name in there]
    lines += _rules(plan, step)
    return "\n".join(lines) + "\n"


def _rules(plan: Supersteps, step: Superstep) -> Iterator[str]:
    for rule in (rule for s in step.program.strata for rule in s.rules):
        name = step.outgoing.get(rule.head.relation, rule.head.relation)
        leaves = "  (sent to the owners)" if rule.head.relation in step.outgoing else ""
        yield f"  {name} {_where(plan.homes[name])}: {' '.join(rule.text.split())}{leaves}"


def _where(place: Place) -> str:
    return {EVERYWHERE: "everywhere", ROOT: "at the first task"}.get(place, f"by {place}")
