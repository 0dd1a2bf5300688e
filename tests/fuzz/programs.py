"""Everything that is done with a program: it is read, printed, compiled, planned, run and opened as a session."""

from __future__ import annotations

import traceback
from dataclasses import dataclass
from typing import Any

ROWS = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: "ok", "refused" (the user's mistake), "slow", or what was raised and where."""

    end: str
    detail: str = ""

    @property
    def is_finding(self) -> bool:
        return self.end not in ("ok", "refused", "slow")


def attempt(text: str) -> Outcome:
    """The first step that raises decides."""
    from dlog.grammar.diagnostics import DlogError, render_all

    try:
        try:
            _printed(text)
            program = _checked(text)
        except DlogError as error:
            render_all(error.diagnostics)
            return Outcome("refused")
        _planned(program)
        for step in (_run, _maintained):
            try:
                step(text, program)
            except DlogError as error:
                render_all(error.diagnostics)
        return Outcome("ok")
    except MemoryError:
        return Outcome("slow")
    except BaseException as error:
        return Outcome(place(error), "".join(traceback.format_exception(error))[-3000:])


def place(error: BaseException) -> str:
    """The first cause and where it was raised: what makes two findings one."""
    while error.__cause__ is not None:
        error = error.__cause__
    frames = [f for f in traceback.extract_tb(error.__traceback__) if "/dlog/" in f.filename or "/fuzz/" in f.filename]
    where = f"{'/'.join(frames[-1].filename.rsplit('/', 2)[1:])}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} in {where}"


def _printed(text: str) -> None:
    """What is printed is read as the same tree, and printed as the same text."""
    from dlog.grammar.parser import parse
    from dlog.grammar.preprocess import NEEDED
    from dlog.grammar.printer import format_source
    from dlog.grammar.source import Source
    from dlog.pipeline import stage

    if not NEEDED.search(text) and "__LINE__" not in text:
        with stage("formatter"):
            layout = format_source(Source(text))
            assert format_source(Source(layout)) == layout, "another layout of what has the layout"
            assert parse(Source(layout)) == parse(Source(text)), "another tree than that of the text"


def _checked(text: str) -> Any:
    from dlog.engine.compiler import STAGES, print_stage
    from dlog.grammar.preprocess import preprocess
    from dlog.pipeline import compile_program, stage

    program = compile_program(text)
    with stage("printing"):
        for name in STAGES:
            print_stage(preprocess(text), name)
    return program


def _planned(program: Any) -> None:
    from dlog.engine.plan.incremental.build import explain_maintenance
    from dlog.engine.plan.incremental.thresholds import weighted
    from dlog.engine.plan.statistics import Declared
    from dlog.grammar.diagnostics import DlogError
    from dlog.pipeline import assumed_plans, optimized, stage

    try:
        maintained = weighted(program)
        for _ in assumed_plans(optimized(program)):
            pass
        with stage("planner"):
            for stratum in maintained.strata:
                explain_maintenance(stratum, maintained, Declared())
    except DlogError:
        pass


def _run(text: str, program: Any) -> None:
    import dlog
    from dlog.engine.formats import check_directives
    from dlog.pipeline import stage
    from tests.naive import USER_FUNCTIONS

    with stage("output"):
        check_directives(program)
    result: Any = dlog.run(text, _rows(program), threads=1, memory=2 << 30, functors=USER_FUNCTIONS)
    for name in result:
        for _ in zip(range(5), result[name], strict=False):
            pass
        if result[name].rows < 10_000:
            result[name].to_arrow().validate(full=True)


def _maintained(text: str, program: Any) -> None:
    import dlog
    from tests.naive import USER_FUNCTIONS

    with dlog.session(text, threads=1, memory=2 << 30, max_iterations=1000, functors=USER_FUNCTIONS) as session:
        for name, rows in _rows(program).items():
            for row in rows:
                session.insert(name, row)
                session.commit()
        for name, rows in _rows(program).items():
            session.remove(name, rows[0])
        session.commit()
        for name in program.relations:
            list(session[name].to_numpy())


def _rows(program: Any) -> dict[str, list[tuple[Any, ...]]]:
    inputs = dict.fromkeys(io.relation for io in program.io if io.action == "input")
    relations = [program.relations[name] for name in inputs]
    return {r.name: [tuple(_value(type, i) for _, type in r.attributes) for i in range(ROWS)] for r in relations if r.arity}


def _value(type: Any, i: int) -> Any:
    from dlog.engine.ir.rules import Kind

    match type.kind:
        case Kind.NUMBER | Kind.UNSIGNED:
            return i
        case Kind.FLOAT:
            return i / 2
        case Kind.SYMBOL:
            return "aé🙂"[: i + 1]
        case _:
            return None
