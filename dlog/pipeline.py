"""The stages of `dlog run`: compile, load, evaluate, write.

Each stage is a function that takes what it needs and returns what it made; `run_job` is all of them in order. The Python API is
built from the same functions. An exception that no stage expects becomes an `InternalError` naming the stage. The executor, and
with it NumPy and Numba, is imported only once the program is known to be right.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

from dlog.dataclass import dataclass
from dlog.display.report import Report
from dlog.grammar.diagnostics import Diagnostic, DlogError, InternalError

if TYPE_CHECKING:
    from dlog.display.progress import Display
    from dlog.engine.compiler import Stage
    from dlog.engine.ir.rules import Io, Program, Stratum
    from dlog.engine.plan.statistics import Declared
    from dlog.engine.runtime.static.executor import Executor
    from dlog.engine.runtime.storage.catalog import Catalog
    from dlog.engine.values.table import Table
    from dlog.grammar.source import Source

STDOUT = "-"

OnWarnings: TypeAlias = Callable[[list[Diagnostic]], None]
"""What hears the warnings about a program without mistakes."""


@dataclass(frozen=True, slots=True)
class Job:
    """One run of one program, as the command line asks for it."""

    program: Path
    include: tuple[str, ...] = ()
    macros: tuple[str, ...] = ()
    facts: str | None = None
    output: str | None = None
    threads: int = 1
    memory: int | None = None
    on_warnings: OnWarnings | None = None
    pragmas: tuple[str, ...] = ()
    modules: tuple[str, ...] = ()
    module_folders: tuple[str, ...] = ()
    on_finished: Callable[[Job, Program], None] | None = None
    """What hears that all is written."""

    def folders(self, program: Program) -> tuple[str, str]:
        """Where inputs are and outputs go: what the command line says, else what pragmas say, else the current folder."""
        facts = program.options.facts if self.facts is None else self.facts
        output = program.options.output if self.output is None else self.output
        return facts or ".", output or "."


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Gives unexpected exceptions the name of the stage they happened in. Files that cannot be read or written, too little
    memory and expressions without end are not dlog's mistakes."""
    try:
        yield
    except (DlogError, InternalError, BrokenPipeError):
        raise
    except FileExistsError as error:
        raise DlogError(Diagnostic("file-error", f"{error.filename} is a file, where a folder is wanted")) from error
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        raise DlogError(Diagnostic("file-error", f"{where}{error.strerror or error}")) from error
    except MemoryError as error:
        raise DlogError(Diagnostic("out-of-memory", f"out of memory in {name}")) from error
    except RecursionError as error:
        notes = ("give parts of it relations or variables of their own",)
        raise DlogError(Diagnostic("too-deep", "an expression of the program is nested too deeply", notes=notes)) from error
    except Exception as error:
        raise InternalError(name, f"{type(error).__name__}: {error}") from error


def compile_program(
    program: Path | str,
    include: Sequence[str] = (),
    macros: Sequence[str] = (),
    on_warnings: OnWarnings | None = None,
    pragmas: Sequence[str] = (),
) -> Program:
    """A program file (a Path) or program text to the typed program; every mistake of a stage in one DlogError. `on_warnings`
    hears the warnings about a program without mistakes. `pragmas` are set as if they stood at the end of the text, but that the
    preprocessor hears of the word size, too."""
    from dlog.engine.compiler import compile_source
    from dlog.grammar.preprocess import preprocess

    with stage("preprocessor"):
        size = ["RAM_DOMAIN_SIZE=32"] if "word-size:32" in pragmas else []
        source = _with_pragmas(preprocess(program, include, [*size, *macros]), pragmas)
    with stage("compiler"):
        return compile_source(source, on_warnings)


def compile_to_run(
    program: Path | str,
    include: Sequence[str] = (),
    macros: Sequence[str] = (),
    on_warnings: OnWarnings | None = None,
    pragmas: Sequence[str] = (),
) -> Program:
    """The same of a program that is run once: it can read no past rounds, and has one round."""
    from dlog.engine.compile.past import refuse_past
    from dlog.engine.compile.timed.once import at_once

    return at_once(refuse_past(compile_program(program, include, macros, on_warnings, pragmas)))


def _with_pragmas(source: Source, pragmas: Sequence[str]) -> Source:
    """A text followed by pragmas of the command line, `KEY` or `KEY:VALUE`."""
    if not pragmas:
        return source
    from dlog.grammar import syntax
    from dlog.grammar.source import Source as Text
    from dlog.grammar.unparse import format_program

    parts = [pragma.partition(":") for pragma in pragmas]
    written = syntax.Program(tuple(syntax.Pragma(name, value) for name, _, value in parts))
    return source.followed_by(Text(format_program(written), "<command line>"))


