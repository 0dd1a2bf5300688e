"""Atoms of events: a rule reads what a row meets in the round in which it comes, and keeps that.

    pay(o, q * p) :- @order(o, item, q), price(item, p).
    ->
    met@(o, item, q, p, diff, round) :- changed@(o, item, q, diff, round), price(item, p).
    pay(o, q * p) :- kept@(o, item, q, p, n, _), n > 0.

`changed@` has the rows of `order` that come or go, in that round only; so the others of the body are read as of that round, and
may be anything that a body may hold. `kept@` adds up what `met@` has: each answer for each event, as often as its diffs say.
Where nobody asks for more than the changes of `changed@` and `met@`, their rows pass (`plan/incremental/passing`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dlog.dataclass import dataclass
from dlog.engine.compile.problems import Label, Problems, suggestion
from dlog.engine.compile.timed.clock import in_round
from dlog.engine.compile.timed.rewriting import NUMBER, compacted, digest, types_of
from dlog.engine.compile.walk import Node, parts, walk
from dlog.engine.ir.printing import Printer
from dlog.engine.ir.rules import (
    Atom,
    Compare,
    Constant,
    Kind,
    Relation,
    Rule,
    Term,
    Timed,
    Type,
    UserFunctor,
    Variable,
    reading_rule,
)
from dlog.engine.ir.traversal import term_variables
from dlog.grammar import syntax
from dlog.grammar.literal_facts import LiteralFact
from dlog.grammar.source import Source

MARK: Final = "@"
PAIRS: Final = "@pairs"
"""Ends the name of the pairs of an equivalence relation."""
ORIGINAL: Final = "retract(original)"
_EVENT: Final = re.compile(r"@\s*[?A-Za-z_]")
_PLAIN: Final = "an event stands by itself in the body of a rule, beside other conditions"
_ONE: Final = Constant(1, Kind.NUMBER)


# -------------------------------------------------------------------------------------------------------------- of the text


def with_events(program: syntax.Program, source: Source, problems: Problems) -> syntax.Program:
    """The program with a declared relation `@order` for each relation `order` of which it has events."""
    if _EVENT.search(source.text) is None:
        return program
    declared = {n: d for d in program.items if isinstance(d, syntax.RelationDecl) for n in d.names}
    functors = {d.name for d in program.items if isinstance(d, syntax.FunctorDecl)}
    found: dict[str, syntax.RelationDecl] = {}
    items = tuple(_item(item, declared, functors, found, problems) for item in program.items)
    same = all(new is old for new, old in zip(items, program.items, strict=True))
    return program if same else replace(program, items=(*items, *found.values()))


def _item(
    item: syntax.Item,
    declared: Mapping[str, syntax.RelationDecl],
    functors: set[str],
    found: dict[str, syntax.RelationDecl],
    problems: Problems,
) -> syntax.Item:
    if type(item) is LiteralFact or not isinstance(item, syntax.Clause | syntax.Subsumption):
        return item
    roots: Sequence[Node] = parts(item) if isinstance(item, syntax.Clause) else (item.dominated, item.dominating, item.body)
    events = [n for root in roots for n in walk(root) if isinstance(n, syntax.Atom) and n.event]
    if not events:
        return item
    before = len(problems)
    for atom in events:
        _check_name(atom, declared, functors, problems)
    if len(problems) == before:
        _check_places(item, events, declared, problems)
    if len(problems) > before or not isinstance(item, syntax.Clause) or item.body is None:
        return _without(item)
    for atom in events:
        decl = declared[atom.name]
        attributes = tuple(replace(a, type=a.type.removesuffix("<>")) for a in decl.attributes)
        name = MARK + atom.name
        place = decl.name_spans[decl.names.index(atom.name)] if decl.name_spans else decl.span
        found.setdefault(name, syntax.RelationDecl((name,), attributes, span=decl.span, name_spans=(place,)))
    return replace(item, body=_named_events(item.body))


def _named_events(body: syntax.Body) -> syntax.Body:
    """The body with events as atoms of the relations that are declared for them."""
    match body:
        case syntax.Atom(event=True):
            return syntax.Atom(MARK + body.name, body.args, span=body.span)
        case syntax.And(parts=inner) | syntax.Or(parts=inner):
            return replace(body, parts=tuple(map(_named_events, inner)))
        case _:
            return body


def _without(item: syntax.Item) -> syntax.Item:
    """A clause with mistakes in its events, which nothing more is said about."""
    return replace(item, body=syntax.Truth(False)) if isinstance(item, syntax.Clause) and item.body is not None else item


def _check_name(
    atom: syntax.Atom, declared: Mapping[str, syntax.RelationDecl], functors: set[str], problems: Problems
) -> None:
    name = atom.name
    if name in declared:
        if "inline" in declared[name].qualifiers:
            message = f"the relation `{name}` is inline: it has no rows that come"
            problems.add("event", message, Label(atom.span), notes=["declare it without `inline`"])
        return
    if name in functors:
        note = f"an event is of a relation; a functor gives a value: `y = @{name}(...)`"
        problems.add("event", f"`@{name}(...)` is the value of a functor, and no condition", Label(atom.span), notes=[note])
        return
    guess = suggestion(name, declared)
    hint = guess.replace("`", "`@", 1) if guess else f"declare it with .decl {name}(...)"
    problems.add("unknown-relation", f"unknown relation `{name}`", Label(atom.span), notes=[hint])


def _check_places(
    item: syntax.Clause | syntax.Subsumption,
    events: Sequence[syntax.Atom],
    declared: Mapping[str, syntax.RelationDecl],
    problems: Problems,
) -> None:
    """Whether events stand where what comes can be waited for: one in each alternative of a rule's body."""
    body = item.body if isinstance(item, syntax.Clause) else None
    alone = {} if body is None else {id(a): a for a in _alone(body)}
    for atom in events:
        if id(atom) not in alone:
            problems.add("event", f"the event `@{atom.name}` cannot stand here", Label(atom.span), notes=[_PLAIN])
    for head in item.heads if isinstance(item, syntax.Clause) else ():
        decl = declared.get(head.name)
        if decl is not None and "inline" in decl.qualifiers:
            message = f"the relation `{head.name}` is inline: its rules cannot wait for events"
            problems.add("event", message, Label(events[0].span), notes=["declare it without `inline`"])


