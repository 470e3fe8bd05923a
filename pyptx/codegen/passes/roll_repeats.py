"""Writes repeated statements as a Python `for` over a range or a table.

Contract: returns steps that emit the same statements in the same order. Before a loop is accepted, `unrolled` expands
its iterations, which must equal the lines that it replaces, except for the names of variables local to one iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pyptx.codegen.names import Names
from pyptx.codegen.passes.flat_blocks import assemble, flatten_block, is_balanced
from pyptx.codegen.passes.repeats import compute_shape, fill, list_leaves
from pyptx.codegen.passes.unrolling import unroll
from pyptx.codegen.plan import (
    Binary,
    Block,
    Comprehension,
    Expr,
    Line,
    Literal,
    Name,
    Repeat,
    Step,
    Tuple,
    call,
)
from pyptx.codegen.printer import format_expression

LONGEST = 24
"""Maximum number of statements per iteration."""
LEAST = 3
"""Minimum number of iterations of a loop."""
SHORTEST = 4
"""Minimum number of statements that a loop must replace."""
COLUMNS = 4
"""Maximum number of varying values per iteration, apart from arithmetic progressions."""
WIDEST = 480
"""Maximum length of a table in characters."""
MOST = 256
"""Maximum number of iterations of a loop."""
TRIES = 6
"""Maximum number of iteration lengths tried at one position."""

Reads = Callable[[str], "int | None"]
"""Tells how often a variable assigned once is read in the function; None for any other."""


@dataclass(frozen=True, slots=True)
class Loops:
    """Data for the loops of a function: how often a variable is read, and the loop variables. These are local to one
    loop, so that every loop can use the same ones."""

    reads: Reads
    counter: Name
    columns: tuple[Name, ...]
    inner: Loops | None = None
    """Data for nested loops."""


def create_loops(reads: Reads, names: Names) -> Loops:
    """Return the data for the loops of a function."""

    def create_names(counter: str, columns: str) -> tuple[Name, tuple[Name, ...]]:
        return Name(names.make_name(counter)), tuple([Name(names.make_name(word)) for word in columns])

    outer, inner = create_names("j", "xyzw"), create_names("k", "stuv")
    return Loops(reads, *outer, Loops(reads, *inner))


def roll_repeats(steps: Sequence[Step], loops: Loops) -> tuple[Step, ...]:
    """Return the steps with repeated ranges as loops, including those in nested steps."""
    out: list[Step] = []
    run: list[Line] = []
    for step in steps:
        if isinstance(step, Line) and step.emits and step.comment is None:
            run.append(step)
            continue
        plain = flatten_block(step)
        if plain is not None:
            run += plain
            continue
        out += _roll(run, loops)
        run = []
        if isinstance(step, Block):
            step = step.replace(body=roll_repeats(step.body, loops))
        out.append(step)
    return tuple(assemble((*out, *_roll(run, loops))))


def _roll(run: Sequence[Line], loops: Loops) -> Iterator[Step]:
    """Yield the steps of a range of lines."""
    numbers: dict[object, int] = {}
    shapes = [numbers.setdefault(_compute_shape(line), len(numbers)) for line in run]
    stretch, periods = _Stretch(run, loops), _Periods(shapes)
    position = 0
    while position < len(run):
        loop: tuple[int, Step] | None = None
        for length, count in periods.list_periods(position):
            fewest = max(LEAST, -(-SHORTEST // length))
            if count < fewest or stretch.build_loop(position, length, fewest) is None:
                continue
            count = stretch.limit_iterations(position, length, count, fewest)
            while loop is None and count >= fewest:
                loop = stretch.build_loop(position, length, count)
                count //= 2
            if loop is not None:
                break
        if loop is None:
            yield run[position]
            position += 1
        else:
            yield loop[1]
            position += loop[0]


def _compute_shape(line: Line) -> object:
    return (None if line.target is None else compute_shape(line.target)), line.operator, compute_shape(line.value)


class _Periods:
    """Finds where a sequence of patterns repeats. Positions are queried from left to right, so each pattern is compared
    once per iteration length."""

    def __init__(self, shapes: Sequence[int]) -> None:
        self.shapes = shapes
        self.ends = [0] * (LONGEST + 1)
        """The end of the last range compared, for each iteration length."""

    def list_periods(self, position: int) -> list[tuple[int, int]]:
        """Return possible iteration lengths and counts at a position, the most statements first."""
        shapes, periods = self.shapes, list[tuple[int, int]]()
        for length in range(1, min(LONGEST, (len(shapes) - position) // LEAST) + 1):
            end = max(self.ends[length], position + length)
            while end < len(shapes) and shapes[end] == shapes[end - length]:
                end += 1
            self.ends[length] = end
            count = min((end - position) // length, MOST)
            if count >= LEAST:
                periods.append((length, count))
        return sorted(periods, key=lambda item: (-item[0] * item[1], item[0]))[:TRIES]


@dataclass(frozen=True, slots=True)
class _Column:
    """A value that varies between iterations: its positions, and its values."""

    places: tuple[int, ...]
    values: tuple[Expr, ...]

    @property
    def progression(self) -> tuple[int, int] | None:
        """The first number and the step, if the values are an arithmetic progression."""
        numbers: list[int] = []
        for value in self.values:
            if not isinstance(value, Literal) or isinstance(value.value, bool) or not isinstance(value.value, int):
                return None
            numbers.append(value.value)
        by = numbers[1] - numbers[0]
        regular = all(b - a == by for a, b in pairwise(numbers))
        return (numbers[0], by) if regular else None


Key = tuple[str, object]
"""Identifies a leaf, and compares faster than it."""
_UNUSED: Key = ("name", "_")
"""The target of a loop whose iterations are identical. Lines that use this name themselves cannot be in such a loop."""


class _Stretch:
    """Consecutive lines, with the keys of their leaves, and where their variables are read."""

    def __init__(self, run: Sequence[Line], loops: Loops) -> None:
        self.run, self.loops = run, loops
        self.exprs: dict[Key, Expr] = {}
        self.keys: list[list[Key]] = []
        self.widths = [len(format_expression(line.value)) for line in run]
        self.sizes: list[int] = []
        """Number of leaves of the targets."""
        self.read: dict[str, tuple[int, int]] = {}
        """How often a variable is read in the range, and by which line last."""
        for index, line in enumerate(run):
            before = [] if line.target is None else list_leaves(line.target)
            after = list_leaves(line.value)
            self.keys.append([self._register_key(leaf) for leaf in (*before, *after)])
            self.sizes.append(len(before))
            for leaf in after:
                if isinstance(leaf, Name):
                    self.read[leaf.id] = self.read.get(leaf.id, (0, 0))[0] + 1, index

    def _register_key(self, leaf: Expr) -> Key:
        key: Key = ("name", leaf.id) if isinstance(leaf, Name) else _compute_literal_key(leaf)
        self.exprs.setdefault(key, leaf)
        return key

    def build_loop(self, position: int, length: int, count: int) -> tuple[int, Step] | None:
        """Return a loop of this many iterations, with the number of lines it replaces; None if they differ too much."""
        if not is_balanced(self.run[position : position + length]):
            return None
        rounds = [range(position + n * length, position + (n + 1) * length) for n in range(count)]
        local_names = self.find_locals(rounds)
        if local_names is None:
            return self.build_comprehension(rounds) if length == 1 else None
        holes = [[key for index in round_ for key in self.keys[index]] for round_ in rounds]
        columns = self.build_columns(holes, local_names)
        if columns is None or not self.is_worthwhile(columns, rounds):
            return None
        if not columns and _UNUSED in holes[0]:
            return None
        target_names = {
            format_expression(line.target)
            for line in self.run[position : position + length * count]
            if line.target is not None
        }
        if any(_find_names(value) & target_names for column in columns for value in column.values):
            return None
        target, values, by_place = _build_header(columns, count, self.loops)
        body: list[Line] = []
        start = 0
        for index in rounds[0]:
            body.append(_fill_line(self.run[index], by_place, start))
            start += len(self.keys[index])
        lines = self.run[position : position + length * count]
        repeat = Repeat(target, values, tuple(body), tuple([item for line in lines for item in line.emits]))
        if unroll(repeat, local_names) != [_strip_emits(line) for line in lines]:
            return None
        if self.loops.inner is not None:
            repeat = repeat.replace(body=tuple(_roll(body, self.loops.inner)))
        return len(lines), repeat

    def limit_iterations(self, position: int, length: int, count: int, fewest: int) -> int:
        """Return this many iterations, halved until the table of irregular values in the first ones is not too wide. A
        table too wide there is too wide for longer loops, which need not be tried."""
        rounds = [range(position + n * length, position + (n + 1) * length) for n in range(fewest)]
        local_names = self.find_locals(rounds)
        first = 0 if local_names is not None else self.sizes[position]
        places = [(offset, leaf) for offset in range(length) for leaf in range(len(self.keys[position + offset]))][
            first:
        ]
        holes = [[self.keys[round_[offset]][leaf] for offset, leaf in places] for round_ in rounds]
        columns = self.build_columns(holes, local_names or [{} for _ in rounds]) or []
        tables = [places[column.places[0]] for column in columns if column.progression is None]
        size, fitting = 0, 0
        while tables and fitting < count:
            keys = [self.keys[position + fitting * length + offset][leaf] for offset, leaf in tables]
            size += sum([len(format_expression(self.exprs[key])) + 2 for key in keys])
            if size > WIDEST:
                while count > fitting:
                    count //= 2
                break
            fitting += 1
        return count

    def find_locals(self, rounds: Sequence[range]) -> list[dict[str, str]] | None:
        """Return, for each iteration, the names of its local variables in the first one; None if one is read outside of
        its iteration."""
        local_names: list[dict[str, str]] = [{} for _ in rounds]
        for offset in range(len(rounds[0])):
            first = self.run[rounds[0][offset]]
            target = first.target
            if not isinstance(target, Name) or first.operator or self.loops.reads(target.id) is None:
                if isinstance(target, Tuple):
                    return None
                continue
            for round_, names in zip(rounds, local_names, strict=True):
                local = self.run[round_[offset]].target
                assert isinstance(local, Name)
                count, last = self.read.get(local.id, (0, 0))
                if count != self.loops.reads(local.id) or last >= round_.stop:
                    return None
                names[local.id] = target.id
        return local_names

    def build_columns(
        self, holes: Sequence[Sequence[Key]], local_names: Sequence[dict[str, str]]
    ) -> list[_Column] | None:
        """Return the varying values; positions with the same values are merged."""
        groups: dict[tuple[Key, ...], list[int]] = {}
        for place, first in enumerate(holes[0]):
            if first[0] == "name":
                values = tuple(
                    [_rename(round_[place], names) for round_, names in zip(holes, local_names, strict=True)]
                )
            else:
                values = tuple([round_[place] for round_ in holes])
            if values.count(values[0]) != len(values):
                if first[0].startswith(("bool", "NoneType")):
                    return None
                groups.setdefault(values, []).append(place)
        return [_Column(tuple(places), tuple([self.exprs[key] for key in keys])) for keys, places in groups.items()]

    def is_worthwhile(self, columns: Sequence[_Column], rounds: Sequence[range]) -> bool:
        """Tell whether a loop is shorter than its iterations and no harder to read."""
        tables = [column for column in columns if column.progression is None]
        if len(tables) > COLUMNS:
            return False
        size = sum([len(format_expression(value)) + 2 for column in tables for value in column.values])
        return size <= WIDEST and 2 * size < sum([self.widths[index] for round_ in rounds for index in round_])

    def build_comprehension(self, rounds: Sequence[range]) -> tuple[int, Step] | None:
        """Return one line that assigns several values: `a, b, c = [f(x) for x in (…)]`."""
        lines = [self.run[round_[0]] for round_ in rounds]
        targets = [line.target for line in lines if isinstance(line.target, Name) and not line.operator]
        if len(targets) < len(lines):
            return None
        holes = [self.keys[round_[0]][self.sizes[round_[0]] :] for round_ in rounds]
        columns = self.build_columns(holes, [{} for _ in lines])
        if not columns or not self.is_worthwhile(columns, rounds):
            return None
        target_names = {format_expression(target) for target in targets}
        if any(_find_names(value) & target_names for column in columns for value in column.values):
            return None
        target, values, by_place = _build_header(columns, len(lines), self.loops)
        body = Line(fill(lines[0].value, by_place))
        emits = tuple([item for line in lines for item in line.emits])
        if unroll(Repeat(target, values, (body,)), [{} for _ in lines]) != [Line(line.value) for line in lines]:
            return None
        return len(lines), Line(Comprehension(body.value, target, values), emits, Tuple(tuple(targets)))


def _fill_line(line: Line, by_place: dict[int, Expr], start: int) -> Line:
    target = None if line.target is None else fill(line.target, by_place, start)
    start += 0 if line.target is None else len(list_leaves(line.target))
    return line.replace(value=fill(line.value, by_place, start), target=target, emits=())


def _rename(key: Key, names: dict[str, str]) -> Key:
    new = names.get(str(key[1])) if names else None
    return key if new is None else ("name", new)


def _compute_literal_key(leaf: Expr) -> Key:
    assert isinstance(leaf, Literal)
    # 1, True and 1.0 are equal dict keys, and so are 0.0 and -0.0.
    return f"{type(leaf.value).__name__}{leaf.hex}", repr(leaf.value) if isinstance(leaf.value, float) else leaf.value


def _build_header(columns: Sequence[_Column], count: int, loops: Loops) -> tuple[Expr, Expr, dict[int, Expr]]:
    """Return the target and the values of the loop, and the expression for each varying position."""
    tables = [column for column in columns if column.progression is None]
    steps = [(column, column.progression) for column in columns if column.progression is not None]
    by_place: dict[int, Expr] = {}
    if not columns:
        return Name("_"), call(Name("range"), Literal(count)), by_place
    variables = loops.columns[: len(tables)]
    for column, variable in zip(tables, variables, strict=True):
        by_place |= dict.fromkeys(column.places, variable)
    rows: list[Expr] = []
    for index in range(count):
        row = tuple([column.values[index] for column in tables])
        rows.append(row[0] if len(row) == 1 else Tuple(row))
    table = Tuple(tuple(rows))
    if not steps:
        return (variables[0] if len(variables) == 1 else Tuple(variables)), table, by_place
    counter = loops.counter
    alone = {step for _, step in steps}
    if len(alone) == 1 and not tables:
        first, by = steps[0][1]
        for column, _ in steps:
            by_place |= dict.fromkeys(column.places, counter)
        bounds = [Literal(first), Literal(first + by * count), Literal(by)]
        arguments = bounds[1:2] if first == 0 and by == 1 else bounds[:2] if by == 1 else bounds
        return counter, call(Name("range"), *arguments), by_place
    for column, (first, by) in steps:
        by_place |= dict.fromkeys(column.places, _build_affine(counter, first, by))
    if not tables:
        return counter, call(Name("range"), Literal(count)), by_place
    inner = variables[0] if len(variables) == 1 else Tuple(variables)
    return Tuple((counter, inner)), call(Name("enumerate"), table), by_place


def _build_affine(counter: Expr, first: int, by: int) -> Expr:
    product = counter if by == 1 else Binary("*", Literal(by), counter)
    return product if first == 0 else Binary("+", product, Literal(first))


def _find_names(value: Expr) -> set[str]:
    return {format_expression(value)} if isinstance(value, Name) else set()


def _strip_emits(line: Line) -> Line:
    return line.replace(emits=())
