"""The prompt of `dlog run -t explain`, with Souffle's commands: proofs of rows, and questions, once a program has run.

Prompts and remarks are for who types; from a file or a pipe, only answers are printed.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, Final, TextIO

from dlog.engine.compiler import parse
from dlog.engine.ir.rules import Kind, Program
from dlog.engine.state.files import text_to_extend
from dlog.functors import functions_of
from dlog.grammar.diagnostics import DlogError, printable
from dlog.grammar.syntax import Clause, ComponentDecl, Item
from dlog.pipeline import Job
from dlog.proofs.model import Proof
from dlog.proofs.proof_trees import Tree, TreeBuilder
from dlog.sessions import Session, session

COMMANDS: Final = """\
setdepth N                    the height from which proofs are cut off
explain RELATION(1, "a")      the proof of a row
subproof RELATION(N)          a proof that was cut off
explainnegation RELATION(1)   what fails in each rule for a row that is not there
rule RELATION N               a rule
measure RELATION              how many rows a relation has
query RELATION(x, 1), ...     solutions: ; is the next one, . ends them
output [FILE]                 proofs go to a file, or to the screen again
format json|proof             how proofs are written
exit
"""
_ROW = re.compile(r"\s*([\w.?-]+)\s*\((.*)\)\s*\.?\s*")
_VALUE = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|([^,"\s][^,]*?))\s*(?:,|$)')


class ExplainPrompt:
    """Reads commands until `exit` or the end."""

    def __init__(self, session: Session, program: Program, lines: TextIO, out: TextIO) -> None:
        self._session = session
        self._program = program
        self._lines = lines
        self._out = out
        self._typed = lines.isatty()
        self._trees = TreeBuilder(self._number)
        self._clauses = _clauses_by_head(parse(program.source).items)
        self._as_json = False
        self._file: TextIO | None = None

    def run(self) -> None:
        for line in self._commands():
            word, _, rest = line.strip().partition(" ")
            if word in ("exit", "quit", "q"):
                return
            if word:
                try:
                    self._command(word, rest.strip())
                except DlogError as error:
                    self._say(str(error))
                except OSError as error:
                    self._say(f"{rest}: {error.strerror or error}")
                except ValueError:
                    self._say(COMMANDS)

    def close(self) -> None:
        """Closes the file that proofs go to, if there is one."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _commands(self) -> Iterator[str]:
        while True:
            if self._typed:
                print("explain> ", end="", file=self._out, flush=True)
            if not (line := self._lines.readline()):
                return
            yield line

    def _command(self, word: str, rest: str) -> None:
        """ValueError where what is typed is no command."""
        match word:
            case "setdepth":
                self._trees.depth = max(1, int(rest))
            case "explain":
                self._explain(*self._row(rest))
            case "subproof":
                found, known = _ROW.fullmatch(rest), self._trees.subproofs
                place = int(found[2]) if found is not None else -1
                self._show(self._trees.tree(known[place]) if 0 <= place < len(known) else Tree("Subproof not found"))
            case "explainnegation":
                self._say(str(self._session.why_not(*self._row(rest))))
            case "rule":
                name, wanted = rest.split()
                texts = {number: text for text, number in self._rules(name).items()}
                self._say(texts.get(int(wanted), "Rule not found"))
            case "measure":
                self._say(str(self._session[rest].rows))
            case "query" if rest:
                self._query(rest)
            case "output":
                self.close()
                self._file = text_to_extend(Path(rest), anew=True) if rest else None
            case "format":
                if rest not in ("json", "proof"):
                    raise ValueError
                self._as_json = rest == "json"
            case _:
                raise ValueError

    def _explain(self, name: str, row: tuple[Any, ...]) -> None:
        relation = self._program.relations.get(name)
        if relation is None or relation.arity != len(row):
            self._show(Tree("Relation not found"))
        elif row in self._session[name]:
            self._show(self._trees.tree(self._session.why(name, row)))
        else:
            self._show(Tree("Tuple not found"))

    def _show(self, tree: Tree) -> None:
        text = tree.json_text(self._numbered()) if self._as_json else "\n".join(tree.lines())
        if self._file is None:
            self._say(text)
        else:
            self._file.write(f"{text}\n")
            self._file.flush()

    def _query(self, question: str) -> None:
        """Prints solutions one by one; the last one ends with a dot."""
        answers = self._session.query(question)
        if not answers.attributes:
            self._say("true." if answers.rows else "false.")
            return
        names = answers.attributes
        solutions = [
            ", ".join(f"{name} = {_plain(value)}" for name, value in zip(names, row, strict=True)) for row in answers.in_order()
        ]
        if not solutions:
            self._say("false.")
        for number, solution in enumerate(solutions, 1):
            if number == len(solutions):
                self._say(f"{solution}.")
                return
            self._say(solution)
            while (said := self._lines.readline().strip()) != ";":
                if said in (".", ""):
                    return
                self._say("; is the next solution, . ends them")

    def _row(self, text: str) -> tuple[str, tuple[Any, ...]]:
        """A relation and values as they are written."""
        if (found := _ROW.fullmatch(text)) is None:
            raise ValueError
        name, written = found.groups()
        relation = self._program.relations.get(name)
        if relation is not None and Kind.RECORD in relation.kinds:
            [row] = self._session.written(f"{name}({written}).")
            return row
        kinds = [kind.value for kind in relation.kinds] if relation is not None else []
        values: list[Any] = []
        place = 0
        while place < len(written):
            if (value := _VALUE.match(written, place)) is None:
                raise ValueError
            values.append(_value(value[1], value[2], kinds[len(values)] if len(values) < len(kinds) else "number"))
            place = value.end()
        return name, tuple(values)

    def _rules(self, name: str) -> dict[str, int]:
        """The numbers of a relation's rules, which count its clauses in the order of the text, from 1."""
        begins = self._clauses[name.rpartition(".")[2]]
        return {rule.text: bisect_right(begins, rule.span.start) for rule in self._program.rules.get(name, ())}

    def _numbered(self) -> list[tuple[str, str]]:
        """The label and the text of every rule, by relations and places."""
        each = ((number, text) for name in sorted(self._program.rules) for text, number in self._rules(name).items())
        return [(f"(R{number})", text) for number, text in each]

    def _number(self, proof: Proof) -> int:
        return self._rules(proof.relation).get(proof.rule or "", 0)

    def _say(self, text: str) -> None:
        print(printable(text), file=self._out)


def _clauses_by_head(items: Iterable[Item]) -> dict[str, list[int]]:
    """Where the clauses begin that have heads of a name, those of components included."""
    found: dict[str, list[int]] = defaultdict(list)
    for item in items:
        if isinstance(item, ComponentDecl):
            for name, begins in _clauses_by_head(item.items).items():
                found[name] += begins
        elif isinstance(item, Clause):
            for head in item.heads:
                found[head.name.rpartition(".")[2]].append(item.span.start)
    return defaultdict(list, {name: sorted(begins) for name, begins in found.items()})


def _value(quoted: str | None, bare: str | None, kind: str) -> Any:
    if bare is None:
        return re.sub(r"\\(.)", r"\1", quoted or "")
    return float(bare) if kind == "float" else bare if kind == "symbol" else int(bare, 0)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def explain(job: Job, program: Program) -> None:
    """Answers commands of standard input about a program that has been run."""
    facts, _ = job.folders(program)
    with session(
        job.program,
        facts if program.inputs else None,
        threads=job.threads,
        memory=job.memory,
        include=job.include,
        macros=job.macros,
        functors=functions_of(program),
    ) as opened, closing(ExplainPrompt(opened, program, sys.stdin, sys.stdout)) as prompt:
        prompt.run()