def _alone(body: syntax.Body) -> list[syntax.Atom]:
    """The events that are conditions of a body, or of an alternative of it."""
    match body:
        case syntax.Atom(event=True):
            return [body]
        case syntax.And(parts=inner) | syntax.Or(parts=inner):
            return [atom for part in inner for atom in _alone(part)]
        case _:
            return []


# --------------------------------------------------------------------------------------------------------------- of a rule


@dataclass(frozen=True, slots=True)
class Split:
    """The rules and relations that take the place of a rule."""

    rules: tuple[Rule, ...]
    relations: tuple[Relation, ...]
    timed: Mapping[str, Timed]


def event_of(rule: Rule) -> Atom | None:
    """The event that a rule waits for."""
    return next((x for x in rule.body if isinstance(x, Atom) and x.relation[:1] == MARK), None)


def check_events(rule: Rule, problems: Problems) -> bool:
    """Whether a rule has no more than one event."""
    events = [x for x in rule.body if isinstance(x, Atom) and x.relation[:1] == MARK]
    if len(events) > 1:
        labels = (Label(events[1].span), Label(events[0].span, "the first one"))
        problems.add("event", "a rule waits for one event", *labels, notes=_for_each(events))
    return len(events) == 1


def _for_each(events: Sequence[Atom]) -> list[str]:
    """What to write in the place of a rule with several events."""
    names = [event.relation.removeprefix(MARK) for event in events]
    bodies = [", ".join(f"{'@' if k == n else ''}{name}(...)" for k, name in enumerate(names)) for n in range(len(names))]
    return [
        f"where {'either' if len(names) == 2 else 'each'} is to meet what is there of the other{'s' * (len(names) > 2)} "
        f"when it comes, write a rule for each: `{'`, and `'.join(bodies)}`",
        "where one is what the rule waits for, write the other without `@`",
    ]


