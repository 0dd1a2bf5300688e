"""The rules that collections become, and what is done with them: run once, or kept by a session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

from dlog.arguments import bad_argument
from dlog.as_rules.bodies import Stored
from dlog.as_rules.graph import Graph, bare
from dlog.as_rules.loops import Compiler
from dlog.as_rules.program import Program, identifier
from dlog.as_rules.refusals import refused
from dlog.as_rules.rows import as_facts, counted, stored_of
from dlog.as_rules.session import CollectionsSession
from dlog.dataclass import dataclass
from dlog.dataflow.collection import Collection
from dlog.dataflow.flow import Input
from dlog.dataflow.rows import Row
from dlog.dataflow.schema import Schema
from dlog.functors import Function
from dlog.grammar.diagnostics import Diagnostic, DlogError

if TYPE_CHECKING:
    from dlog.api import Result
    from dlog.spark import SparkResult
    from dlog.tabular import Tabular


class Results(Protocol):
    """What has relations by name: the result of a run, a session, or a view of a past round."""

    def __getitem__(self, name: str, /) -> Tabular: ...


@dataclass(frozen=True, eq=False, repr=False)
class Rules:
    """Collections as a program of rules. `text` is that program; `inputs` and `outputs` are its relations of those names."""

    text: str
    inputs: Mapping[str, Stored]
    outputs: Mapping[str, Stored]
    functors: Mapping[str, Function]
    """The functions that the program calls: those of `apply`. What runs the text elsewhere needs them."""

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, each.values())) for each in (self.inputs, self.outputs))
        return f"<dlog.Rules of {inputs}: {outputs}>"

    def run(self, facts: Mapping[str, Any] | None = None, **options: Any) -> Result | SparkResult:
        """Runs them once over the rows of inputs, by name; with the options of `dlog.run`, such as `engine="spark"`."""
        from dlog.api import run

        by_name = self._by_name({} if facts is None else facts)
        given = {name: as_facts(self._input(name), rows) for name, rows in by_name.items()}
        found: Result | SparkResult = run(self.text, given, **self._with_functors(options))
        return found

    def session(self, facts: Mapping[str, Any] | None = None, **options: Any) -> CollectionsSession:
        """A session that keeps the outputs up to date while the inputs change; with the options of `dlog.session`, such as
        `state` and `engine="spark"`. `facts` are rows of inputs, for a new state only."""
        given = None if facts is None else self._by_name(facts)
        return CollectionsSession(self.text, self.inputs, self.outputs, given, **self._with_functors(options))

    def counts(self, results: Results, name: str) -> dict[Row, int]:
        """How often each row of an output, or input, is there: in the result of a run, in a session, in a view of its past."""
        stored = stored_of(name, self.inputs, self.outputs)
        try:
            relation = results[name]
        except (KeyError, TypeError):
            raise bad_argument("results", "the result of a run, a session, or a view of its past", results) from None
        return counted(stored, relation)

    def _with_functors(self, options: dict[str, Any]) -> dict[str, Any]:
        """Options that bring the program's functors, besides those for rules that are added."""
        given = options.get("functors")
        if given is not None and not isinstance(given, Mapping):
            raise bad_argument("functors", "functions by name", given)
        return {**options, "functors": {**self.functors, **(given or {})}}

    def _by_name(self, facts: Any) -> Mapping[str, Any]:
        if not isinstance(facts, Mapping):
            raise bad_argument("facts", "rows by the name of their input", facts)
        for name in facts:
            self._input(name)
        return facts

    def _input(self, name: Any) -> Stored:
        if name not in self.inputs:
            raise bad_argument("facts", f"rows by the name of their input, one of {', '.join(self.inputs)}", name)
        return self.inputs[name]