def with_functors(program: Program, job: Job) -> Program:
    """The program with the functions of the modules that the user has named."""
    if not (program.functors or job.modules):
        return program
    from dlog.functors import linked, load_modules

    return linked(program, load_modules(job.modules, job.module_folders))


def observed_relations(program: Program) -> frozenset[str]:
    """The relations whose rows a run shows; all, if the program names none."""
    return frozenset(io.relation for io in program.io if io.action != "input") or frozenset(program.relations)


def optimized(program: Program, given: Iterable[str] = (), classes: bool = True) -> Program:
    """The program that computes only what a run shows. `given` are relations whose rows come from the caller. `classes`: what
    runs it can keep an equivalence relation by its classes."""
    return _executed(program, given, observed_relations(program), classes)


def readable(program: Program, given: Iterable[str] = (), classes: bool = True) -> Program:
    """The program that computes every relation, so that each can be read."""
    return _executed(program, given, frozenset(program.relations), classes)


def _executed(program: Program, given: Iterable[str], observed: frozenset[str], classes: bool) -> Program:
    """The program after all passes, which must know of rows that no rule derives."""
    from dlog.engine.ir.rules import with_inputs
    from dlog.engine.optimize import optimize
    from dlog.engine.optimize.classes import with_classes

    with stage("optimizer"):
        program = with_inputs(program, given)
        if classes and program.eqrels:
            program = with_classes(program, observed)
            observed |= {*program.classes, *program.classes.values()}
        return optimize(program, observed)


def _computed(written: Program, executed: Program) -> list[str]:
    """The relations whose stored rows mean what their names say."""
    from dlog.engine.optimize import defined

    given = written.relations.keys() - defined(written)
    stored = {*defined(executed), *executed.classes, *given, *observed_relations(written)}
    return [name for name in executed.relations if name in stored]


def load_inputs(
    executor: Executor,
    program: Program,
    facts: str,
    threads: int,
    on_loaded: Callable[[int, int, int], None] | None = None,
    memory: int | None = None,
) -> None:
    """Reads every `.input` of the program from the folder `facts`, several at a time, in so much memory at most.

    `on_loaded` hears after each: how many inputs are done, how many there are, and how many rows they had together. What is
    wrong with any of the files is reported together."""
    from dlog.engine.formats import load, remark_parameters
    from dlog.engine.formats.budget import Budget

    inputs = [io for io in program.io if io.action == "input"]
    for io in inputs:
        remark_parameters(io)
    if inputs and not os.path.isdir(facts):
        message = f"the folder of input files does not exist: {facts}"
        raise DlogError(Diagnostic("missing-folder", message, notes=("-F names it",)))
    rows = 0
    mistakes: list[Diagnostic] = []
    budget = Budget(memory)

    def read(io: Io) -> Table:
        with stage(f"loading {io.relation}"):
            symbols, records, relation = executor.symbols, executor.records, program.relations[io.relation]
            return load(io, relation, program, symbols, records, Path(facts), threads, budget)

    for done, (io, outcome) in enumerate(_in_parallel(read, inputs, threads), 1):
        if isinstance(outcome, DlogError):
            mistakes += outcome.diagnostics
            continue
        with stage(f"loading {io.relation}"):
            executor.load(io.relation, outcome)
        rows += outcome.rows
        if on_loaded is not None:
            on_loaded(done, len(inputs), rows)
    if mistakes:
        raise DlogError(mistakes)


def _in_parallel(function: Callable[[Io], Table], items: Sequence[Io], threads: int) -> Iterator[tuple[Io, Table | DlogError]]:
    """Each item with what the function made of it, in the items' order."""
    workers = max(1, min(threads, len(items)))
    pool = ThreadPoolExecutor(workers, thread_name_prefix="dlog-io")
    try:
        futures = [pool.submit(function, item) for item in items]
        for item, future in zip(items, futures, strict=True):
            error = future.exception()
            if error is None:
                yield item, future.result()
            elif isinstance(error, DlogError):
                yield item, error
            else:
                raise error
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def write_outputs(
    executor: Executor, program: Program, output: str, threads: int, on_written: Callable[[int, int], None] | None = None
) -> None:
    """Writes every `.output` and `.printsize` of the program.

    They go to the folder `output` (made if need be) or, for `-`, to standard output. `on_written` hears after each: how many
    are done and how many there are."""
    from dlog.engine.formats import remark_parameters, save

    outputs = [io for io in program.io if io.action in ("output", "printsize")]
    for done, io in enumerate(outputs, 1):
        remark_parameters(io)
        with stage(f"writing {io.relation}"):
            if output != STDOUT:
                os.makedirs(output, exist_ok=True)
            relation, table = program.relations[io.relation], _output_table(executor, io, output)
            save(io, relation, program, table, executor.symbols, executor.records, output, threads)
        if on_written is not None:
            on_written(done, len(outputs))


