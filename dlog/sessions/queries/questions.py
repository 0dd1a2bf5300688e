"""The questions of a session over one engine: compiled once, answered as often as they are asked."""

from __future__ import annotations

from dlog.codec import Codec
from dlog.engine.rounds_engine import RoundsEngine
from dlog.engine.values.table import Table
from dlog.relation import Relation
from dlog.sessions.queries.answers import Tables, evaluation, loaded, run, select, selection
from dlog.sessions.queries.compiled import Question, compile_question
from dlog.sessions.text import Text

MAX_COMPILED_QUESTIONS = 256
"""Compiled questions that are kept: trades memory against compiling again."""


class Questions:
    """Compiles and answers. What the engine has not computed is computed for a question, and not kept."""

    def __init__(self, text: Text, engine: RoundsEngine, codec: Codec, threads: int, memory: int | None) -> None:
        self._text = text
        self._engine = engine
        self._codec = codec
        self._limits = threads, memory
        self._compiled: dict[tuple[str, frozenset[str]], Question] = {}

    def compiled(self, question: str) -> Question:
        """The question against what is there now."""
        key = question, self._engine.pending
        found = self._compiled.get(key) if isinstance(question, str) else None
        if found is None:
            found = compile_question(self._text, *key)
            if len(self._compiled) >= MAX_COMPILED_QUESTIONS:
                self._compiled.clear()
            self._compiled[key] = found
        return found

    def answer(self, question: Question, tables: Tables) -> Relation:
        """The rows of the variables for which the question's body holds."""
        found = select(question, tables, self._codec)
        if found is not None:
            return found
        return run(question, evaluation(question, tables, self._external, self._codec), self._codec, *self._limits)

    def explain(self, question: Question, tables: Tables) -> str:
        """In which way it is answered, and the plan if it is evaluated."""
        found = selection(question)
        if found is not None:
            return f"rows of `{found[1].relation}` are selected"
        way = evaluation(question, tables, self._external, self._codec)
        plan = loaded(way, self._codec, *self._limits).explain()
        return f"{way.reason}\n{plan}"

    def _external(self, relation: str) -> Table:
        return self._engine.external(relation)
