"""A program in supersteps: tasks that know nothing of each other evaluate a stratum, each on its share, and what they derive
for others reaches these between two supersteps.

The placement is that of `dlog.engine.plan.together`. A rule that sends derives rows of a relation of its own, `path@out`, which
are handed to their owners as rows of `path`. A stratum is evaluated anew, from all that was sent, until no task has other rows
than before: what a task finds by itself takes no superstep, however many iterations it is.

Source: monotone strata iterate locally to quiescence between exchanges (bulk synchronous parallel: Valiant, CACM 1990).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dlog.engine.plan.places import EVERYWHERE, ROOT, Place
from dlog.engine.plan.together import HERE, Together, together
from dlog.engine.program.rules import Aggregate, Atom, Head, Io, Literal, Negation, Program, Rule, Stratum

SENDING = 10
"""What a rule that sends costs (see `together`): a superstep is a job."""


@dataclass(frozen=True, slots=True)
class Step:
    """What is evaluated in the supersteps of a stratum: `program` on rows of what it reads, of its own `relations` that are
    given, and of those that were sent. `sent` says whose rows its other relations have."""

    relations: tuple[str, ...]
    reads: tuple[str, ...]
    program: Program
    sent: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Supersteps:
    """`program` has all relations, at their `homes`; `held` says by which names rows of a relation that was given are known,
    the one to read them by first. `alone`: one task evaluates everything."""

    program: Program
    homes: Mapping[str, Place]
    held: Mapping[str, tuple[str, ...]]
    steps: tuple[Step, ...]
    alone: bool = False


def supersteps(program: Program, tasks: int) -> Supersteps:
    """The supersteps of a program."""
    plan = together(program, SENDING) if tasks > 1 else None
    if plan is None:
        names = tuple(program.relations)
        only = Step(names, (), program, {})
        return Supersteps(program, dict.fromkeys(names, ROOT), {name: (name,) for name in names}, (only,), True)
    inputs = tuple(name for s in plan.program.strata if not s.rules for name in s.relations)
    strata = zip(plan.program.strata, plan.sends, strict=True)
    steps = [Step(inputs, (), _inputs_only(plan, inputs), {})]
    for step in (_step(plan, stratum, sends) for stratum, sends in strata if stratum.rules):
        if len(steps) > 1 and not steps[-1].sent and not step.sent:
            steps[-1] = _in_one(steps[-1], step)
        else:
            steps.append(step)
    return Supersteps(plan.program, plan.homes, plan.held, tuple(steps))


def _in_one(first: Step, second: Step) -> Step:
    """Two steps that send nothing, one after the other in every task."""
    reads = tuple(dict.fromkeys((*first.reads, *(name for name in second.reads if name not in first.relations))))
    relations = (*first.relations, *second.relations)
    strata = (*first.program.strata, *second.program.strata)
    derived = tuple(s for s in strata if set(s.relations) <= set(relations) and s.rules)
    told = {name for s in derived for name in s.relations}
    both = {**first.program.relations, **second.program.relations}
    strata = (*(Stratum((name,), (), False) for name in both if name not in told), *derived)
    lattices = {**first.program.lattices, **second.program.lattices}
    program = replace(first.program, relations=both, strata=strata, lattices=lattices, io=tuple(Io("input", n) for n in both))
    return Step(relations, reads, program, {})


def _inputs_only(plan: Together, inputs: Iterable[str]) -> Program:
    """Relations without rules: each of their rows is there once afterwards."""
    relations = {name: plan.program.relations[name] for name in inputs}
    strata = tuple(Stratum((name,), (), False) for name in relations)
    io = tuple(Io("input", name) for name in relations)
    return replace(plan.program, relations=relations, strata=strata, facts={}, io=io, lattices={})


def _step(plan: Together, stratum: Stratum, sends: frozenset[int]) -> Step:
    program = plan.program
    rules = tuple(_apart(rule) if number in sends else rule for number, rule in enumerate(stratum.rules))
    sent = {out(name): name for name in dict.fromkeys(stratum.rules[n].head.relation for n in sorted(sends))}
    reads = dict.fromkeys(name for rule in rules for name in _read(rule.body))
    named = dict.fromkeys((*reads, *stratum.relations))
    relations = {name: program.relations[name] for name in named}
    relations |= {o: replace(program.relations[name], name=o) for o, name in sent.items()}
    lattices = {name: lattice for name, lattice in program.lattices.items() if name in stratum.relations}
    lattices |= {o: replace(lattices[name], relation=o) for o, name in sent.items() if name in lattices}
    below = tuple(name for name in reads if name not in stratum.relations)
    strata = (*(Stratum((name,), (), False) for name in below), *_strata(stratum, rules, tuple(sent)))
    inputs = tuple(Io("input", name) for name in (*below, *stratum.relations))
    local = replace(program, relations=relations, strata=strata, facts={}, io=inputs, lattices=lattices)
    return Step(stratum.relations, below, local, sent)


def _strata(stratum: Stratum, rules: tuple[Rule, ...], sent: tuple[str, ...]) -> tuple[Stratum, ...]:
    if stratum.recursive:
        return (Stratum((*stratum.relations, *sent), rules, True),)
    every = (*stratum.relations, *sent)
    return tuple(Stratum((name,), tuple(r for r in rules if r.head.relation == name), False) for name in every)


def out(name: str) -> str:
    """The relation with the rows of another one that are to be sent."""
    return f"{name}@out"


def _apart(rule: Rule) -> Rule:
    return replace(rule, head=Head(out(rule.head.relation), rule.head.args, rule.head.span))


def _read(body: Iterable[Literal]) -> Iterator[str]:
    for literal in body:
        match literal:
            case Atom(relation=relation):
                yield relation
            case Negation(atom=atom):
                yield atom.relation
            case Aggregate(alternatives=alternatives):
                for alternative in alternatives:
                    yield from _read(alternative)
            case _:
                pass


# ------------------------------------------------------------------------------------------------------------------- as text


def explain_supersteps(plan: Supersteps) -> str:
    """What each superstep evaluates, and where its rows go.

    stratum sg, recursive, in supersteps until nothing is new
      reads up@1 by 1
      reads up@all everywhere
      sg by 0: sg(x, y) :- up(x, a), sg(a, b), up(y, b).  (sent to the owners)
    """
    if plan.alone:
        return "all strata in one task: there is one, or the program numbers or limits something in one place\n"
    return "\n".join(_explained(plan, step) for step in plan.steps if any(s.rules for s in step.program.strata))


def _explained(plan: Supersteps, step: Step) -> str:
    recursive = any(s.recursive for s in step.program.strata)
    often = "supersteps until nothing is new" if step.sent and recursive else "two supersteps" if step.sent else "one superstep"
    lines = [f"stratum {', '.join(step.relations)}{', recursive' if recursive else ''}, in {often}"]
    lines += [f"  reads {name} {_where(plan.homes[name])}" for name in step.reads if name != HERE]
    for rule in (rule for s in step.program.strata for rule in s.rules):
        sent = rule.head.relation in step.sent
        name = step.sent.get(rule.head.relation, rule.head.relation)
        leaves = "  (sent to the owners)" if sent else ""
        lines.append(f"  {name} {_where(plan.homes[name])}: {' '.join(rule.text.split())}{leaves}")
    return "\n".join(lines) + "\n"


def _where(place: Place) -> str:
    return {EVERYWHERE: "everywhere", ROOT: "at the first task"}.get(place, f"by {place}")
