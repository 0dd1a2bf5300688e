"""Programs on several workers that are threads of this process: everything that Spark's workers do, but for Spark."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from dlog.codec import Codec
from dlog.engine.cluster import superstep
from dlog.engine.cluster.blocks import blocks, cut_everywhere, rows_of
from dlog.engine.cluster.dictionary import Dictionary
from dlog.engine.cluster.executor import SPLIT_ROWS, ShardExecutor
from dlog.engine.cluster.session_worker import Failed, SessionWorker
from dlog.engine.cluster.sharded_engine import ShardedRounds
from dlog.engine.cluster.superstep import OutputBlock, RowCounts, TaskRows
from dlog.engine.cluster.worker_group import PeerFailed, ThreadTransport, WorkerGroup
from dlog.engine.ir.rules import Program, with_inputs
from dlog.engine.plan.exchange.decomposable import DecomposablePlan, exchanged
from dlog.engine.plan.exchange.distribute import EVERYWHERE_ROWS
from dlog.engine.plan.exchange.numbering import counts
from dlog.engine.plan.exchange.pivots import pivot_plan
from dlog.engine.plan.exchange.places import EVERYWHERE, Place
from dlog.engine.plan.exchange.supersteps import Superstep, Supersteps, supersteps
from dlog.engine.runtime.incremental.engines.choice import is_incremental
from dlog.engine.runtime.storage.memory import Memory
from dlog.engine.runtime.storage.records import RecordTables
from dlog.engine.values.symbols import SymbolTable
from dlog.functors import FunctorSource, linked
from dlog.grammar.diagnostics import DlogError, InternalError
from dlog.pipeline import compile_program, load_inputs, optimized, write_outputs
from dlog.relation import Relation

Row = tuple[Any, ...]
Facts = Mapping[str, Iterable[Row]]


def in_worker_group(size: int, work: Callable[[WorkerGroup], Any]) -> list[Any]:
    """What `work` returns on each worker. Raises the error of the worker that failed first by rank, not its echo."""
    with ThreadPoolExecutor(size) as pool:
        futures = [pool.submit(work, WorkerGroup(transport)) for transport in ThreadTransport.connected(size)]
        errors = [f.exception() for f in futures]
    for error in errors:
        if error is not None and not isinstance(error, PeerFailed):
            raise error
    return [f.result() for f in futures]


def evaluated(
    program: Program, facts: Facts, worker_group: WorkerGroup, everywhere: int = EVERYWHERE_ROWS, split_rows: int = SPLIT_ROWS
) -> tuple[ShardExecutor, Codec]:
    """One worker's executor after the run; it has every `size`-th row, and the blocks of those that are its own."""
    executor = ShardExecutor(program, worker_group, everywhere=everywhere, split_rows=split_rows)
    codec = Codec(program, executor.symbols, executor.records)
    for name, rows in facts.items():
        given = list(rows)
        executor.load(name, codec.table(program.relations[name], given[worker_group.rank :: worker_group.size]))
        for owner, block in cut_in_blocks(program, name, given, executor.homes[name], worker_group.size):
            if owner == worker_group.rank:
                executor.load_block(name, block, owner)
    executor.run()
    return executor, codec


def cut_in_blocks(program: Program, name: str, rows: Iterable[Row], home: Place, workers: int) -> list[tuple[int, bytes]]:
    """A relation's rows as those have them who have none of the workers' ids."""
    codec = Codec(program, SymbolTable(), RecordTables(Memory(None)))
    relation = program.relations[name]
    dictionary = Dictionary(codec.symbols, codec.records, program.types, workers)
    return list(blocks(relation, codec.table(relation, list(rows)), home, dictionary, workers))


def run_sharded(
    text: str,
    facts: Facts,
    workers: int = 3,
    everywhere: int = EVERYWHERE_ROWS,
    split_rows: int = SPLIT_ROWS,
    functors: FunctorSource = None,
) -> dict[str, set[Row]]:
    """Every relation of a program as a set of tuples. A row that two workers have is an error. As on Spark, one worker runs a
    program that is recursive through `count` or `sum`."""

    def work(worker_group: WorkerGroup) -> dict[str, list[Row]]:
        program = linked(compile_program(text), functors)
        executor, codec = evaluated(program, facts, worker_group, everywhere, split_rows)
        return {name: list(Relation(r, executor.table(name), codec)) for name, r in program.relations.items()}

    found: dict[str, set[Row]] = {}
    for shard in in_worker_group(1 if counts(compile_program(text)) else workers, work):
        for name, rows in shard.items():
            known = found.setdefault(name, set())
            assert len(rows) == len({repr(r) for r in rows}), f"{name} has a row twice on one worker"
            assert not {repr(r) for r in known} & {repr(r) for r in rows}, f"{name} has a row on two workers"
            known |= set(rows)
    return found


def run_sharded_program(program: Path, facts: Path, output: Path) -> dict[str, list[str]]:
    """The lines of every file that a run writes, sorted. Each worker reads some of the inputs and writes its share of the
    outputs to a folder of its own."""

    def work(worker_group: WorkerGroup) -> None:
        typed = optimized(compile_program(program), classes=False)
        executor = ShardExecutor(typed, worker_group)
        inputs = [io for io in typed.io if io.action == "input"][worker_group.rank :: worker_group.size]
        load_inputs(executor, replace(typed, io=tuple(inputs)), str(facts), 1)
        executor.run()
        write_outputs(executor, typed, str(output / str(worker_group.rank)), 1)

    in_worker_group(1 if counts(compile_program(program)) else 2, work)
    lines: dict[str, list[str]] = {}
    for file in sorted(output.glob("*/*.csv")):
        lines.setdefault(file.name, []).extend(file.read_text().splitlines())
    return {name: sorted(found) for name, found in lines.items()}


