"""The protocol between sessions and engines, which maintain a program while its inputs change.

A round is a set of changes of input relations that takes effect at once. After round r every relation equals the least fixed
point of the program on the inputs accumulated at r; round 0 is before everything, with all relations empty. The facts of the
program's text are inputs too: they arrive with the first round that is committed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeAlias, cast

import numpy as np

from dlog.dataclass import dataclass
from dlog.engine.formats.records import RecordTables
from dlog.engine.ir.rules import Program, Relation
from dlog.engine.values.symbols import SymbolTable
from dlog.engine.values.table import Table
from dlog.engine.values.updates import Updates
from dlog.grammar.diagnostics import InternalError

Frames = Mapping[str, Sequence[tuple[Any, int]]]
"""By relation, rows that are not in this process, each bulk change with the diff of all its rows; `RoundsEngine.fitting` gave
them."""
MAX_RELAYED_ROWS = 100_000
"""Rows that are not in this process up to which they come through it, which takes fewer jobs; more go past it."""


ImageArray: TypeAlias = Sequence[np.ndarray] | np.ndarray
"""The columns of a table: as many arrays, or the rows of one."""


@dataclass(frozen=True, slots=True)
class Image:
    """Everything that an engine keeps as of a round: a description that can be written as JSON, and arrays: the columns of
    each, int32 or uint8, perhaps narrower, and a single value where all are the same."""

    round: int
    head: Mapping[str, Any]
    arrays: Sequence[ImageArray]

    @property
    def bytes(self) -> int:
        return sum(column.nbytes for array in self.arrays for column in array)

    def copied(self) -> Image:
        """The same, whatever becomes of the engine; of one that an engine has made."""
        copy, pieces = self.copies(self.bytes + 1)
        for target, source in pieces:
            target[:] = source
        return copy

    def copies(self, piece: int) -> tuple[Image, list[tuple[np.ndarray, np.ndarray]]]:
        """Memory for the same, and what is to be copied to where, in pieces of about so many bytes."""
        rows = [np.asarray(array).T for array in self.arrays]
        memory, at, copies = np.empty(sum(r.nbytes + -r.nbytes % 4 for r in rows), np.uint8), 0, []
        pieces = []
        for table in rows:
            copies.append(memory[at : at + table.nbytes].view(table.dtype).reshape(table.shape))
            step = max(piece * len(table) // max(table.nbytes, 1), 1)
            pieces += [(copies[-1][k : k + step], table[k : k + step]) for k in range(0, len(table), step)]
            at += table.nbytes + -table.nbytes % 4
        return Image(self.round, self.head, [list(table.T) for table in copies]), pieces


class IncompatibleImage(Exception):
    """An engine cannot go on from an image; says why."""


@dataclass(frozen=True, slots=True)
class StartingPoint:
    """The starting point of an engine that has none before it: its round, and the tables from which its ids go on. `again`: the
    first commit derives what was derived before, if in other rounds, so that no limit of iterations holds for it. `restored`
    are the timed relations of before: what they follow comes with the first commit, and had come already."""

    symbols: SymbolTable
    records: RecordTables
    round: int
    again: bool = False
    restored: frozenset[str] = frozenset()


class Engine(Protocol):
    """Maintains one program.

    One thread commits at a time; `table` and `rows` may be called by others meanwhile. Changes that come in from outside are
    about the *external* rows of a relation: all rows of one without rules; where there are rules, rows besides those that the
    rules derive."""

    @property
    def program(self) -> Program: ...

    @property
    def symbols(self) -> SymbolTable:
        """The strings that ids in tables and updates stand for."""

    @property
    def records(self) -> RecordTables:
        """The records that ids in tables and updates stand for."""

    @property
    def round(self) -> int:
        """The last committed round; 0 before the first commit."""

    def commit(self, inputs: Mapping[str, Updates], frames: Frames | None = None) -> int:
        """Applies one or several rounds and returns the last one, which is `round` from then on. `frames` are further rows, all
        of the last round.

        The rounds of the updates are absolute, ascending within each relation, and larger than `round`; all rounds up to the
        largest are committed, without any just the next one. External rows are a set: inserting one that is there or removing
        one that is not changes nothing. A row has no two updates of opposite sign in one round. Whatever is raised (DlogError,
        KeyboardInterrupt), the engine is at its previous round."""

    def changes(self, relation: str) -> Updates:
        """The exact changes that the last commit made to the relation, by round; each row at most once a round."""

    def journal(self) -> int | None:
        """Keeps what the last commit changed in all relations, beside what earlier ones did, until somebody takes it, without
        making arrays of it. Returns how many words that takes; None where it cannot be: then nothing is kept of it."""

    def take_journal(self) -> dict[str, Updates]:
        """What has been kept, as `changes` would have told it commit by commit, but that a row may have several changes in one
        round, which are to be added up. Nothing is kept any longer."""

    @property
    def touched(self) -> Iterable[str]:
        """The relations that the last commit may have changed, in the program's order; all others have no `changes`."""

    def table(self, relation: str) -> Table:
        """The rows now; while a commit runs in another thread, as of the last committed round."""

    def external(self, relation: str) -> Table:
        """The external rows now."""

    def rows(self, relation: str) -> int:
        """How many rows there are now."""

    def ranks(self, relation: str) -> np.ndarray | None:
        """The iteration at which each row of `table(relation)` first appears in its recursive stratum (int32, in the table's
        order), 0 without recursion; None where the engine does not know."""

    def explain(self) -> str:
        """The plan by which the program is maintained, for people, and what was not derived anew when it changed."""

    def close(self) -> None:
        """Gives back memory and threads; nothing else is called afterwards."""


