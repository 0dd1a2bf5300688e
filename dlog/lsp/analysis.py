"""What the compiler says of a text: its mistakes and warnings, and the typed rules where it has none."""

from __future__ import annotations

from collections.abc import Sequence

from dlog.dataclass import dataclass
from dlog.engine.compiler import compile_source
from dlog.engine.ir.rules import Kind, Program, Rule
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError
from dlog.grammar.preprocess import preprocess_text
from dlog.grammar.source import Span


@dataclass(frozen=True, slots=True)
class Analysis:
    """`program` is None where there are mistakes. `files` are the lines of all files that the text is made of, by name."""

    name: str
    findings: tuple[Diagnostic, ...]
    program: Program | None
    files: dict[str, list[str]]

    def variable_kind(self, name: str, line: int) -> Kind | None:
        """The kind of a variable in the rule that stands on a line (from 1) of the text itself."""
        rule = self._rule_at(line, name)
        return None if rule is None else rule.kinds[rule.variables.index(name)]

    def _rule_at(self, line: int, variable: str) -> Rule | None:
        if self.program is None:
            return None
        rules = (rule for stratum in self.program.strata for rule in stratum.rules if variable in rule.variables)
        return next((rule for rule in rules if self._covers(rule.span, line)), None)

    def _covers(self, span: Span, line: int) -> bool:
        assert self.program is not None
        first, last = (self.program.source.locate(at) for at in (span.start, span.end))
        return first.file == self.name and first.line <= line <= last.line


def analyse(text: str, name: str, include: Sequence[str] = (), macros: Sequence[str] = ()) -> Analysis:
    """The text as the content of a file. Nothing is raised: what fails is a finding."""
    found: list[Diagnostic] = []
    files = {name: text.split("\n")}
    program = None
    try:
        source = preprocess_text(text, name, include, macros)
        files = source.files
        program = compile_source(source, found.extend)
    except DlogError as error:
        found = list(error.diagnostics)
    except RecursionError:
        found = [Diagnostic("too-deep", "the program is nested too deeply")]
    except InternalError as error:
        found = [Diagnostic("internal", str(error))]
    return Analysis(name, tuple(found), program, files)