def rules(*unnamed: Collection, sets: Iterable[str] = (), **outputs: Collection) -> Rules:
    """Collections as rules, for the engine that runs these: on one process or on Spark, planned, with durable states.

    Parameters
    ----------
    outputs
        The collections that are wanted, by the names of the relations that they become. Inputs have the names that they were
        given: `flow.input("edges", src=int, dst=int)`. A collection that may have a row several times is a relation with a
        last column `multiplicity`.
    sets
        The names of inputs whose rows are there or not, however often they are inserted. Others count, which costs more.

    Raises
    ------
    DlogError
        An operator cannot be said by rules (`not-as-rules`). What can is exact: it has the rows of the dataflow, as often.

    >>> import dlog
    >>> from dlog.dataflow import Dataflow, col
    >>> flow = Dataflow()
    >>> edges = flow.input("edges", src=int, dst=int)
    >>> paths = edges.iterate(lambda inner: inner.join_map(
    ...     edges.enter(inner.scope), "src", on={"dst": "src"}, dst="dst_right").concat(edges.enter(inner.scope)).distinct())
    >>> rules = dlog.rules(paths=paths, sets=["edges"])
    >>> sorted(rules.run({"edges": [(1, 2), (2, 3)]})["paths"])
    [(1, 2), (1, 3), (2, 3)]
    """
    for name, output in outputs.items():
        if not isinstance(output, Collection):
            raise bad_argument(name, "a collection", output)
    if unnamed or not outputs:
        raise DlogError(Diagnostic("bad-argument", "`rules` needs collections, by name: `rules(paths=paths)`"))
    graph = Graph(outputs.values())
    inputs = _inputs(graph, sets)
    _check_names([*inputs, *outputs])
    program = Program([*inputs, *outputs])
    relations = {name: _input_relation(program, name, each, name in set(sets)) for name, each in inputs.items()}
    names = {id(bare(output)): name for name, output in outputs.items() if bare(output).schema.names == output.schema.names}
    compiler = Compiler(program, graph, {id(each): relations[name] for name, each in inputs.items()}, names)
    try:
        found = {name: _output(compiler, name, output) for name, output in outputs.items()}
    except RecursionError:
        raise refused("rules", "expressions or loops are nested too deep", "put a `distinct` between them") from None
    for name in inputs:
        program.directive("input", name)
    for name in outputs:
        program.directive("output", name)
    return Rules(program.text, relations, found, compiler.functors.functions)


def _inputs(graph: Graph, sets: Any) -> dict[str, Input]:
    found: dict[str, Input] = {}
    for each in reversed(graph.collections):
        if isinstance(each, Input):
            if each.name is None:
                note = 'give it one: `flow.input("edges", src=int, dst=int)`'
                raise DlogError(Diagnostic("unnamed-input", f"the input ({each.schema}) has no name", notes=(note,)))
            if found.setdefault(each.name, each) is not each:
                raise bad_argument("name", "another for each input", each.name)
    if isinstance(sets, str) or not isinstance(sets, Iterable):
        raise bad_argument("sets", "names of inputs", sets)
    for name in sets:
        if name not in found:
            raise bad_argument("sets", f"names of inputs, some of {', '.join(found)}", name)
    return found


def _check_names(names: list[str]) -> None:
    for k, name in enumerate(names):
        if identifier(name) != name:
            message = f"no input or output can be called `{name}`: relations have names of letters, digits and `_`"
            raise DlogError(Diagnostic("bad-argument", message, notes=(f"`{identifier(name)}` is one that it can have",)))
        if name in names[:k]:
            message = f"two inputs, or an input and an output, are called `{name}`"
            raise DlogError(Diagnostic("bad-argument", message, notes=("each has a name of its own",)))


def _input_relation(program: Program, name: str, given: Input, is_set: bool) -> Stored:
    if object in given.schema.kinds:
        column = given.schema.names[given.schema.kinds.index(object)]
        raise DlogError(Diagnostic("not-as-rules", f"column `{column}` of kind object cannot be said by rules"))
    stored = program.relation(name, given.schema, named=True, weighted=not is_set)
    stored.keys = (stored.places,)
    return stored


def _output(compiler: Compiler, name: str, output: Collection) -> Stored:
    if output.schema.diffs:
        note = "add them up: `count`"
        raise DlogError(Diagnostic("diffs-no-integers", f"`{name}` has diffs that are no integers", notes=(note,)))
    if bare(output).schema.names == output.schema.names:
        found = compiler.relation(output)
        if found.name == name:
            return found
    return compiler.stored(name, Schema(output.schema.names, output.schema.kinds), compiler.bodies(output), named=True)
