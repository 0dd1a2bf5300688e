"""Names of instances in diagnostics, as the component's author wrote them.

A mistake in a component is found in each of its instances, where its relations have other names. It is told once, with the
names that stand in the text; if only some instances have it, these are named.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from dlog.engine.compile.components.declarations import Component
from dlog.engine.compile.problems import INSTANCE_NAME
from dlog.grammar.diagnostics import Diagnostic, Label
from dlog.grammar.source import Span

_OF_WHOLE_PROGRAM: Final = frozenset({"never-filled", "never-read", "never-fires"})
"""Warnings about an instance rather than about its component: another instance may use all of it."""


class WrittenNames:
    """`prefixes` are those of each component's instances."""

    def __init__(self, prefixes: Mapping[Component, Sequence[str]]) -> None:
        self._prefixes = {c: frozenset(own) for c, own in prefixes.items() if c.outer is not None}
        self._chains = {c: {p for prefix in own for p in _with_outer(prefix)} for c, own in self._prefixes.items()}

    def errors(self, found: Sequence[Diagnostic]) -> list[Diagnostic]:
        return [diagnostic for diagnostic, _ in self._merged(found)]

    def warnings(self, found: Sequence[Diagnostic]) -> list[Diagnostic]:
        return [d for d, in_all in self._merged(found) if in_all or d.code not in _OF_WHOLE_PROGRAM]

    def _merged(self, found: Sequence[Diagnostic]) -> list[tuple[Diagnostic, bool]]:
        """Each diagnostic once, and whether all instances of its component have it."""
        groups: dict[tuple[str, str, Span | None], tuple[Diagnostic, Component | None, set[str]]] = {}
        for diagnostic in found:
            component = self._component(diagnostic)
            removed: set[str] = set()
            if component is not None:
                diagnostic = _shortened(diagnostic, self._chains[component], removed)
            place = diagnostic.labels[0].span if diagnostic.labels else None
            key = (diagnostic.code, diagnostic.message, place)
            groups.setdefault(key, (diagnostic, component, set()))[2].update(removed)
        return [self._with_instances(*group) for group in groups.values()]

    def _with_instances(
        self, diagnostic: Diagnostic, component: Component | None, removed: set[str]
    ) -> tuple[Diagnostic, bool]:
        """A diagnostic with the instances that have it, if not all do."""
        if component is None:
            return diagnostic, True
        own = self._prefixes[component]
        known = sorted(removed & own)
        if not known or len(known) == len(own):
            return diagnostic, True
        listed = ", ".join(f"`{prefix[:-1]}`" for prefix in known[:3]) + (", ..." if len(known) > 3 else "")
        note = f"in {'the instance' if len(known) == 1 else 'the instances'} {listed} of `{component.name}`"
        return replace(diagnostic, notes=(*diagnostic.notes, note)), False

    def _component(self, diagnostic: Diagnostic) -> Component | None:
        """The innermost component with instances in which a diagnostic's first place is."""
        if not diagnostic.labels:
            return None
        at = diagnostic.labels[0].span.start
        around = [c for c in self._prefixes if c.span.start <= at < c.span.end]
        return max(around, key=lambda c: c.span.start, default=None)


def _with_outer(prefix: str) -> list[str]:
    """The prefix and those of the instances around it: `a.b.` has `a.b.` and `a.`."""
    return [prefix[: at + 1] for at, c in enumerate(prefix) if c == "."]


def _shortened(diagnostic: Diagnostic, prefixes: set[str], removed: set[str]) -> Diagnostic:
    """A diagnostic whose names lack these prefixes; those that were there are added to `removed`."""

    def shorten(match: re.Match[str]) -> str:
        path = known = match[0]
        while known and known not in prefixes:
            known = known[: known.rfind(".", 0, -1) + 1]
        if known:
            removed.add(known)
        return path[len(known) :]

    def text(value: str) -> str:
        return INSTANCE_NAME.sub(shorten, value)

    labels = tuple(Label(label.span, text(label.message)) for label in diagnostic.labels)
    return replace(
        diagnostic, message=text(diagnostic.message), labels=labels, notes=tuple(text(note) for note in diagnostic.notes)
    )
