"""Sets of kinds that signatures speak of."""

from __future__ import annotations

from typing import Final, TypeAlias

from dlog.engine.ir.rules import Kind

Kinds: TypeAlias = frozenset[Kind]

ALL: Final = frozenset(Kind)
NUMERIC: Final = frozenset({Kind.NUMBER, Kind.UNSIGNED, Kind.FLOAT})
INTEGRAL: Final = frozenset({Kind.NUMBER, Kind.UNSIGNED})
ORDERED: Final = NUMERIC | {Kind.SYMBOL}
SYMBOL: Final = frozenset({Kind.SYMBOL})
NUMBER: Final = frozenset({Kind.NUMBER})
UNSIGNED: Final = frozenset({Kind.UNSIGNED})
FLOAT: Final = frozenset({Kind.FLOAT})
