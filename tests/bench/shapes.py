"""Programs of as many rules as asked for, in the shapes that generators of programs give them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tests.bench.starting import GROUP

EDGES = ".decl e(x: number, y: number)\ne(1, 2). e(2, 3). e(3, 1).\n"
PAIR = "(x: number, y: number)"


def groups(rules: int) -> str:
    """Ten rules of all kinds, again and again."""
    made = (GROUP.format(i=i, before=f"both{i - 1}" if i else "edge") for i in range(rules // 10))
    return ".decl edge(x: number, y: number)\nedge(1, 2). edge(2, 3). edge(3, 1).\n" + "".join(made)


def copies(rules: int) -> str:
    """A chain of relations that hold the same rows."""
    made = (f".decl c{i}{PAIR}\nc{i}(x, y) :- {_before('c', i)}(x, y).\n" for i in range(rules))
    return f"{EDGES}{''.join(made)}.output c{rules - 1}\n"


def joins(rules: int) -> str:
    """A chain of joins, all of them outputs."""
    return _each(rules, lambda i: (f"j{i}", [f"j{i}(x, z) :- {_before('j', i)}(x, y), e(y, z), x < z."]))


def strata(rules: int) -> str:
    """Recursive relations that have nothing to do with each other."""

    def closure(i: int) -> tuple[str, list[str]]:
        return f"p{i}", [f"p{i}(x, y) :- e(x, y), x > {i % 7}.", f"p{i}(x, z) :- p{i}(x, y), e(y, z)."]

    return _each(rules // 2, closure)


def mutual(rules: int) -> str:
    """One recursion through all relations."""
    count = rules // 2

    def member(i: int) -> tuple[str, list[str]]:
        copied, joined = (i + 1) % count, (7 * i + 3) % count
        return f"m{i}", [f"m{i}(x, y) :- m{copied}(x, y), x > {i % 7}.", f"m{i}(x, z) :- m{joined}(x, y), e(y, z)."]

    return _each(count, member) + "m0(x, y) :- e(x, y).\n"


def one_head(rules: int) -> str:
    """All rules of one relation."""
    return f"{EDGES}.decl p{PAIR}\n.output p\n" + "".join(f"p(x, y) :- e(x, z), e(z, y), x != {i}.\n" for i in range(rules))


def filtered(rules: int) -> str:
    """Relations of which one relation, with a rule for each, reads a part."""
    pairs = (f".decl q{i}{PAIR}\nq{i}(x, y) :- e(x, z), e(z, y).\nall(y) :- q{i}(1, y), y > {i}.\n" for i in range(rules // 2))
    return f"{EDGES}.decl all(x: number)\n.output all\n{''.join(pairs)}"


def facts(rows: int) -> str:
    """Facts in the text."""
    rules = '.decl named(n: number, name: symbol)\n.decl odd(name: symbol)\n.output odd\nodd(s) :- named(n, s), n % 2 = 1.\n'
    return rules + "".join(f'named({i * 7919 % 1_000_003}, "name{i}").\n' for i in range(rows))


def wide(rules: int) -> str:
    """Bodies of six atoms."""
    body = "e(a, b), e(b, c), e(c, d), e(d, f), e(f, g), e(g, h), a != h"
    return _each(rules, lambda i: (f"w{i}", [f"w{i}(a, h) :- {body}, b < {i}."]))


def analysis(rules: int) -> str:
    """Long names, types and symbols, as tools for program analysis write them."""
    columns = "(EA: Address, instruction: Instruction, register: symbol)"
    given = "InstructionAtAddress"
    made, previous = [f".type Address <: unsigned\n.type Instruction <: symbol\n.decl {given}{columns}\n"], given
    for i in range(rules):
        name = f"MethodInvocation_ReachingDefinition_{i}_ContextSensitive"
        made.append(
            f".decl {name}{columns}\n{name}(effectiveAddress, instructionName, destinationRegister) :-\n"
            f"    {previous}(effectiveAddress, instructionName, destinationRegister),\n"
            f'    destinationRegister != "RAX{i % 13}",\n'
            f"    !{given}(effectiveAddress + 1, instructionName, _).\n"
        )
        made += [f".output {name}\n"] if i % 10 == 9 else []
        previous = name if i % 10 else given
    return "".join(made)


SHAPES: dict[str, Callable[[int], str]] = {
    shape.__name__: shape
    for shape in (groups, copies, joins, strata, mutual, one_head, filtered, facts, wide, analysis)
}


def _before(name: str, i: int) -> str:
    return f"{name}{i - 1}" if i else "e"


def _each(count: int, made: Callable[[int], tuple[str, Iterable[str]]]) -> str:
    """Relations of pairs, each with its rules, all of them outputs."""
    parts = [EDGES]
    for name, rules in map(made, range(count)):
        parts += [f".decl {name}{PAIR}\n.output {name}\n", *(f"{rule}\n" for rule in rules)]
    return "".join(parts)