class RemoteRows(Protocol):
    """An engine whose rows may be in other processes, or not there at all until somebody reads them."""

    @property
    def pending(self) -> frozenset[str]:
        """The relations with rules whose rows are not there yet: to read one is to evaluate what it is derived from."""

    @property
    def elsewhere(self) -> bool:
        """Whether other processes keep the rows: each read fetches them, and nobody reads on where another engine took over."""

    def fitting(self, relation: Relation, rows: Any) -> Any | None:
        """Rows that are not in this process, as `commit` takes them in `frames`; None where they have to come here first.
        Raises DlogError where they do not fit the relation."""

    def saves(self, folder: Path) -> bool:
        """Whether what `fitting` gives can be written to files in a folder of this process, and read from there."""

    def save(self, relation: Relation, rows: Any, folder: Path) -> int:
        """Writes rows that `fitting` gave to Parquet files in a new folder, without this process; the columns are those of the
        relation, in order. Returns how many rows there are. Raises DlogError where they cannot be read or written."""

    def saved(self, relation: Relation, files: Sequence[Path], without: Table | None = None) -> Any:
        """The rows in such files, as `commit` takes them in `frames`; but for some, which have no floats or records."""


class Replaceable(Protocol):
    """An engine that takes over from another one, of the same program or of one that was changed, and gives way to it."""

    @property
    def inherited(self) -> frozenset[str]:
        """Before the first commit: the relations whose external rows come, with that commit, from the engine that this one goes
        on from. The first commit is of one round then."""

    @property
    def reused_relations(self) -> frozenset[str]:
        """The relations that the first commit took over from the engine before, with all indexes: they were not derived anew,
        and what it changed in them is in `changes`. All others began without rows."""

    def since(self, old: RoundsEngine, relation: str) -> Updates | None:
        """After the first commit: what became of the rows of a relation that the engine has, too, that this one goes on from;
        None where finding out takes the rows of both."""

    def take_back(self, successor: RoundsEngine) -> None:
        """Goes on from where it was when another engine took over from it, after the first commit of that one, or while it
        fails; nobody uses the other one any more."""

    @property
    def working(self) -> RoundsEngine | None:
        """The engine that maintains the program: this one or one inside it; None where that is not made yet."""

    def resumed(self) -> RoundsEngine:
        """The same, made if that takes less than deriving everything; else this one."""

    def loaded(self, relation: str, engine: RoundsEngine, round: int) -> tuple[Updates, list[tuple[Any, int]]] | None:
        """The external rows of a relation that are in files which `engine` can read, as what is to come in a round; None where
        they are not."""

    def image(self) -> Image | None:
        """All that the engine keeps, to be gone on from later; None where it is not in this process, or not much. The arrays
        may be views, which hold until the next commit."""

    def image_bytes(self) -> int | None:
        """The bytes of the image that there would be now."""

    def copied_image(self, most: int) -> Image | None:
        """The same, copied by another thread than that which commits; None, too, where it has more than `most` bytes or a
        commit comes meanwhile, which waits for a moment at most."""


