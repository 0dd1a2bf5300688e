"""Communication while workers run one scope: exchanges, the phases these belong to, the cut scope."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Literal, TypeAlias

from dlog.dataclass import dataclass
from dlog.engine.ir.nodes import Insert, Path, Scan, Scope
from dlog.engine.ir.rules import Variable
from dlog.engine.plan.column_types import ColumnType
from dlog.engine.plan.exchange.places import Copy, Heavy, Place

Role: TypeAlias = Literal["stream", "home", "copy"]


@dataclass(frozen=True, slots=True)
class Exchange:
    """Moves the rows of `name` to where `place` says: the worker that owns the value in that column, `ROOT`, `EVERYWHERE` or
    `SELF`. They arrive in `inbox`, from where `delivery` (roles home and copy) or a path of the plan takes them on. A path
    whose sink is distinct allows that each row is sent once only."""

    name: str
    place: Place
    role: Role
    types: tuple[ColumnType, ...]
    delivery: Path | None = None
    heavy: Heavy = ()
    """Values of the place's column whose rows do not go to one worker: those of a stream go to all, others are spread."""

    @property
    def inbox(self) -> str:
        return f"{self.name} <"

    @property
    def target(self) -> str | None:
        """The relation that `delivery` fills."""
        return self.delivery.sink.relation if self.delivery is not None else None

    @property
    def transfer(self) -> Path:
        """The exchange as a path, to tell where values come from."""
        columns = range(len(self.types))
        seed = Scan(self.name, tuple((c, c) for c in columns))
        return Path(-1, seed, (), Insert(self.inbox, tuple(Variable(c) for c in columns), False), len(self.types))


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase that workers run together until nobody has anything to send: `paths` from their own rows, `streams` from inboxes.
    `copies` of complete relations are made before."""

    paths: tuple[Path, ...] = ()
    streams: tuple[Path, ...] = ()
    copies: tuple[Copy, ...] = ()
    exchanges: tuple[Exchange, ...] = ()


@dataclass(frozen=True, slots=True)
class DistributedScope:
    """A scope cut for several workers. `mirrors` are the copies of growing relations, filled by exchanges of the loop;
    `homes` those of the planner's own relations; `apart` the reductions whose parts, one per worker, must be brought together
    when their stage ends; `split` the program's relations whose rows with these values at their home are spread."""

    scope: Scope
    stages: tuple[Phase, ...]
    enter: Phase
    loop: Phase
    mirrors: tuple[Copy, ...]
    homes: Mapping[str, Place]
    apart: frozenset[str]
    split: Mapping[str, Heavy] = field(default_factory=dict)

    @property
    def phases(self) -> tuple[Phase, ...]:
        return (*self.stages, self.enter, self.loop)


def delivery_to(exchange: Exchange, target: str, distinct: bool) -> Path:
    columns = range(len(exchange.types))
    seed = Scan(exchange.inbox, tuple((c, c) for c in columns))
    return Path(-1, seed, (), Insert(target, tuple(Variable(c) for c in columns), distinct), len(exchange.types))
