"""Draws which packages import which, as Mermaid charts in ARCHITECTURE.md. The imports themselves are what is drawn.

An arrow that follows from others is left out: where `cli` imports `decorator` and that imports `dsl`, there is no arrow
from `cli` to `dsl`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from grimp import ImportGraph, build_graph

PAGE = "ARCHITECTURE.md"
_BLOCK = re.compile(r"(<!-- imports of (\S+), drawn by tools/package_picture\.py -->\n).*?(<!-- end -->)", re.DOTALL)


def architecture_page() -> str:
    """Return the page with its charts redrawn."""
    graph = build_graph("pyptx")
    page = (Path(__file__).parents[1] / PAGE).read_text("utf-8")
    return _BLOCK.sub(lambda block: block[1] + chart(package_imports(graph, block[2])) + block[3], page)


def package_imports(graph: ImportGraph, parent: str) -> dict[str, set[str]]:
    """Return which children of a package import which others, by their names."""
    imports: dict[str, set[str]] = {}
    for module in sorted(graph.find_descendants(parent)):
        importer = module.removeprefix(f"{parent}.").partition(".")[0]
        targets = imports.setdefault(importer, set())
        for imported in graph.find_modules_directly_imported_by(module):
            child = imported.removeprefix(f"{parent}.").partition(".")[0]
            if imported.startswith(f"{parent}.") and child != importer:
                targets.add(child)
    return {name: targets for name, targets in imports.items() if not name.startswith("__")}


def chart(imports: Mapping[str, set[str]]) -> str:
    """Return a Mermaid chart of the arrows that do not follow from others."""
    reached = {name: _reach(imports, name) for name in imports}
    lines = ["```mermaid", "graph TD"]
    for name, targets in sorted(imports.items()):
        direct = {one for one in targets if not any(one in reached[other] for other in targets - {one})}
        lines += [f"  {name} --> {one}" for one in sorted(direct)] or [f"  {name}"]
    return "\n".join([*lines, "```"]) + "\n"


def _reach(imports: Mapping[str, set[str]], start: str) -> set[str]:
    """Return what a package imports, directly or through others."""
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for name in imports.get(waiting.pop(), set()) - reached:
            reached.add(name)
            waiting.append(name)
    return reached
