"""Warnings and mistakes as the command line tells them: which ones, and as text, JSON or SARIF."""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlog.dataclass import dataclass
from dlog.engine.compile.warnings.codes import CODES
from dlog.grammar.diagnostics import Diagnostic, DlogError, one_line, render_all, shown_place
from dlog.grammar.suggest import closest
from dlog.version import __version__

SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class WarningChoice:
    """The warnings that somebody wants: none if `silent`, none of the codes that are `off`; as mistakes if `as_errors`."""

    silent: bool = False
    as_errors: bool = False
    off: frozenset[str] = frozenset()

    def select(self, found: Sequence[Diagnostic]) -> list[Diagnostic]:
        severity = "error" if self.as_errors else "warning"
        return [replace(w, severity=severity) for w in found if not self.silent and w.code not in self.off]

    def tell(self, found: Sequence[Diagnostic]) -> None:
        """Prints the chosen ones on standard error, or raises DlogError with them."""
        chosen = self.select(found)
        if chosen and self.as_errors:
            raise DlogError(chosen)
        if chosen:
            print(render_all(chosen) + "\n", file=sys.stderr)

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """A block in which warnings of a run, which have no codes, are silenced or raise DlogError likewise."""
        with warnings.catch_warnings():
            if self.silent:
                warnings.simplefilter("ignore")
            elif self.as_errors:
                warnings.showwarning = _refuse
            yield


def _refuse(message: Warning | str, *_: object, **__: object) -> None:
    raise DlogError(Diagnostic("warning", str(message), notes=("-Werror makes warnings mistakes",)))


def warning_choice(silent: bool, flags: Sequence[str]) -> WarningChoice:
    """The choice by `-w` and the values of `-W`: `error`, and `no-CODE`. Raises DlogError for another one."""
    off = {flag.removeprefix("no-") for flag in flags if flag.startswith("no-")}
    known = ["error", *(f"no-{code}" for code in CODES)]
    if wrong := [flag for flag in flags if flag not in known]:
        guess = closest(wrong[0], known)
        notes = (f"did you mean `-W{guess}`?",) if guess else ()
        raise DlogError(Diagnostic("bad-usage", f"there is no `-W{wrong[0]}`", notes=(*notes, f"known: {', '.join(known)}")))
    return WarningChoice(silent, "error" in flags, frozenset(off))


def as_json(findings: Sequence[Diagnostic]) -> str:
    """A list of objects: code, severity, message, notes, and the places, the primary one first. Lines and columns count from 1;
    an end is the column behind the last character."""
    made = [
        {"code": d.code, "severity": d.severity, "message": d.message, "places": _places(d), "notes": list(d.notes)}
        for d in findings
    ]
    return json.dumps(made, indent=2)


def as_sarif(findings: Sequence[Diagnostic]) -> str:
    """The Static Analysis Results Interchange Format, version 2.1.0 (OASIS), as editors and code scanning read it."""
    texts = {d.code: CODES[d.code].meaning if d.code in CODES else d.code for d in findings}
    rules = [{"id": code, "shortDescription": {"text": text}} for code, text in sorted(texts.items())]
    driver = {"name": "dlog", "version": __version__, "rules": rules}
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": [_result(d) for d in findings]}
    return json.dumps({"$schema": SARIF_SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(found: Diagnostic) -> dict[str, Any]:
    text = "\n".join(map(one_line, (found.message, *found.notes)))
    places = [_location(place) for place in _places(found)]
    result = {"ruleId": found.code, "level": found.severity, "message": {"text": text}, "locations": places[:1]}
    return {**result, "relatedLocations": places[1:]} if places[1:] else result


def _location(place: dict[str, Any]) -> dict[str, Any]:
    region = {"startLine": place["line"], "startColumn": place["column"], "endColumn": place["end"]} if "line" in place else {}
    physical = {"artifactLocation": {"uri": place["file"]}, **({"region": region} if region else {})}
    message = {"message": {"text": one_line(place["message"])}} if place["message"] else {}
    return {"physicalLocation": physical, **message}


def _places(found: Diagnostic) -> list[dict[str, Any]]:
    if found.source is None or not found.labels:
        return [{"file": found.place, "message": ""}] if found.place else []
    return [_place(found, at) for at in range(len(found.labels))]


def _place(found: Diagnostic, at: int) -> dict[str, Any]:
    assert found.source is not None
    start, width = shown_place(found.source, found.labels[at])
    said = found.labels[at].message
    return {"file": start.file, "line": start.line, "column": start.column, "end": start.column + width, "message": said}


def checked(
    path: Path, include: Sequence[str], macros: Sequence[str], choice: WarningChoice, pragmas: Sequence[str]
) -> tuple[list[Diagnostic], str]:
    """What is found in a program, and the line about one without mistakes."""
    from dlog.pipeline import check_execution, compile_program

    found: list[Diagnostic] = []
    try:
        program = compile_program(path, include, macros, lambda warnings: found.extend(choice.select(warnings)), pragmas)
        check_execution(program)
    except DlogError as error:
        return list(error.diagnostics), ""
    if any(finding.severity == "error" for finding in found):
        return found, ""
    rules = sum(len(stratum.rules) for stratum in program.strata)
    return found, f"{path}: ok ({_plural(len(program.relations), 'relation')}, {_plural(rules, 'rule')})"


def print_findings(found: list[Diagnostic], said: list[str]) -> None:
    """Raises DlogError with the mistakes, if there are any."""
    warnings = [finding for finding in found if finding.severity == "warning"]
    for line in said:
        print(one_line(line))
    if warnings:
        print(render_all(warnings), file=sys.stderr)
    if mistakes := [finding for finding in found if finding.severity == "error"]:
        raise DlogError(mistakes)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
