"""Warnings: what a right program says that its author may not have meant. Found on the syntax tree of a program that has been
checked, so that names and types are right; nothing here changes what is executed.

`CODES` has a row for each kind, `find_warnings` is the one way in. Each kind is found by a module of its own: `variables` and
`products` look at one clause, `shadowing` at names that hide others, `relations` at what fills and reads relations, `floats` at
comparisons.
"""

from __future__ import annotations

from collections.abc import Iterator

from dlog.engine.compile.components import Expansion
from dlog.engine.compile.components.checks import unused_overrides
from dlog.engine.compile.plans import ineffective_plans
from dlog.engine.compile.pragmas import ineffective_pragmas, listed, values
from dlog.engine.compile.prints import with_prints
from dlog.engine.compile.problems import Problems
from dlog.engine.compile.strata.stratify import Remarks
from dlog.engine.compile.warnings.codes import CODES
from dlog.engine.compile.warnings.floats import Floats
from dlog.engine.compile.warnings.products import single_rows, unconnected_atoms
from dlog.engine.compile.warnings.relations import Usage
from dlog.engine.compile.warnings.shadowing import shadowed_dates, shadowed_declarations, shadowed_variables
from dlog.engine.compile.warnings.variables import single_variables
from dlog.grammar.diagnostics import Diagnostic, without_floods
from dlog.grammar.literal_facts import without_literal_facts
from dlog.grammar.source import NOWHERE, Source
from dlog.grammar.syntax import Clause, Program, RelationDecl


def find_warnings(expansion: Expansion, source: Source, cycles: Remarks) -> list[Diagnostic]:
    """All warnings about a program without mistakes, in the order of the text; those about the whole program come last. One
    in a component comes once for all instances. `cycles` are what stratification has remarked."""
    if "no-warn" in values(without_literal_facts(expansion.program.items)):
        return []
    found = expansion.warnings(list(_tree_warnings(expansion.program, source, cycles)))
    if expansion.components is not None:
        found += unused_overrides(expansion.components)
        found += shadowed_declarations(expansion.components)
    found.sort(key=_place)
    marked = [Diagnostic(w.code, w.message, w.labels, w.notes, source, source.name, severity="warning") for w in found]
    return without_floods(marked)


def _place(warning: Diagnostic) -> tuple[bool, int]:
    """Where to sort a warning: those without a place in the text come last."""
    start = warning.labels[0].span.start if warning.labels else NOWHERE.start
    return start == NOWHERE.start, start


def _tree_warnings(tree: Program, source: Source, cycles: Remarks) -> Iterator[Diagnostic]:
    tree = with_prints(tree, Problems(source))
    usage, single = Usage(tree), single_rows(tree)
    items = without_literal_facts(tree.items)
    floats = Floats(items)
    names = [name for item in items if isinstance(item, RelationDecl) for name in item.names]
    silent = listed(values(items), "suppress-warnings", names)
    for item in items:
        if isinstance(item, Clause) and item.body is not None and not silent.issuperset(head.name for head in item.heads):
            yield from single_variables(item)
            yield from shadowed_variables(item)
            yield from unconnected_atoms(item, single)
            yield from floats.compared(item)
    yield from (remark for relations, remark in cycles if silent.isdisjoint(relations))
    yield from shadowed_dates(items)
    yield from usage.warnings(silent)
    yield from ineffective_pragmas(items, names)
    yield from ineffective_plans([item for item in items if isinstance(item, Clause)])


__all__ = ["CODES", "find_warnings"]
