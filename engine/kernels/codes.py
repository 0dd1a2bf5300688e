"""Numbers that stand for something, in structs and instructions and as what kernels return. Members count from 0."""

from __future__ import annotations

from enum import IntEnum, auto


class Code(IntEnum):
    """What such numbers are. Kernels, which Numba compiles, compare words with the members, and store them as words."""

    @staticmethod
    def _generate_next_value_(name: str, start: int, count: int, last_values: list[int]) -> int:
        return count


class SetKind(Code):
    """How a relation knows its rows."""

    NONE = auto()
    BITS = auto()  # one bit per possible row
    PAGES = auto()  # the same in pages of PAGE_CODES bits that are made when first touched
    DENSE = auto()  # a table of row numbers (plus one) by dense code
    HASH = auto()  # the same by hash
    GRADUAL = auto()  # the same, of rows that are never taken out; it grows by instalments


class ArrangementKind(Code):
    SORTED = auto()
    GROWING = auto()


class KeyMap(Code):
    """How the groups of an arrangement are found by key."""

    DENSE = auto()  # by arithmetic
    HASH = auto()  # in a table


class Few(Code):
    """Whether few changes go through a path row by row."""

    NOT = auto()
    SHARED = auto()  # they do, and rows of a group share what is carried over
    APART = auto()  # rows of a group do not, as it is changed
    VALUE = auto()  # they do, and each contributes a carried value to the lattice's group by the path's key
    ALONE = auto()  # changes do, without looking any rows up


class Status(Code):
    """What a run returns."""

    DONE = auto()
    YIELD = auto()  # its budget of work is used up
    EXTERNAL = auto()  # Python must evaluate an instruction on the block
    FAILED = auto()  # with `ctl.error` set
    BULK = auto()  # what comes next is for several workers: an iteration, a path, or over rounds what `Share` says
    CALL = auto()  # Python has a move of a cycle to make
    WAKE = auto()  # a thread is to be sent to each desk that nobody looks at


class Move(Code):
    """What a move of a cycle does."""

    RUN = auto()  # runs paths
    EMPTY = auto()  # takes all rows out of a relation and its arrangements
    ARRANGE = auto()  # its arrangements take up the rows that it has got
    UNLESS = auto()  # goes on so many moves further where the relation is empty, or where there is none
    COUNT = auto()  # the relation has one row, the number of the iteration
    BEGIN = auto()  # begins an iteration, if there is anything to go on from
    CALL = auto()  # is Python's


class Error(Code):
    NONE = auto()
    MEMORY = auto()
    DIVISION = auto()  # by zero
    ROWS = auto()  # too many in a relation
    ITERATIONS = auto()  # too many
    WEIGHT = auto()  # a negative value in a sum that is compared with a bound
    SUM = auto()  # such a sum beyond SUM_MOST


class RangeForm(Code):
    """What the values of a range are."""

    NUMBER = auto()
    UNSIGNED = auto()
    FLOAT = auto()


class ColumnCode(Code):
    """What an instruction on columns of words does; what it compares, or joins, is true as 1, else 0."""

    FILL = auto()  # all are one word
    ADD = auto()
    SUBTRACT = auto()
    MULTIPLY = auto()
    DIVIDE = auto()  # the floor; by 0 it is 0
    REMAINDER = auto()  # with the divisor's sign; by 0 it is 0
    EQUAL = auto()
    DIFFERENT = auto()
    LESS = auto()
    AT_MOST = auto()
    AND = auto()
    OR = auto()


class TextForm(Code):
    """What an argument of a function on texts is."""

    ID = auto()  # of a symbol
    NUMBER = auto()  # to be written as text, as are the others
    UNSIGNED = auto()
    FLOAT = auto()
    DATE = auto()
    TIMESTAMP = auto()


class Verdict(Code):
    """What is known of a symbol and a pattern."""

    UNKNOWN = auto()
    NO = auto()
    YES = auto()
    NEITHER = auto()  # the pattern is none