def _output_table(executor: Executor, io: Io, output: str) -> Table:
    """What an `.output` or `.printsize` shows: the rows, or how many there are."""
    from dlog.engine.values.table import Table

    counts = io.action == "printsize" or (output != STDOUT and io.get("IO").lower() == "stdoutprintsize")
    return Table((), (), executor.rows(io.relation)) if counts else executor.table(io.relation, copy=False)


def discard_unfinished() -> None:
    """Removes what writes that were cut off left beside their places."""
    if (unfinished := sys.modules.get("dlog.unfinished")) is not None:
        unfinished.discard()
    if (temporary := sys.modules.get("dlog.temporary")) is not None:
        temporary.remove_all()


def run_job(job: Job, display: Display) -> Report:
    """All stages in order."""
    written_program = compile_to_run(job.program, job.include, job.macros, job.on_warnings, job.pragmas)
    written_program = with_functors(written_program, job)
    facts, output = job.folders(written_program)
    program = optimized(written_program)
    with stage("start"):
        from dlog.display.progress import Loading, Writing
        from dlog.engine.formats import check_directives
        from dlog.engine.runtime.static.executor import Executor
        from dlog.memory import peak_bytes

        check_directives(program)
        executor = Executor(program, threads=job.threads, memory=job.memory, on_progress=display.show)
    started = time.perf_counter()
    load_inputs(executor, program, facts, job.threads, lambda *state: display.show(Loading(*state)), job.memory)
    loaded = time.perf_counter()
    with stage("evaluation"):
        executor.run()
    evaluated = time.perf_counter()
    if output == STDOUT:
        display.close()
    write_outputs(executor, program, output, job.threads, lambda *state: display.show(Writing(*state)))
    written = time.perf_counter()
    rows = {name: executor.rows(name) for name in _computed(written_program, program)}
    if job.on_finished is not None:
        display.close()
        job.on_finished(job, written_program)
    return Report(loaded - started, evaluated - loaded, written - evaluated, peak_bytes(), rows, tuple(executor.profile))


def explain_stage(path: Path, include: Sequence[str], macros: Sequence[str], until: str) -> str:
    """The program after a stage of the compiler (one of its `STAGES`), as text."""
    from dlog.engine.compiler import print_stage
    from dlog.grammar.preprocess import preprocess

    with stage("preprocessor"):
        source = preprocess(path, include, macros)
    with stage("compiler"):
        return print_stage(source, cast("Stage", until))


def check_execution(program: Program) -> None:
    """Raises what a run would refuse of a compiled program before it reads anything. Where rows are read from Spark is the
    business of the engine."""
    if any(io.params or io.action == "limitsize" for io in program.io):
        from dlog.engine.formats import check_directives, remark_parameters

        with stage("start"):
            for io in program.io:
                remark_parameters(io)
            try:
                check_directives(program)
            except DlogError as error:
                found = [d for d in error.diagnostics if d.code != "needs-spark"]
                if found:
                    raise DlogError(found) from None
    if any(_aggregates_in_recursion(stratum) for stratum in program.strata):
        for _ in assumed_plans(optimized(program), _aggregates_in_recursion):
            pass


def _aggregates_in_recursion(stratum: Stratum) -> bool:
    """Whether a stratum has rules that the planner may refuse."""
    from dlog.engine.ir.rules import Aggregate

    return stratum.recursive and any(isinstance(literal, Aggregate) for rule in stratum.rules for literal in rule.body)


def assumed_plans(program: Program, wanted: Callable[[Stratum], bool] = lambda stratum: True) -> Iterator[str]:
    """The plans of strata for assumed sizes, as text."""
    from dlog.engine.plan.explain import explain
    from dlog.engine.plan.incremental.thresholds import summed
    from dlog.engine.plan.one_pass import in_one_pass
    from dlog.engine.plan.static.alternating import explain_alternating
    from dlog.engine.plan.static.build import build_scope
    from dlog.engine.plan.static.iterations import explain_iterated
    from dlog.engine.plan.static.restrict import restrict
    from dlog.engine.plan.statistics import Declared

    with stage("planner"):
        program = summed(program)
        statistics = Declared()
        for stratum in filter(wanted, program.strata):
            if not program.iterated.isdisjoint(stratum.relations):
                alternating = not program.alternating.isdisjoint(stratum.relations)
                explained = explain_alternating if alternating else explain_iterated
                yield explained(stratum, program, statistics)
                continue
            scope = build_scope(stratum, program, statistics)
            statistics.keys.learn(scope.keys)
            yield explain(in_one_pass(restrict(scope)), program)