def split_events(
    rule: Rule,
    event: Atom,
    original: bool,
    paired: bool,
    relations: Mapping[str, Relation],
    types: Mapping[str, Type],
    functors: Mapping[str, UserFunctor],
) -> Split:
    """`paired`: the events are of an equivalence relation, whose pairs are kept for them."""
    source = relations[event.relation.removeprefix(MARK)]
    known = types_of(rule, relations, types, functors)
    rule, args = _named(rule, event, source)
    diff, round = (Variable(len(rule.variables) + k) for k in range(2))
    wide = replace(rule, variables=(*rule.variables, "@diff", "@round"), kinds=(*rule.kinds, Kind.NUMBER, Kind.NUMBER))
    others = _others(rule, args)
    sign = _ONE if original else diff
    rest = [in_round(x, round) for x in rule.body if x is not event]
    met = compacted(wide, "", (*args, *others, sign, round), (replace(event, relation="", args=(*args, sign, round)), *rest))
    said = Printer(rule.variables, explicit=True).call(rule.head.relation, rule.head.args)
    number = digest(met, source.name, original, said)  # each rule has events of its own: it may be added later than another
    changed, found, kept = (f"{how}@{number}" for how in ("changed", "met", "kept"))
    first = replace(met.body[0], relation=changed)  # type: ignore[arg-type]
    met = replace(met, head=replace(met.head, relation=found), body=(first, *met.body[1:]))
    main = compacted(
        wide,
        rule.head.relation,
        rule.head.args,
        (Atom(kept, (*args, *others, diff, None), event.span), Compare(">", diff, Constant(0, Kind.NUMBER), Kind.NUMBER)),
    )
    ends = (("@diff", NUMBER), ("@round", NUMBER))
    columns = (*source.attributes, *((f"@{k}", known[v.id]) for k, v in enumerate(others)), *ends)
    made = tuple(Relation(name, columns, event.span) for name in (found, kept))
    made = (Relation(changed, (*source.attributes, *ends), event.span), *made)
    rules = [main, met]
    followed = source
    if paired:
        followed = replace(source, name=f"{source.name}{PAIRS}", span=event.span)
        rules.append(_copying(followed, source))
        made = (followed, *made)
    timed = {
        changed: Timed("changed", followed.name, "", original, event.span),
        kept: Timed("kept", found, changed, original, event.span),
    }
    return Split(tuple(rules), made, timed)


def _copying(copy: Relation, source: Relation) -> Rule:
    """A rule that has a relation be as another one."""
    rule = reading_rule(source)
    return replace(rule, head=replace(rule.head, relation=copy.name))


def without_event(rule: Rule, event: Atom) -> Rule:
    """The rule as it is where all rows come at once."""
    plain = replace(event, relation=event.relation.removeprefix(MARK))
    return replace(rule, body=tuple(plain if x is event else x for x in rule.body))


def _named(rule: Rule, event: Atom, source: Relation) -> tuple[Rule, tuple[Variable | Constant, ...]]:
    """The rule with a variable for each anonymous argument of the event, and the event's arguments."""
    variables, kinds, args = list(rule.variables), list(rule.kinds), list[Variable | Constant]()
    for arg, kind in zip(event.args, source.kinds, strict=True):
        if arg is None:
            arg = Variable(len(variables))
            variables.append(f"@{len(variables)}")
            kinds.append(kind)
        args.append(arg)
    return replace(rule, variables=tuple(variables), kinds=tuple(kinds)), tuple(args)


def _others(rule: Rule, args: Sequence[Term]) -> tuple[Variable, ...]:
    """The variables of the head that are not the event's."""
    own = {v for arg in args for v in term_variables(arg)}
    return tuple(Variable(v) for v in dict.fromkeys(v for t in rule.head.args for v in term_variables(t)) if v not in own)