class LocalCrew:
    """Workers of a session that are threads of this process; what goes to them and back is pickled, as on its way through a
    network."""

    def __init__(self, size: int = 3, **limits: Any) -> None:
        self.size = size
        self.session_workers = [SessionWorker(limits, WorkerGroup(transport)) for transport in ThreadTransport.connected(size)]
        self.dictionary: Dictionary | None = None

    def ask(self, commands: Mapping[int, tuple[str, tuple[Any, ...]]]) -> dict[int, Any]:
        with ThreadPoolExecutor(self.size) as pool:
            futures = {rank: pool.submit(self._run, rank, *pickle.loads(pickle.dumps(c))) for rank, c in commands.items()}
            return {rank: future.result() for rank, future in futures.items()}

    def _run(self, rank: int, command: str, args: tuple[Any, ...]) -> Any:
        try:
            return pickle.loads(pickle.dumps(getattr(self.session_workers[rank], command)(*args)))
        except Failed as failed:
            return failed.error
        except (DlogError, InternalError) as error:
            return error


def sharded_rounds(program: Program, *, size: int = 3, old: Any = None, **limits: Any) -> ShardedRounds:
    """A session's engine on workers of this process."""
    resident_workers = old.resident_workers if isinstance(old, ShardedRounds) else LocalCrew(size, **limits)
    return ShardedRounds(program, resident_workers, old)


class Exchanging(ShardedRounds):
    """Workers that go through all strata together, those too that each could maintain alone."""

    def _placed(self, program: Program, workers: int) -> DecomposablePlan:
        found = pivot_plan(program)
        return exchanged(program, found) if found and is_incremental(found.program) else super()._placed(program, workers)


def exchanging_rounds(program: Program, *, size: int = 2, old: Any = None, **limits: Any) -> ShardedRounds:
    resident_workers = old.resident_workers if isinstance(old, ShardedRounds) else LocalCrew(size, **limits)
    return Exchanging(program, resident_workers, old)


class Tasks:
    """Supersteps in this process; blocks are lists."""

    def __init__(self, plan: Supersteps, tasks: int) -> None:
        self.plan = plan
        self.tasks = tasks
        self.supersteps: list[tuple[tuple[str, ...], int]] = []

    def superstep(self, step: Superstep, number: int, lots: Sequence[TaskRows]) -> tuple[list[OutputBlock], RowCounts]:
        self.supersteps.append((step.relations, number))
        there = [p for lot in lots for p in lot.of if p[0] == lot.kind and p[1] in lot.relations]
        left: list[OutputBlock] = []
        figures: list[tuple[str, int]] = []
        for rank in range(self.tasks):
            own = [(kind, name, block) for kind, name, owner, block in there if owner == rank]
            pieces, told = superstep.evaluated(step, number, self.plan.homes, own, rank, self.tasks)
            left += pieces
            figures += told.items()
        return left, superstep.together_of(figures)


def run_in_supersteps(text: str, facts: Facts, tasks: int = 3) -> dict[str, set[Row]]:
    """Every relation of a program as a set of tuples; a row that two tasks have is an error."""
    program = with_inputs(compile_program(text), facts)
    plan = supersteps(program, tasks)
    given: list[OutputBlock] = [("kept", *fact) for fact in superstep.blocks_of_facts(program, plan, tasks)]
    given += cut_for_tasks(program, plan, facts, tasks)
    lots, figures = superstep.run(plan, given, Tasks(plan, tasks))
    found = {name: _rows_in(program, lots[plan.stored_names[name][0]], plan) for name in program.relations}
    first = {name: plan.stored_names[name][0] for name in found}
    assert {name: len(rows) for name, rows in found.items()} == {
        name: figures[held] // (tasks if plan.homes[held] == EVERYWHERE else 1) for name, held in first.items()
    }
    return found


def cut_for_tasks(program: Program, plan: Supersteps, facts: Facts, tasks: int) -> list[OutputBlock]:
    """Facts as blocks of the tasks that own them."""
    found: list[OutputBlock] = []
    for name, rows in facts.items():
        codec = Codec(program, SymbolTable(), RecordTables(Memory(None)))
        relation, listed = program.relations[name], list(rows)
        for held in plan.stored_names[name]:
            dictionary = Dictionary(codec.symbols, codec.records, program.types, tasks)
            table = codec.table(relation, listed)
            found += [("kept", held, *b) for b in cut_everywhere(relation, table, plan.homes[held], dictionary, tasks)]
    return found


def _rows_in(program: Program, lot: TaskRows, plan: Supersteps) -> set[Row]:
    (name,) = lot.relations
    codec = Codec(program, SymbolTable(), RecordTables(Memory(None)))
    relation = plan.program.relations[name]
    found: set[Row] = set()
    for kind, of, owner, block in lot.of:
        if (kind, of) == ("kept", name) and (owner == 0 or plan.homes[name] != EVERYWHERE):
            rows = [rows_of(block, relation, program.types, codec.symbols, codec.records)]
            listed = list(Relation(relation, superstep.table_of(relation, rows), codec))
            assert not found.intersection(listed), f"{name} has a row twice"
            found.update(listed)
    return found
