"""Items of a component with the names they have in one instance."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from dlog.engine.compile.components.instances import Layer
from dlog.engine.compile.walk import Node
from dlog.grammar.syntax import (
    AdtDecl,
    AggregateTerm,
    And,
    Atom,
    Attribute,
    Body,
    BranchTerm,
    Call,
    Cast,
    Clause,
    Constraint,
    Directive,
    FunctorDecl,
    Item,
    LatticeDecl,
    Not,
    Or,
    RecordDecl,
    RecordTerm,
    RelationDecl,
    Subsumption,
    SubtypeDecl,
    Term,
    UnionDecl,
)

_N = TypeVar("_N", bound=Node)


def rename(item: Item, layer: Layer) -> Item:
    """An item other than `.comp`, `.init` and `.override` with the full names of what it declares and mentions."""
    prefix = layer.instance.prefix
    match item:
        case RelationDecl(names=names, attributes=attributes, debug_delta=of):
            of = None if of is None else replace(of, relation=layer.instance.relation(of.relation))
            full = tuple(prefix + n for n in names)
            return replace(item, names=full, attributes=_attributes(attributes, layer), debug_delta=of)
        case Clause():
            return _clause(item, layer)
        case Directive(relations=relations):
            return replace(item, relations=tuple(map(layer.instance.relation, relations)))
        case SubtypeDecl(name=name, base=base):
            return replace(item, name=prefix + layer.binding.get(name, name), base=layer.type(base))
        case UnionDecl(name=name, members=members):
            return replace(item, name=prefix + layer.binding.get(name, name), members=tuple(map(layer.type, members)))
        case RecordDecl(name=name, fields=fields):
            return replace(item, name=prefix + layer.binding.get(name, name), fields=_attributes(fields, layer))
        case AdtDecl(name=name, branches=branches):
            own = tuple(replace(b, name=prefix + b.name, fields=_attributes(b.fields, layer)) for b in branches)
            return replace(item, name=prefix + layer.binding.get(name, name), branches=own)
        case Subsumption():
            return replace(
                item,
                dominated=_node(item.dominated, layer),
                dominating=_node(item.dominating, layer),
                body=_node(item.body, layer),
            )
        case LatticeDecl(type=name):
            return replace(item, type=layer.type(name))
        case FunctorDecl(params=params, result=result):
            return replace(item, params=_attributes(params, layer), result=layer.type(result))
        case _:
            return item


def _clause(clause: Clause, layer: Layer) -> Clause:
    heads = tuple(_node(h, layer) for h in clause.heads)
    body = None if clause.body is None else _node(clause.body, layer)
    return Clause(heads, body, clause.plan, span=clause.span)


def _attributes(attributes: tuple[Attribute, ...], layer: Layer) -> tuple[Attribute, ...]:
    return tuple(replace(a, type=layer.type(a.type)) for a in attributes)


def _node(node: _N, layer: Layer) -> _N:
    return _rename_node(node, layer)  # type: ignore[return-value]  # each node stays of its class


def _rename_node(node: Node, layer: Layer) -> Node:
    match node:
        case Atom(name=name, args=args):
            named = layer.instance.relation(name)
            return Atom(named, _terms(args, layer), span=node.span, round=node.round, event=node.event)
        case Call(name=name, args=args):
            return Call(name, _terms(args, layer), span=node.span)
        case RecordTerm(args=args):
            return RecordTerm(_terms(args, layer), span=node.span)
        case BranchTerm(branch=branch, args=args):
            return BranchTerm(layer.instance.branch(branch), _terms(args, layer), span=node.span)
        case Cast(term=term, type=name):
            return Cast(_node(term, layer), layer.type(name), span=node.span)
        case Constraint(op=op, left=left, right=right):
            return Constraint(op, _node(left, layer), _node(right, layer), span=node.span)
        case Not(body=body):
            return Not(_node(body, layer), span=node.span)
        case And(parts=parts):
            return And(_bodies(parts, layer), span=node.span)
        case Or(parts=parts):
            return Or(_bodies(parts, layer), span=node.span)
        case AggregateTerm(op=op, target=target, body=body, init=init):
            inner = None if target is None else _node(target, layer)
            first = None if init is None else _node(init, layer)
            return AggregateTerm(op, inner, _node(body, layer), first, span=node.span)
        case _:
            return node


def _terms(terms: tuple[Term, ...], layer: Layer) -> tuple[Term, ...]:
    return tuple(_node(t, layer) for t in terms)


def _bodies(parts: tuple[Body, ...], layer: Layer) -> tuple[Body, ...]:
    return tuple(_node(p, layer) for p in parts)
