"""Proofs as Souffle draws them: what a row follows from stands above it, with a line between that names the rule.

      edge("b", "c")
      ------------(R1)
    edge("a", "b") path("b", "c")
    ----------------------------(R2)
            path("a", "c")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import field

from dlog.dataclass import dataclass
from dlog.proofs.model import Absent, Aggregated, Holds, Premise, Proof
from dlog.proofs.wording import literal_of

RuleNumber = Callable[[Proof], int]
"""The place of a proof's rule among those of its relation, from 1."""


@dataclass(slots=True)
class Tree:
    """A row, or what else a rule needs; `label` names the rule, of a leaf there is none."""

    text: str
    label: str = ""
    children: list[Tree] = field(default_factory=list)

    @property
    def width(self) -> int:
        return max(len(self.text), len(self.label), sum(child.width + 1 for child in self.children))

    @property
    def height(self) -> int:
        return 1 + max((1 + child.height for child in self.children), default=0)

    def lines(self) -> list[str]:
        """The drawing, all lines of one width."""
        canvas = [[" "] * self.width for _ in range(self.height)]
        for x, y, text in self._placed(0, 0):
            canvas[-1 - y][x : x + len(text)] = text
        return ["".join(line) for line in canvas]

    def _placed(self, x: int, y: int) -> Iterator[tuple[int, int, str]]:
        """Where texts begin: columns from the left, lines from the bottom."""
        if not self.children:
            yield x, y, self.text
            return
        width = self.width
        yield x + (width - len(self.text)) // 2, y, self.text
        yield x, y + 1, self.label.rjust(width, "-")
        for child in self.children:
            yield from child._placed(x, y + 2)
            x += child.width + 1

    def as_json(self) -> object:
        if not self.children:
            return {"axiom": self.text}
        children = [child.as_json() for child in self.children]
        return {"premises": self.text, "rule-number": self.label, "children": children}

    def json_text(self, rules: Iterable[tuple[str, str]]) -> str:
        """With labels and texts of the rules, as Souffle's."""
        listed = [{"rule-number": label, "rule": text} for label, text in rules]
        return json.dumps({"proof": self.as_json(), "rules": listed}, indent=2, ensure_ascii=False)


@dataclass(slots=True)
class TreeBuilder:
    """Makes trees of limited height; what is cut off can be asked for by the number of the subproof. As in Souffle, constraints
    stand behind rows, and what only gives a variable its value is left out."""

    number_of: RuleNumber
    depth: int = 4
    subproofs: list[Proof] = field(default_factory=list)

    def tree(self, proof: Proof) -> Tree:
        return self._tree(proof, self.depth)

    def _tree(self, proof: Proof, depth: int) -> Tree:
        if proof.is_fact:
            return Tree(_row(proof))
        if depth <= 1:
            return Tree(f"subproof {proof.relation}({self._number(proof)})")
        constraints = [p for p in proof.premises if isinstance(p, Holds) and " = " not in p.text]
        others = [premise for premise in proof.premises if not isinstance(premise, Holds)]
        children = [self._premise(premise, depth - 1) for premise in (*others, *constraints)]
        return Tree(_row(proof), f"(R{self.number_of(proof)})", children)

    def _number(self, proof: Proof) -> int:
        keys = [known.key for known in self.subproofs]
        if proof.key not in keys:
            self.subproofs.append(proof)
            return len(keys)
        return keys.index(proof.key)

    def _premise(self, premise: Premise, depth: int) -> Tree:
        match premise:
            case Proof():
                return self._tree(premise, depth)
            case Absent(text=text):
                return Tree(f"!{text}")
            case Holds(text=text):
                return Tree(text)
            case Aggregated(text=text, value=value):
                return Tree(f"{literal_of(value)} = {text}")


def _row(proof: Proof) -> str:
    return f"{proof.relation}({', '.join(map(literal_of, proof.row))})"
