"""The columns of a key, for `upsert`."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.arguments import texts
from dlog.engine.ir.rules import Relation
from dlog.grammar.suggest import closest
from dlog.sessions.mistakes import mistake

Key = tuple[int, ...]


def key_columns(relation: Relation, names: Sequence[str] | str | None) -> Key:
    """The places of the key's columns: by default the first."""
    if not relation.arity:
        raise mistake("bad-key", f"`{relation.name}` has no columns, so no key")
    if names is None:
        return (0,)
    declared = [name for name, _ in relation.attributes]
    found = []
    for name in texts("key", (names,) if isinstance(names, str) else names, "the name of a column, or several"):
        if name not in declared:
            close = closest(name, declared)
            notes = [f"its columns are {', '.join(declared)}", *([f"did you mean `{close}`?"] if close else [])]
            raise mistake("bad-key", f"`{relation.name}` has no column `{name}`", *notes)
        found.append(declared.index(name))
    if not found:
        raise mistake("bad-key", "a key has at least one column")
    return tuple(found)
