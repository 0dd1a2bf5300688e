"""Proofs: why a row is in a relation, and why another is not. `Session.why` and `Session.why_not` ask for them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager

from dlog.codec import Codec, Row
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.values.table import Table
from dlog.grammar.diagnostics import Diagnostic, DlogError
from dlog.proofs.absence import absence
from dlog.proofs.model import Absent, Aggregated, Holds, Premise, Proof
from dlog.proofs.search import Search
from dlog.proofs.snapshot import snapshot
from dlog.proofs.why_not import Failure, WhyNot
from dlog.proofs.wording import row_text

__all__ = ["Absent", "Aggregated", "Failure", "Holds", "Premise", "Proof", "WhyNot", "prove", "refute"]

Lock = AbstractContextManager[object]
LIMIT = 10


def prove(
    engine: RoundsEngine, codec: Codec, table: Callable[[str], Table], lock: Lock, relation: str, row: Row, limit: int = LIMIT
) -> Proof:
    """The proof of a row as of now. `table` reads relations as of this round however late it is asked; the caller holds the
    lock."""
    search = Search(snapshot(engine, codec, table, lock, relation), limit)
    words = search.encoded(relation, row)
    if not search.is_present(relation, words):
        note = "`why_not` (in the REPL: .whynot) tells what is missing"
        raise DlogError(Diagnostic("no-such-row", f"{row_text(relation, row)} does not hold", notes=(note,)))
    return search.proof(relation, words)


def refute(engine: RoundsEngine, codec: Codec, table: Callable[[str], Table], lock: Lock, relation: str, row: Row) -> WhyNot:
    """The explanation of a row that does not hold now."""
    search = Search(snapshot(engine, codec, table, lock, relation), LIMIT)
    if search.is_present(relation, search.encoded(relation, row)):
        note = "`why` (in the REPL: .why) tells from what it follows"
        raise DlogError(Diagnostic("row-holds", f"{row_text(relation, row)} holds", notes=(note,)))
    return absence(search, relation, row)
