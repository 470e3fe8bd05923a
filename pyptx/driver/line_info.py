"""The `.loc` of the PTX in a cubin, which the stored text lacks: each left an empty line, and the cubin's tables say
which lines of the source and of the PTX an address comes from."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from pyptx.toolchain.elf import Elf
from pyptx.toolchain.line_tables import Row, read_line_table

_SOURCE, _PTX = ".debug_line", ".nv_debug_line_sass"
_Place = tuple[str, int]
_NOWHERE: _Place = "", 0


def restore_lines(text: str, elf: Elf) -> str:
    """Return the text of a cubin with `.loc` in its empty lines, as far as they are known. The other lines keep their
    numbers."""
    try:
        sources = _join(read_line_table(elf, _PTX), read_line_table(elf, _SOURCE))
    except ValueError:
        return text
    if not sources:
        return text
    lines = text.split("\n")
    files: dict[str, int] = {}
    for gap, end in _list_gaps(lines):
        places = [sources[number + 1] for number in range(gap, end) if number + 1 in sources]
        if places:
            file, line = places[0]
            lines[gap] = f".loc {files.setdefault(file, len(files) + 1)} {line} 0"
        else:
            lines[gap] = ".loc 1 0 0"
    # The last line may end in a comment.
    return "\n".join([*lines, *(f'.file {number} "{file}"' for file, number in files.items()), ""])


def _join(ptx: Sequence[Row], source: Sequence[Row]) -> dict[int, _Place]:
    """Return the place in the source of each line of the PTX that has code."""
    starts: dict[str, list[tuple[int, _Place]]] = {}
    for row in source:
        starts.setdefault(row.function, []).append((row.address, (row.file, row.line)))
    for rows in starts.values():
        rows.sort(key=lambda row: row[0])
    places: dict[int, _Place] = {}
    for row in ptx:
        rows = starts.get(row.function, [])
        index = bisect_right(rows, row.address, key=lambda entry: entry[0]) - 1
        file, line = rows[index][1] if index >= 0 else _NOWHERE
        if row.line and line and not set('"\\') & set(file):
            places.setdefault(row.line, (file, line))
    return places


def _list_gaps(lines: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield the index of each empty line between two statements of a function, and that of the next one."""
    depth, gap, ends_statement = 0, -1, False
    for index, line in enumerate(lines):
        if line.lstrip().startswith(".section"):
            break
        if line.strip():
            depth += line.count("{") - line.count("}")
            ends_statement = line.rstrip().endswith((";", "{", "}", ":"))
        elif ends_statement:
            if gap >= 0:
                yield gap, index
            gap = index if depth else -1
    if gap >= 0:
        yield gap, len(lines)