class Operation(Code):
    """What an instruction does; instructions.py has the operands. Those from INDEX on are of rounds, the last three their
    sinks. After `_AND` another sink of the same rows follows."""

    SCAN = auto()
    QUEUE = auto()
    UNIT = auto()
    JOIN = auto()
    EXTEND = auto()
    RANGE = auto()
    CALLED = auto()
    SWEEP = auto()
    SWEEP_RUNS = auto()
    RUNS = auto()
    NEXT = auto()
    GROUP = auto()
    HAS_GROUP = auto()
    CONTAINS = auto()
    FIND = auto()
    FETCH = auto()
    COMPARE = auto()
    ARITHMETIC = auto()
    MOVE = auto()
    UNPACK = auto()
    PACK = auto()
    EXTERNAL = auto()
    MASK = auto()
    INSERT = auto()
    APPEND = auto()
    MERGE = auto()
    MERGE_AND = auto()
    CHANGES = auto()
    ROWS_OF = auto()
    ENTRIES = auto()
    PROPOSE = auto()
    ONCE = auto()
    INDEX = auto()
    ROW = auto()
    PRESENT = auto()
    VALUE = auto()
    ANY = auto()
    DELAY = auto()
    DERIVE = auto()
    REDUCE = auto()
    REDUCE_AND = auto()


class Comparison(Code):
    """`_U` reads words as unsigned, `_F` as floats."""

    EQ = auto()
    NE = auto()
    LT = auto()
    LE = auto()
    LT_U = auto()
    LE_U = auto()
    EQ_F = auto()
    NE_F = auto()
    LT_F = auto()
    LE_F = auto()


class ScopePhase(Code):
    """What a recursive scope does next."""

    NEXT = auto()  # go to the next round in which an import changed
    ENTER = auto()  # run the paths that its changes seed
    BUCKETS = auto()  # go to the next iteration at which something was derived
    PROCESS = auto()  # make changes of that
    LOOP = auto()  # run the paths that these seed


class Shared(Code):
    """What several workers do together."""

    NONE = auto()
    PATH = auto()  # run a path over some of its changes
    HASH = auto()  # divide the rows of a collection,
    PLACE = auto()  # and place them in its slots anew
    CLAIM = auto()  # find the rows of what it has found, or claim them,
    NUMBER = auto()  # number and write those that have been claimed,
    ENTER = auto()  # and enter them
    ENDED = auto()  # nothing: all that a path has found is derived
    SUPPORTS = auto()  # add the derivations that a path has noted,
    SUPPORT_NOTES = auto()  # and list their rows in a bucket
    BUCKET = auto()  # find out which rows change at an iteration,
    BUCKET_NOTES = auto()  # and write down how
    ROUND = auto()  # settle the rows that a round has touched,
    ROUND_NOTES = auto()  # and write down which have changed
    SURVEY = auto()  # find out between which values rows lie that are loaded,
    DIVIDE = auto()  # divide them,
    FILL = auto()  # and write those of a base
    DIVIDE_INDEX = auto()  # divide rows for an index,
    COUNT_INDEX = auto()  # count those of its groups,
    FILL_INDEX = auto()  # and enter them
    INDEXED = auto()  # nothing: a collection's indexes have its rows
    DIVIDE_PAIRS = auto()  # divide pairs,
    ENTER_PAIRS = auto()  # and enter them
    CHANGE_PAIRS = auto()  # enter and remove pairs


class Divisible(Code):
    """Whether several workers may each go through a part of a path's changes."""

    NOT = auto()
    YES = auto()
    CLAIMED = auto()  # where they find rows together, too: it takes little to make them
    SUMMED = auto()  # where what it contributes is summed up by key


class Gathers(Code):
    """What a sink does with rows."""

    NOTHING = auto()  # they are derived
    SUPPORTS = auto()  # their derivations are noted, and added together
    ROWS = auto()  # they are noted, and derived by others
    VALUES = auto()  # so are their values, and nobody has looked for them
    SUMS = auto()  # a part sums up what they contribute, and looks for no groups


class TaskKind(Code):
    """What a task of a batch is."""

    PATH = auto()
    DISTINCT = auto()  # a collection's derived rows become changes
    REDUCE = auto()  # a reduction's contributions do
    LOOP = auto()  # a recursive scope runs, round by round


class ArrowValues(Code):
    """What is read of a column of Arrow's."""

    NOTHING = auto()
    WORDS = auto()  # integers of 64 bits,
    NUMBERS = auto()  # of 32 bits,
    UNSIGNED = auto()  # and without a sign
    FLOATS = auto()  # doubles, as words that compare as they do
    TEXTS = auto()  # their numbers,
    SYMBOLS = auto()  # or those that a table of symbols has for them
    BITS = auto()  # doubles, as they are but for one NaN


class ArrowStatus(Code):
    """How reading columns of Arrow's has gone."""

    READ = auto()
    NEW_TEXTS = auto()  # there are some that have no numbers yet, or cannot have any
    NULLS = auto()  # there may be some
    DAMAGED = auto()  # texts do not follow each other
