"""The program of a session as text and syntax tree, to which clauses are added and from which they are dropped.

Text is only ever appended, so that the spans of all nodes stay right whatever is dropped.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import field, replace
from functools import cached_property
from pathlib import Path

from dlog.arguments import path
from dlog.arguments import text as argument_text
from dlog.dataclass import dataclass
from dlog.engine.compile.components import Expansion, expand
from dlog.engine.compile.strata.stratify import stratify
from dlog.engine.compile.timed.findings import FOUND
from dlog.engine.compile.walk import walk
from dlog.engine.compiler import check_tree, parse
from dlog.engine.ir.rules import Io, Program
from dlog.functors import FunctorSource, linked
from dlog.grammar import syntax
from dlog.grammar.diagnostics import Diagnostic, DlogError, Label
from dlog.grammar.preprocess import preprocess
from dlog.grammar.source import Source, Span
from dlog.grammar.suggest import closest
from dlog.pipeline import stage
from dlog.relation import unknown_relation
from dlog.sessions.mistakes import mistake


@dataclass(frozen=True)
class Text:
    """A program, parsed. `items` are those in force, as written; `source` holds every text there ever was."""

    source: Source
    items: tuple[syntax.Item, ...]
    functors: FunctorSource = field(default=None, compare=False, repr=False)
    """Functions for the functors that the program declares."""
    stored: int = field(default=0, compare=False)
    """The end of what comes from the folder of a state, where somebody else may have written it."""

    def __str__(self) -> str:
        """The program as it is now, in the canonical layout."""
        from dlog.grammar.unparse import format_program

        return format_program(syntax.Program(self.items))

    @property
    def formatted(self) -> list[str]:
        """Each item in the canonical layout."""
        from dlog.grammar.unparse import format_program

        return [format_program(syntax.Program((item,))).rstrip("\n") for item in self.items]

    @cached_property
    def expansion(self) -> Expansion:
        """The program with the items of components in the place of their instances."""
        with stage("compiler"):
            return expand(syntax.Program(self.items), self.source)

    @property
    def expanded(self) -> tuple[syntax.Item, ...]:
        """The items in force, without components."""
        return self.expansion.program.items

    @property
    def declarations(self) -> tuple[syntax.Item, ...]:
        """The items that say what relations and types there are, not what rows they have or where from; clauses of inline
        relations are such."""
        inline = {n for i in self.expanded if isinstance(i, syntax.RelationDecl) and "inline" in i.qualifiers for n in i.names}
        return tuple(item for item in self.expanded if _declares(item, inline))

    def compiled(self, items: tuple[syntax.Item, ...] | None = None) -> Program:
        """The typed program of all items, or of these, which are without components, with the functions of its functors."""
        return linked(self.checked(items), self.functors)

    def checked(self, items: tuple[syntax.Item, ...] | None = None) -> Program:
        """The typed program alone: it cannot be evaluated where it calls functors."""
        with stage("compiler"), self.expansion.reported():
            found = stratify(check_tree(syntax.Program(self.expanded if items is None else items), self.source))
        if not self.stored:
            return found
        return replace(found, io=tuple(_without_targets(io) if io.span.start < self.stored else io for io in found.io))

    def placed_in(self, source: Source) -> Text:
        """The same program whose text goes on in `source`."""
        text = replace(self, source=source)
        vars(text)["expansion"] = self.expansion  # not computed again
        return text

    def parsed(self, more: Source) -> Text:
        """The items of a further text alone; their spans are in the joined text."""
        joined = self.source.followed_by(more)
        with stage("parser"):
            return replace(self, source=joined, items=parse(joined.hidden_before(len(self.source.text) + 1)).items)


def read_text(program: Path | str, include: Sequence[str], macros: Sequence[str]) -> Text:
    """A program file (a Path) or program text."""
    with stage("preprocessor"):
        source = preprocess(program, include, macros)
    with stage("parser"):
        return Text(source, parse(source).items)


def stored_text(text: str, folder: Path) -> Text:
    """The program of a state, which was preprocessed before it came there: nothing in it is read from files."""
    source = Source(f"{text}\n")
    with stage("parser"):
        try:
            return Text(source, parse(source).items, stored=len(source.text))
        except DlogError:
            from dlog.engine.state.files import damaged
            from dlog.engine.state.manifest import NAME

            raise damaged(folder / NAME, "the text of its program is no program") from None


def added(text: Text, more: Path | str, include: Sequence[str] = (), macros: Sequence[str] = ()) -> Text:
    """The program with the clauses, declarations and directives of `more`."""
    path("text", more, "rules as text, or the Path of a file of them")
    with stage("preprocessor"):
        new = text.parsed(preprocess(more, include, macros))
    return replace(new, items=text.items + new.items)


def _without_targets(io: Io) -> Io:
    """A directive whose relation is read or written where somebody says, without what it names besides to be written to: files
    of wrong rows, tables of databases."""

    def is_target(name: str, value: str) -> bool:
        return (name, io.action) == ("table", "output") or (name == "errors" and value.startswith("reject"))

    return replace(io, params=tuple((name, value) for name, value in io.params if not is_target(name, value)))


def new_facts(before: Text, now: Text) -> tuple[syntax.Clause, ...]:
    """The facts of a program that stand behind those of an earlier one, or come with the instances of components there."""
    written = len(before.items)
    facts = [item for item in now.items[written:] if isinstance(item, syntax.Clause) and item.body is None]
    if now.expanded is not now.items:
        known = {item for item in before.expanded if isinstance(item, syntax.Clause) and item.body is None}
        own = _of_components(now)
        facts += [item for item in own if isinstance(item, syntax.Clause) and item.body is None and item not in known]
    return tuple(facts)


def is_name(text: str) -> bool:
    """Whether a text is the name of a relation, with those of component instances before it or not."""
    return all(part.isidentifier() for part in text.split("."))


def without_rules(text: Text, which: str) -> Text:
    """The program without the clauses that `which` writes out or, if it is the name of a relation, without its rules."""
    argument_text("which", which, "rules written out, or the name of their relation")
    if is_name(which.strip()):
        return _without_rules_of(text, which.strip())
    clauses = [item for item in text.parsed(Source(which, "<dropped>")).items if isinstance(item, syntax.Clause)]
    left = list(text.items)
    for clause in clauses:
        if clause.body is None:
            raise mistake("no-rule", "a fact is not a rule", "remove the row with `remove`")
        if clause not in left:
            raise _no_such_rule(text, clause)
        left.remove(clause)
    if not clauses:
        raise mistake("no-rule", f"there is no rule in {which.strip()!r}")
    heads = {head.name for clause in clauses for head in clause.heads}
    return replace(text, items=tuple(item for item in left if not _is_found(item, heads)))


def _is_found(item: syntax.Item, names: Collection[str]) -> bool:
    """Whether an item reads what events of some relations have found: once for all, by the order of their rules."""
    if not isinstance(item, syntax.Directive) or item.kind != "input" or FOUND not in dict(item.params):
        return False
    return not set(names).isdisjoint(item.relations)


def _without_rules_of(text: Text, name: str) -> Text:
    declared = relations(text)
    if name not in declared:
        raise unknown_relation(name, declared)
    _check_rules_written(text, name)
    left: list[syntax.Item] = []
    for item in text.items:
        if isinstance(item, syntax.Clause) and item.body is not None:
            heads = tuple(head for head in item.heads if head.name != name)
            if heads:
                left.append(item if heads == item.heads else replace(item, heads=heads))
        elif not _is_found(item, (name,)):
            left.append(item)
    if tuple(left) == text.items:
        raise mistake("no-rule", f"`{name}` has no rules")
    return replace(text, items=tuple(left))


def without_relations(text: Text, names: Sequence[str]) -> Text:
    """The program without relations: their declarations, clauses and directives. Raises DlogError where rules of others still
    read them."""
    for name in names:
        text = _without_rules_of(text, name) if _has_rules(text, name) else text
    for name in names:
        text = _without_relation(text, name)
    return text


def _without_relation(text: Text, name: str) -> Text:
    declared = relations(text)
    if name not in declared:
        raise unknown_relation(name, declared)
    if name not in _declared(text.items):
        raise mistake("of-component", f"`{name}` is declared in a component: an instance keeps all of its relations")
    found = replace(text, items=tuple(kept for item in text.items if (kept := _without(item, name)) is not None))
    readers = [item for item in found.expanded if isinstance(item, syntax.Clause) and _reads(item, name)]
    if readers:
        raise _in_use(text, name, readers)
    return found


def relations(text: Text) -> list[str]:
    """The names of the declared relations."""
    return _declared(text.expanded)


def _declared(items: Sequence[syntax.Item]) -> list[str]:
    return [name for item in items if isinstance(item, syntax.RelationDecl) for name in item.names]


def _of_components(text: Text) -> list[syntax.Item]:
    """The items that are in the program because of components."""
    written = set(map(id, text.items))
    return [item for item in text.expanded if id(item) not in written]


def _check_rules_written(text: Text, name: str) -> None:
    own = [item for item in _of_components(text) if isinstance(item, syntax.Clause) and item.body is not None]
    rules = [item for item in own if any(head.name == name for head in item.heads)]
    if rules:
        raise _of_component(text, name, rules)


def _of_component(text: Text, name: str, rules: Sequence[syntax.Clause]) -> DlogError:
    message = f"rules of `{name}` are those of a component: an instance keeps all of its rules"
    return DlogError(Diagnostic("of-component", message, tuple(Label(rule.span) for rule in rules), (), text.source))


def _declares(item: syntax.Item, inline: set[str]) -> bool:
    match item:
        case syntax.Clause(heads=heads):
            return all(head.name in inline for head in heads)
        case syntax.Subsumption() | syntax.Directive():
            return False
        case _:
            return True


def _has_rules(text: Text, name: str) -> bool:
    clauses = (item for item in text.expanded if isinstance(item, syntax.Clause) and item.body is not None)
    return any(head.name == name for clause in clauses for head in clause.heads)


def _without(item: syntax.Item, name: str) -> syntax.Item | None:
    match item:
        case syntax.RelationDecl(names=names, name_spans=spans) if name in names:
            left, left_spans = _names_without(name, names, spans)
            return replace(item, names=left, name_spans=left_spans) if left else None
        case syntax.Directive(relations=names, relation_spans=spans) if name in names:
            left, left_spans = _names_without(name, names, spans)
            return replace(item, relations=left, relation_spans=left_spans) if left else None
        case syntax.Clause(heads=heads, body=None) if all(head.name == name for head in heads):
            return None
        case _:
            return item


def _reads(item: syntax.Clause, name: str) -> bool:
    return item.body is not None and any(isinstance(node, syntax.Atom) and node.name == name for node in walk(item.body))


def _in_use(text: Text, name: str, readers: Sequence[syntax.Clause]) -> DlogError:
    """All rules that read a relation, shown, and in the message the relations they are for."""
    names = sorted({head.name for item in readers for head in item.heads})
    message = f"`{name}` is in use: it is read by rules for {', '.join(f'`{n}`' for n in names)}"
    labels = tuple(Label(item.span, f"reads `{name}`") for item in readers)
    return DlogError(Diagnostic("relation-in-use", message, labels, ("drop these rules first",), text.source))


def _names_without(name: str, names: tuple[str, ...], spans: tuple[Span, ...]) -> tuple[tuple[str, ...], tuple[Span, ...]]:
    kept = [i for i, n in enumerate(names) if n != name]
    return tuple(names[i] for i in kept), tuple(spans[i] for i in kept if i < len(spans))


def _no_such_rule(text: Text, clause: syntax.Clause) -> Exception:
    from dlog.grammar.unparse import format_clause

    own = [item for item in _of_components(text) if item == clause and isinstance(item, syntax.Clause)]
    if own:
        return _of_component(text, own[0].heads[0].name, own)
    wanted = format_clause(clause)
    known = [format_clause(item) for item in text.items if isinstance(item, syntax.Clause) and item.body is not None]
    close = closest(wanted, known)
    return mistake("no-rule", f"there is no such rule: {wanted}", *([f"did you mean `{close}`?"] if close else []))