class RoundsEngine(Engine, RemoteRows, Replaceable, Protocol):
    """The whole engine of a session."""


class PlainRounds:
    """The defaults of nearly all engines: they take rows from this process, take over nothing, keep no image, and do not know
    what a commit has touched."""

    program: Program

    @property
    def touched(self) -> Iterable[str]:
        return self.program.relations

    def journal(self) -> int | None:
        return None

    def take_journal(self) -> dict[str, Updates]:
        return {}

    @property
    def inherited(self) -> frozenset[str]:
        return frozenset()

    @property
    def reused_relations(self) -> frozenset[str]:
        return frozenset()

    def since(self, old: RoundsEngine, relation: str) -> Updates | None:
        return None

    def take_back(self, successor: RoundsEngine) -> None:
        return None

    @property
    def working(self) -> RoundsEngine | None:
        return cast("RoundsEngine", self)

    def resumed(self) -> RoundsEngine:
        return cast("RoundsEngine", self)

    def loaded(self, relation: str, engine: RoundsEngine, round: int) -> tuple[Updates, list[tuple[Any, int]]] | None:
        return None

    @property
    def pending(self) -> frozenset[str]:
        return frozenset()

    @property
    def elsewhere(self) -> bool:
        return False

    def fitting(self, relation: Relation, rows: Any) -> Any | None:
        return None

    def saves(self, folder: Path) -> bool:
        return False

    def save(self, relation: Relation, rows: Any, folder: Path) -> int:
        raise InternalError("rounds", f"the rows of {relation.name} are in this process")

    def saved(self, relation: Relation, files: Sequence[Path], without: Table | None = None) -> Any:
        raise InternalError("rounds", f"the rows of {relation.name} come from this process")

    def image(self) -> Image | None:
        return None

    def image_bytes(self) -> int | None:
        return None

    def copied_image(self, most: int) -> Image | None:
        return None


class EngineMaker(Protocol):
    """Makes the engines of one session, one after the other."""

    @property
    def elsewhere(self) -> bool:
        """Whether these engines keep their rows in other processes."""

    def __call__(
        self, program: Program, *, old: RoundsEngine | StartingPoint | None, memory: int | None, max_iterations: int | None
    ) -> RoundsEngine:
        """An engine for a program. `old` is what it goes on from: it is at the round of `old`, and shares its symbols and
        records, so that ids keep their meaning. It starts empty, but for what is `inherited`."""

    def resumed(
        self, program: Program, image: Image, *, old: StartingPoint, memory: int | None, max_iterations: int | None
    ) -> RoundsEngine | None:
        """An engine at the round of `old` that has everything an image has; None where engines keep no images. Raises
        IncompatibleImage where this one is of no use."""

    def in_one_thread(self) -> EngineMaker | None:
        """The same for engines that use one thread; None where they are in other processes."""

    def close(self) -> None:
        """Gives back what the engines share."""