def _compile_plan(path: Path, include: Sequence[str], macros: Sequence[str]) -> Program:
    """The program as it is run once."""
    from dlog.engine.compile.timed.once import at_once

    return at_once(compile_program(path, include, macros))


def explain_plan(path: Path, include: Sequence[str], macros: Sequence[str], facts: str | None) -> str:
    """The plan of every stratum, for the sizes of the inputs in the folder `facts` or, without one, for assumed sizes."""
    program = optimized(_compile_plan(path, include, macros))
    if facts is None:
        return "\n".join(assumed_plans(program))
    from dlog.engine.runtime.static.executor import Executor

    with stage("start"):
        executor = Executor(program, threads=1, memory=None, on_progress=None)
    load_inputs(executor, program, facts, 1)
    with stage("planner"):
        return executor.explain()


def explain_workers(path: Path, include: Sequence[str], macros: Sequence[str], facts: str | None) -> str:
    """The plan of every stratum for several workers; sizes as in `explain_plan`."""
    from dlog.engine.plan.exchange.costs import Sizes
    from dlog.engine.plan.exchange.distribute import EVERYWHERE_ROWS, distribute
    from dlog.engine.plan.exchange.explain import explain_distributed
    from dlog.engine.plan.exchange.numbering import refuse_for_workers
    from dlog.engine.plan.exchange.places import choose_homes
    from dlog.engine.plan.static.build import build_scope
    from dlog.engine.plan.statistics import Declared

    program = optimized(_compile_plan(path, include, macros), classes=False)
    statistics: Declared | Catalog = Declared() if facts is None else _loaded_statistics(program, facts)
    with stage("planner"):
        refuse_for_workers(program)
        homes, parts = choose_homes(program), []
        given = {*program.facts, *(io.relation for io in program.io if io.action == "input")}
        for stratum in (s for s in program.strata if s.rules):
            scope = build_scope(stratum, program, statistics)
            statistics.keys.learn(scope.keys)
            movable = set(stratum.relations) - given
            plan = distribute(scope, program, homes, Sizes(statistics), EVERYWHERE_ROWS, movable=movable)
            homes.update((name, plan.homes[name]) for name in stratum.relations)
            parts.append(explain_distributed(plan, program, homes))
        return "\n".join(parts)


def explain_jobs(path: Path, include: Sequence[str], macros: Sequence[str], facts: str | None) -> str:
    """The supersteps of a program on Spark without a barrier stage, for several tasks. They do not depend on sizes."""
    from dlog.engine.plan.exchange.numbering import refuse_counting
    from dlog.engine.plan.exchange.supersteps import explain_supersteps, supersteps

    program = optimized(_compile_plan(path, include, macros), classes=False)
    with stage("planner"):
        refuse_counting(program)
        return explain_supersteps(supersteps(program, 2))


def _loaded_statistics(program: Program, facts: str) -> Catalog:
    """Statistics of a program's inputs when they are loaded."""
    from dlog.engine.runtime.static.executor import Executor

    with stage("start"):
        executor = Executor(program, threads=1, memory=None, on_progress=None)
    load_inputs(executor, program, facts, 1)
    with stage("planner"):
        executor.explain()  # the facts of the program's text count, too
        return executor.catalog


def explain_rounds(path: Path, include: Sequence[str], macros: Sequence[str]) -> str:
    """The plans by which strata are maintained while inputs change, for assumed sizes."""
    from dlog.engine.plan.incremental.build import explain_maintenance
    from dlog.engine.plan.incremental.layers import explain_timed
    from dlog.engine.plan.incremental.thresholds import weighted
    from dlog.engine.plan.incremental.views import explain_views, separate_views
    from dlog.engine.plan.statistics import Declared

    program = readable(compile_program(path, include, macros))
    with stage("planner"):
        program, views = separate_views(program)
        program = weighted(program)
        told = [explain_maintenance(stratum, program, Declared()) for stratum in program.strata]
        return "\n".join([*told, *map(explain_timed, program.timed, program.timed.values()), *explain_views(views)])


def available_cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def write_report(report: Report, path: Path) -> None:
    """The figures of a run as JSON."""
    from dlog.engine.state.files import named

    figures = {
        "load_seconds": report.load_seconds,
        "evaluate_seconds": report.evaluate_seconds,
        "write_seconds": report.write_seconds,
        "peak_bytes": report.peak_bytes,
        "relations": report.rows,
    }
    with stage("writing statistics"), named(str(path)):
        path.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")
