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
from typing import TYPE_CHECKING

import click

from dlog.command import options
from dlog.command.options import (
    Engine,
    Envelope,
    FindingsFormat,
    Modules,
    OutputFormat,
    Provenance,
    Stage,
    Strategy,
    Sync,
    Texts,
    WholeNumber,
    option,
    repeated,
    switch,
    usage_error,
)
from dlog.grammar.diagnostics import Diagnostic, DlogError, one_line, printable

if TYPE_CHECKING:
    from dlog.command.findings import WarningChoice
    from dlog.engine.ir.rules import Program
    from dlog.pipeline import Job

HELP = {"help_option_names": ["-h", "--help"]}


class InOrder(click.Group):
    """Commands that help lists as they stand here: what is used first comes first."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)


@click.group(
    name="dlog",
    cls=InOrder,
    help="A Datalog engine: runs programs in the Souffle dialect.",
    context_settings=HELP,
    invoke_without_command=True,
    epilog="Every command takes --debug: a traceback for internal errors.",
)
@switch("--version", "-V", help="Print the version and exit.")
@click.pass_context
def app(context: click.Context, version: bool) -> None:
    if version:
        from dlog.version import __version__

        print(f"dlog {__version__}")
    elif context.invoked_subcommand is None:
        print(context.get_help())
        context.exit(1)


@app.command()
@options.program_file
@options.fact_folder
@option(
    "--output-dir",
    "-D",
    "output",
    metavar="DIR",
    help="Where output files go; - prints the relations instead.",
    show_default=".",
)
@options.texts
@options.pragmas
@options.jobs
@options.memory
@switch("--stats", help="Print what every rule cost on standard error.")
@option(
    "--stats-json", "-p", metavar="PATH", type=click.Path(path_type=Path), help="Write times, peak memory and sizes as JSON."
)
@options.engine_choice
@options.workers("all slots")
@options.strategy_choice
@options.warnings
@option("--provenance", "-t", choice=Provenance, help="explain: ask for proofs of rows when all is written.")
@options.modules
def run(
    program: Path,
    facts: str | None,
    output: str | None,
    texts: Texts,
    pragmas: tuple[str, ...],
    jobs: int,
    memory: int | None,
    stats: bool,
    stats_json: Path | None,
    engine: Engine,
    workers: int | None,
    strategy: Strategy,
    warnings: WarningChoice,
    provenance: Provenance | None,
    modules: Modules,
) -> None:
    """Run the PROGRAM: read its inputs, evaluate it, write its outputs."""
    from dlog.display.progress import Display
    from dlog.interruption import prompt_interruption
    from dlog.pipeline import Job, discard_unfinished, run_job

    if provenance is Provenance.EXPLAIN and engine is Engine.SPARK:
        usage_error("`-t explain` asks about a run of the embedded engine", "leave `--engine` out")
    pragmas = (*pragmas, *([f"provenance:{provenance.value}"] if provenance is not None else []))
    told = warnings.tell, pragmas, modules.names, modules.folders
    job = Job(program, texts.include, texts.macros, facts, output, jobs, memory, *told, _explain_if_asked)
    with warnings.heeded(), prompt_interruption(cleanup=discard_unfinished), Display() as display:
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
@options.program_file
@click.argument("stream", metavar="[CHANGES]", default="-")
@options.loaded_facts
@option("--output-dir", "-D", "output", metavar="DIR", default="-", help="Where the outputs' changes go; - prints them.")
@option("--format", choice=OutputFormat, help="How changes are written.", show_default="as they come")
@switch("--follow", help="Wait for more at the end of the file.")
@click.option("--snapshot/--no-snapshot", default=None, help="Write the rows there are at first; default: without a state.")
@switch("--progress", help="Write a line after each round, also after one that changes nothing.")
@click.option("--as-of", metavar="ROUND", type=WholeNumber(0, "round"), help="Begin with the rows as of this round.")
@click.option("--up-to", metavar="ROUND", type=WholeNumber(0, "round"), help="End before this round of the changes.")
@repeated("--query", "questions", metavar="[NAME:]QUESTION", help="Write what changes in its answers, not in the outputs")
@repeated("--key", "keys", metavar="RELATION=COLUMNS", help="Write what becomes of keys: upsert, delete")
@option("--envelope", choice=Envelope, default="upsert", help="What of keys: their rows, or those before, too.")
@repeated("--order", "orders", metavar="RELATION=COLUMNS", help="Sort a round's changes by these; -COLUMN: descending")
@options.texts
@options.jobs
@options.memory
@options.max_iterations
@options.state_folder
@click.option("--history", metavar="ROUNDS", type=WholeNumber(0), default=0, help="Past rounds that the state keeps.")
@options.sync_policy
@options.engine_choice
@options.workers("all slots but one")
@options.modules
def watch(
    program: Path,
    stream: str,
    facts: str | None,
    output: str,
    format: OutputFormat | None,
    follow: bool,
    snapshot: bool | None,
    progress: bool,
    as_of: int | None,
    up_to: int | None,
    questions: tuple[str, ...],
    keys: tuple[str, ...],
    envelope: Envelope,
    orders: tuple[str, ...],
    texts: Texts,
    jobs: int,
    memory: int | None,
    max_iterations: int | None,
    state: Path | None,
    history: int,
    sync: Sync,
    engine: Engine,
    workers: int | None,
    modules: Modules,
) -> None:
    """Keep the outputs of PROGRAM up to date with a stream of CHANGES, and write what changes in them, round by round.

    CHANGES is a file; - is standard input, and what is read without it. A line of it is round,relation,+1 or -1,values... or
    {"round": 1, "relation": "edge", "diff": 1, "row": [1, 2]}."""
    from dlog.interruption import prompt_interruption
    from dlog.watch.watch import Watch
    from dlog.watch.watch import watch as run_watch

    if history and state is None:
        usage_error("`--history` is for what a state keeps", "name its folder with `--state`")
    written = None if format is None else format.value
    limits = memory, max_iterations
    job = Watch(program, stream, follow, facts, output, written, texts.include, texts.macros, jobs, *limits, state, sync.value)
    job = replace(job, engine=engine.value, workers=workers, modules=modules.names, module_folders=modules.folders)
    job = replace(job, snapshot=snapshot, progress=progress, up_to=up_to, keys=keys, envelope=envelope.value, orders=orders)
    job = replace(job, as_of=as_of, history=history, questions=questions)
    with prompt_interruption():
        run_watch(job)


@app.command()
@options.path("program", "[PROGRAM]", required=False)
@options.loaded_facts
@options.texts
@options.jobs
@options.memory
@options.max_iterations
@options.state_folder
@options.sync_policy
@options.modules
@click.pass_context
def repl(
    context: click.Context,
    program: Path | None,
    facts: str | None,
    texts: Texts,
    jobs: int,
    memory: int | None,
    max_iterations: int | None,
    state: Path | None,
    sync: Sync,
    modules: Modules,
) -> None:
    """Type rules, facts and queries: a session that follows every change. Works in a pipe, too.

    PROGRAM is a Datalog program to begin with."""
    from dlog.repl import ReplOptions, run_repl

    asked = ReplOptions(program, facts, texts.include, texts.macros, jobs, memory, max_iterations, state, sync.value)
    context.exit(run_repl(replace(asked, modules=modules.names, module_folders=modules.folders)))


@app.command()
@options.program_files
@options.texts
@options.pragmas
@options.warnings
@option("--format", choice=FindingsFormat, default=FindingsFormat.TEXT.value, help="How mistakes and warnings are written.")
@click.pass_context
def check(
    context: click.Context,
    programs: tuple[Path, ...],
    texts: Texts,
    pragmas: tuple[str, ...],
    warnings: WarningChoice,
    format: FindingsFormat,
) -> None:
    """Report every mistake in the PROGRAMs, and warnings, without running them.

    As text they go to standard error; as JSON, or SARIF for editors and code scanning, to standard output."""
    from dlog.command import findings

    found: list[Diagnostic] = []
    said: list[str] = []
    for path in programs:
        own, line = findings.checked(path, texts.include, texts.macros, warnings, pragmas)
        found += own
        said += [line] if line else []
    if format is FindingsFormat.TEXT:
        findings.print_findings(found, said)
    else:
        print(findings.as_json(found) if format is FindingsFormat.JSON else findings.as_sarif(found))
        context.exit(any(finding.severity == "error" for finding in found))


@app.command()
@options.program_files
@switch("--write", "-w", help="Rewrite the files.")
@switch("--check", help="Change nothing; fail if a file is not formatted.")
def fmt(programs: tuple[Path, ...], write: bool, check: bool) -> None:
    """Print the PROGRAMs in the one canonical layout."""
    from dlog.command.formatting import formatted, rewrite, sweep

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
            rewrite(path, before, after)
            print(one_line(f"formatted {path}"), file=sys.stderr)
        else:
            sweep(path)
    if unformatted:
        note = "`dlog fmt --write` rewrites it"
        raise DlogError([Diagnostic("not-formatted", f"{path} is not formatted", notes=(note,)) for path in unformatted])


@app.command()
@options.program_file
@option("--stage", choice=Stage, default=Stage.PLAN.value, help="Which stage of the compiler to show.")
@option("--fact-dir", "-F", "facts", metavar="DIR", help="Load these inputs first: join orders then follow their sizes.")
@switch("--rounds", help="Show how relations are maintained while inputs change.")
@option(
    "--engine",
    choice=Engine,
    default=Engine.EMBEDDED.value,
    help="What executes the plan; for Spark: where rows are, and where they move.",
)
@options.strategy_choice
@options.texts
def plan(
    program: Path, stage: Stage, facts: str | None, rounds: bool, engine: Engine, strategy: Strategy, texts: Texts
) -> None:
    """Print how the PROGRAM is executed: strata, rules as delta paths, arrangements."""
    from dlog.pipeline import explain_jobs, explain_plan, explain_rounds, explain_stage, explain_workers

    source = program, texts.include, texts.macros
    if engine is Engine.SPARK:
        if rounds or stage is not Stage.PLAN:
            usage_error("`--engine spark` is for the plan of a run", "leave `--stage` and `--rounds` out")
        text = (explain_jobs if strategy is Strategy.JOBS else explain_workers)(*source, facts)
    elif rounds:
        if facts is not None or stage is not Stage.PLAN:
            usage_error("`--rounds` is for the plan, of assumed sizes", "leave `--stage` and `--fact-dir` out")
        text = explain_rounds(*source)
    elif stage is Stage.PLAN:
        text = explain_plan(*source, facts)
    else:
        text = explain_stage(*source, stage.value)
    print(printable(text.rstrip("\n")))


@app.command()
@options.texts
def lsp(texts: Texts) -> None:
    """Serve an editor by the Language Server Protocol, on standard input and output."""
    parent = os.getppid()  # before what takes long to load
    try:
        from dlog.lsp.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("pygls", "lsprotocol"):
            raise
        note = "install it with: pip install 'dlog-engine[lsp]'"
        raise DlogError(Diagnostic("missing-package", "`dlog lsp` needs pygls", notes=(note,))) from None
    serve(parent, texts.include, texts.macros)


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


@app.group(context_settings=HELP)
def state() -> None:
    """Look after the folder of a session (--state): is it whole, and what can be saved of it?"""


@state.command("check")
@options.path("folder", "DIR")
def check_state(folder: Path) -> None:
    """Verify every file of the state in DIR; say what is in it, or list all that is damaged."""
    from dlog.sessions.persistence import inspection

    said = inspection.check_state(folder)
    _print_lines([f"{folder}: ok, {said[0]}", *said[1:]])


@state.command("repair")
@options.path("folder", "DIR")
@repeated("--without", metavar="INPUT", help="Give up the rows of this input if they are damaged")
def repair_state(folder: Path, without: tuple[str, ...]) -> None:
    """Bring back what can be brought back of the damaged state in DIR. Says what is lost, and keeps the files as they were."""
    from dlog.sessions.persistence import inspection

    _print_lines(inspection.repair_state(folder, without) or [f"{folder}: nothing is damaged"])


@state.command("dump")
@options.path("folder", "DIR")
@options.path("output", "OUT")
def dump_state(folder: Path, output: Path) -> None:
    """Write the program and all inputs of the state in DIR, as far as they can be read, to files in OUT for `dlog run`."""
    from dlog.sessions.persistence import inspection

    _print_lines(inspection.dump_state(folder, output))


def _print_lines(lines: Sequence[str]) -> None:
    """What is said of a state, whose names anybody may have forged who can write there."""
    print("\n".join(map(one_line, lines)))


def invoke(arguments: Sequence[str]) -> int:
    """Runs one command line; returns 0, or 1 for a command line that makes no sense. Everything else is raised."""
    _suggest_run(arguments)
    try:
        # Not `app.main`, which has its own mind about interruptions and readers that go away.
        with app.make_context("dlog", list(arguments)) as context:
            app.invoke(context)
    except click.exceptions.Exit as request:
        return request.exit_code
    except click.ClickException as error:
        if "NoArgsIsHelp" in type(error).__name__:  # of a group; older versions of click print it themselves
            print(error.format_message())
            return 1
        usage_error(error.format_message(), *_hints(error))
    return 0


def _hints(error: click.ClickException) -> tuple[str, ...]:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return (f"try `{context.command_path} --help`",) if context is not None else ()


def _suggest_run(arguments: Sequence[str]) -> None:
    """`dlog program.dl` is what people type first."""
    first = arguments[0] if arguments else ""
    if first.endswith(".dl") or ("." in first and not first.startswith("-") and os.path.isfile(first)):
        usage_error(f"{first!r} is not a command", f"did you mean `dlog run {' '.join(arguments)}`?")
