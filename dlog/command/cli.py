"""The commands of `dlog`: their flags, what they print, and which exit code they give.

Each command imports what it needs when it runs, so that `check` does not pay for the executor. Mistakes are raised, not
printed: `dlog.__main__` renders them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dlog.command.options import (
    AUTO,
    Engine,
    EngineChoice,
    FactFolder,
    FindingsFormat,
    Include,
    Jobs,
    Legacy,
    LoadedFacts,
    Macro,
    MaxIterations,
    Memory,
    ModuleFolders,
    Modules,
    NoWarnings,
    OutputFormat,
    Pragmas,
    ProgramFile,
    ProgramFiles,
    Provenance,
    SessionWorkers,
    Stage,
    StateFolder,
    Strategy,
    StrategyChoice,
    Sync,
    SyncPolicy,
    Warnings,
    Workers,
    macros_of,
    pragmas_of,
    usage_error,
)
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    from dlog.command.findings import WarningChoice
    from dlog.engine.ir.rules import Program
    from dlog.pipeline import Job

app = typer.Typer(
    name="dlog",
    help="A Datalog engine: runs programs in the Souffle dialect.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Every command takes --debug: a traceback for internal errors.",
)

# typer carries its own click or the installed one, depending on its version: the base class is found, not imported.
_BASES: dict[str, Any] = {base.__name__: base for base in typer.BadParameter.__mro__ if issubclass(base, Exception)}
_UsageError, _ClickException = _BASES["UsageError"], _BASES["ClickException"]


@app.command()
def run(
    program: ProgramFile,
    facts: FactFolder = None,
    output: Annotated[
        str | None,
        typer.Option(
            "--output-dir", "-D", metavar="DIR", help="Where output files go; - prints the relations instead.", show_default="."
        ),
    ] = None,
    include: Include = None,
    macro: Macro = None,
    pragma: Pragmas = None,
    legacy: Legacy = False,
    jobs: Jobs = AUTO,
    memory: Memory = None,
    stats: Annotated[bool, typer.Option("--stats", help="Print what every rule cost on standard error.")] = False,
    stats_json: Annotated[
        Path | None, typer.Option("--stats-json", "-p", metavar="PATH", help="Write times, peak memory and sizes as JSON.")
    ] = None,
    engine: EngineChoice = Engine.EMBEDDED,
    workers: Workers = None,
    strategy: StrategyChoice = Strategy.AUTO,
    no_warn: NoWarnings = False,
    warn: Warnings = None,
    provenance: Annotated[
        Provenance | None, typer.Option("--provenance", "-t", help="explain: ask for proofs of rows when all is written.")
    ] = None,
    module: Modules = None,
    module_dir: ModuleFolders = None,
) -> None:
    """Run a program: read its inputs, evaluate it, write its outputs."""
    from dlog.command.findings import warning_choice
    from dlog.display.progress import Display
    from dlog.interruption import prompt_interruption
    from dlog.pipeline import Job, available_cores, discard_unfinished, run_job

    texts, tell = (tuple(include or ()), tuple(macros_of(macro))), warning_choice(no_warn, warn or ()).tell
    if provenance is Provenance.EXPLAIN and engine is Engine.SPARK:
        usage_error("`-t explain` asks about a run of the embedded engine", "leave `--engine` out")
    pragmas = (*pragmas_of(pragma, legacy), *([f"provenance:{provenance.value}"] if provenance is not None else []))
    modules = tuple(module or ()), tuple(module_dir or ())
    told = tell, pragmas
    job = Job(program, *texts, facts, output, jobs or available_cores(), memory, *told, *modules, _explain_if_asked)
    with prompt_interruption(cleanup=discard_unfinished), Display() as display:
        if engine is Engine.SPARK:
            from dlog.spark import run_job as run_on_spark

            report = run_on_spark(job, workers, display, strategy.value)
        else:
            report = run_job(job, display)
    if stats:
        from dlog.display.render import print_statistics

        print_statistics(report)
    if stats_json is not None:
        from dlog.pipeline import write_report

        write_report(report, stats_json)


def _explain_if_asked(job: Job, program: Program) -> None:
    """Opens the prompt of proofs where `-t explain`, or a pragma, says so."""
    if program.options.explains:
        from dlog.command.explain_prompt import explain

        explain(job, program)


@app.command()
def watch(
    program: ProgramFile,
    stream: Annotated[
        str, typer.Argument(metavar="CHANGES", help="The stream of changes; - is standard input.", show_default="-")
    ] = "-",
    facts: LoadedFacts = None,
    output: Annotated[
        str, typer.Option("--output-dir", "-D", metavar="DIR", help="Where the outputs' changes go; - prints them.")
    ] = "-",
    format: Annotated[
        OutputFormat | None, typer.Option("--format", help="How changes are written.", show_default="as they come")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Wait for more at the end of the file.")] = False,
    include: Include = None,
    macro: Macro = None,
    jobs: Jobs = AUTO,
    memory: Memory = None,
    max_iterations: MaxIterations = None,
    state: StateFolder = None,
    sync: SyncPolicy = Sync.ALWAYS,
    engine: EngineChoice = Engine.EMBEDDED,
    workers: SessionWorkers = None,
    module: Modules = None,
    module_dir: ModuleFolders = None,
) -> None:
    """Keep a program's outputs up to date with a stream of changes, and write what changes in them, round by round.

    A line of the stream is round,relation,+1 or -1,values... or {"round": 1, "relation": "edge", "diff": 1, "row": [1, 2]}."""
    from dlog.interruption import prompt_interruption
    from dlog.pipeline import available_cores
    from dlog.watch.watch import Watch
    from dlog.watch.watch import watch as run_watch

    written, text = None if format is None else format.value, (tuple(include or ()), tuple(macros_of(macro)))
    threads = jobs or available_cores()
    limits, executed = (memory, max_iterations), (engine.value, workers)
    job = Watch(program, stream, follow, facts, output, written, *text, threads, *limits, state, sync.value, *executed)
    job = replace(job, modules=tuple(module or ()), module_folders=tuple(module_dir or ()))
    with prompt_interruption():
        run_watch(job)


@app.command()
def repl(
    program: Annotated[
        Path | None, typer.Argument(metavar="[PROGRAM]", help="A Datalog program to begin with.", show_default=False)
    ] = None,
    facts: LoadedFacts = None,
    include: Include = None,
    macro: Macro = None,
    jobs: Jobs = AUTO,
    memory: Memory = None,
    max_iterations: MaxIterations = None,
    state: StateFolder = None,
    sync: SyncPolicy = Sync.ALWAYS,
    module: Modules = None,
    module_dir: ModuleFolders = None,
) -> None:
    """Type rules, facts and queries: a session that follows every change. Works in a pipe, too."""
    from dlog.repl import Options, run_repl

    files, modules = (tuple(include or ()), tuple(macros_of(macro))), (tuple(module or ()), tuple(module_dir or ()))
    code = run_repl(Options(program, facts, *files, jobs or None, memory, max_iterations, state, sync.value, *modules))
    if code:
        raise typer.Exit(code)


@app.command()
def check(
    programs: ProgramFiles,
    include: Include = None,
    macro: Macro = None,
    pragma: Pragmas = None,
    legacy: Legacy = False,
    no_warn: NoWarnings = False,
    warn: Warnings = None,
    format: Annotated[
        FindingsFormat, typer.Option("--format", help="How mistakes and warnings are written.")
    ] = FindingsFormat.TEXT,
) -> None:
    """Report every mistake in the programs, and warnings, without running them.

    As text they go to standard error; as JSON, or SARIF for editors and code scanning, to standard output."""
    from dlog.command import findings

    choice = findings.warning_choice(no_warn, warn or ())
    found: list[Diagnostic] = []
    said: list[str] = []
    for path in programs:
        own, line = _checked(path, include or (), macros_of(macro), choice, pragmas_of(pragma, legacy))
        found += own
        said += [line] if line else []
    if format is FindingsFormat.TEXT:
        _print_findings(found, said)
    else:
        print(findings.as_json(found) if format is FindingsFormat.JSON else findings.as_sarif(found))
        if any(finding.severity == "error" for finding in found):
            raise typer.Exit(1)


def _checked(
    path: Path, include: Sequence[str], macros: list[str], choice: WarningChoice, pragmas: Sequence[str]
) -> tuple[list[Diagnostic], str]:
    """What is found in a program, and the line about one without mistakes."""
    from dlog.pipeline import check_execution, compile_program

    found: list[Diagnostic] = []
    try:
        program = compile_program(path, include, macros, lambda warnings: found.extend(choice.chosen(warnings)), pragmas)
        check_execution(program)
    except DlogError as error:
        return list(error.diagnostics), ""
    if any(finding.severity == "error" for finding in found):
        return found, ""
    rules = sum(len(stratum.rules) for stratum in program.strata)
    return found, f"{path}: ok ({_plural(len(program.relations), 'relation')}, {_plural(rules, 'rule')})"


def _print_findings(found: list[Diagnostic], said: list[str]) -> None:
    """Raises DlogError with the mistakes, if there are any."""
    from dlog.grammar.diagnostics import render_all

    warnings = [finding for finding in found if finding.severity == "warning"]
    for line in said:
        print(line)
    if warnings:
        print(render_all(warnings), file=sys.stderr)
    if mistakes := [finding for finding in found if finding.severity == "error"]:
        raise DlogError(mistakes)


def _plural(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@app.command()
def fmt(
    programs: ProgramFiles,
    write: Annotated[bool, typer.Option("--write", "-w", help="Rewrite the files.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; fail if a file is not formatted.")] = False,
) -> None:
    """Print the programs in the one canonical layout."""
    from dlog.command.formatting import formatted, rewrite

    if write and check:
        usage_error("--write and --check exclude each other")
    unformatted = []
    for path in programs:
        before, after = formatted(path)
        if check:
            if before != after:
                unformatted.append(path)
        elif not write:
            sys.stdout.write(after)
        elif before != after:
            rewrite(path, after)
            print(f"formatted {path}", file=sys.stderr)
    if unformatted:
        note = "`dlog fmt --write` rewrites it"
        raise DlogError([Diagnostic("not-formatted", f"{path} is not formatted", notes=(note,)) for path in unformatted])


@app.command()
def plan(
    program: ProgramFile,
    stage: Annotated[Stage, typer.Option("--stage", help="Which stage of the compiler to show.")] = Stage.PLAN,
    facts: Annotated[
        str | None,
        typer.Option("--fact-dir", "-F", metavar="DIR", help="Load these inputs first: join orders then follow their sizes."),
    ] = None,
    rounds: Annotated[bool, typer.Option("--rounds", help="Show how relations are maintained while inputs change.")] = False,
    engine: Annotated[
        Engine, typer.Option("--engine", help="What executes the plan; for Spark: where rows are, and where they move.")
    ] = Engine.EMBEDDED,
    strategy: StrategyChoice = Strategy.AUTO,
    include: Include = None,
    macro: Macro = None,
) -> None:
    """Print how a program is executed: strata, rules as delta paths, arrangements."""
    from dlog.pipeline import explain_jobs, explain_plan, explain_rounds, explain_stage, explain_workers

    if engine is Engine.SPARK:
        if rounds or stage is not Stage.PLAN:
            usage_error("`--engine spark` is for the plan of a run", "leave `--stage` and `--rounds` out")
        jobs = strategy is Strategy.JOBS
        text = (explain_jobs if jobs else explain_workers)(program, include or (), macros_of(macro), facts)
    elif rounds:
        if facts is not None or stage is not Stage.PLAN:
            usage_error("`--rounds` is for the plan, of assumed sizes", "leave `--stage` and `--fact-dir` out")
        text = explain_rounds(program, include or (), macros_of(macro))
    elif stage is Stage.PLAN:
        text = explain_plan(program, include or (), macros_of(macro), facts)
    else:
        text = explain_stage(program, include or (), macros_of(macro), stage.value)
    print(text.rstrip("\n"))


@app.command()
def lsp(include: Include = None, macro: Macro = None) -> None:
    """Serve an editor by the Language Server Protocol, on standard input and output."""
    try:
        from dlog.lsp.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        note = "install it with: pip install 'dlog-engine[lsp]'"
        raise DlogError(Diagnostic("missing-package", "`dlog lsp` needs pygls", notes=(note,))) from None
    serve(tuple(include or ()), tuple(macros_of(macro)))


@app.command()
def warmup() -> None:
    """Compile all kernels into the cache, so that the first run starts as fast as the later ones."""
    import time

    from dlog.pipeline import stage

    started = time.perf_counter()
    with stage("warmup"):
        from dlog.command.warmup import warm

        warm()
    print(f"kernels are ready ({time.perf_counter() - started:.1f} s)")


state_app = typer.Typer(
    help="Look after the folder of a session (--state): is it whole, and what can be saved of it?", no_args_is_help=True
)
app.add_typer(state_app, name="state")
StateArgument = Annotated[Path, typer.Argument(metavar="DIR", help="The folder of the state.", show_default=False)]


@state_app.command("check")
def check_state(folder: StateArgument) -> None:
    """Verify every file of a state; say what is in it, or list all that is damaged."""
    from dlog.sessions.persistence import inspection

    said = inspection.check_state(folder)
    print("\n".join([f"{folder}: ok, {said[0]}", *said[1:]]))


@state_app.command("repair")
def repair_state(
    folder: StateArgument,
    without: Annotated[
        list[str] | None,
        typer.Option("--without", metavar="INPUT", help="Give up the rows of this input if they are damaged; repeatable."),
    ] = None,
) -> None:
    """Bring back what can be brought back of a damaged state. Says what is lost, and keeps the files as they were."""
    from dlog.sessions.persistence import inspection

    print("\n".join(inspection.repair_state(folder, tuple(without or ())) or [f"{folder}: nothing is damaged"]))


@state_app.command("dump")
def dump_state(
    folder: StateArgument,
    output: Annotated[Path, typer.Argument(metavar="OUT", help="The folder for the files.", show_default=False)],
) -> None:
    """Write the program and all inputs of a state, as far as they can be read, as files that `dlog run` takes."""
    from dlog.sessions.persistence import inspection

    print("\n".join(inspection.dump_state(folder, output)))


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", "-V", help="Print the version and exit.")] = False) -> None:
    if version:
        from dlog.version import __version__

        print(f"dlog {__version__}")
        raise typer.Exit


def invoke(arguments: Sequence[str]) -> int:
    """Runs one command line; returns 0, or 1 for a command line that makes no sense. Everything else is raised."""
    _suggest_run(arguments)
    command = typer.main.get_command(app)
    try:
        # Not `command.main`, which has its own mind about interruptions and readers that go away.
        with command.make_context("dlog", list(arguments)) as context:
            command.invoke(context)
    except typer.Exit as request:
        return request.exit_code
    except _ClickException as error:
        if "NoArgsIsHelp" in type(error).__name__:
            print(error.format_message())
            return 1
        usage_error(error.format_message().replace("Value error, ", ""), *_hints(error))
    return 0


def _hints(error: Exception) -> tuple[str, ...]:
    context = getattr(error, "ctx", None)
    return (f"try `{context.command_path} --help`",) if isinstance(error, _UsageError) and context is not None else ()


def _suggest_run(arguments: Sequence[str]) -> None:
    """`dlog program.dl` is what people type first."""
    first = arguments[0] if arguments else ""
    if first.endswith(".dl") or ("." in first and not first.startswith("-") and os.path.isfile(first)):
        usage_error(f"{first!r} is not a command", f"did you mean `dlog run {' '.join(arguments)}`?")
