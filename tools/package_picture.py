"""Draws which packages import which, as Mermaid charts in ARCHITECTURE.md. The charts show the imports themselves.

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
        for target in graph.find_modules_directly_imported_by(module):
            child = target.removeprefix(f"{parent}.").partition(".")[0]
            if target.startswith(f"{parent}.") and child != importer:
                targets.add(child)
    return {name: targets for name, targets in imports.items() if not name.startswith("__")}


def chart(imports: Mapping[str, set[str]]) -> str:
    """Return a Mermaid chart of the arrows that do not follow from others."""
    reach = {name: _reach(imports, name) for name in imports}
    lines = ["```mermaid", "graph TD"]
    for name, targets in sorted(imports.items()):
        direct = {target for target in targets if not any(target in reach[source] for source in targets - {target})}
        lines += [f"  {name} --> {target}" for target in sorted(direct)] or [f"  {name}"]
    return "\n".join([*lines, "```"]) + "\n"


def _reach(imports: Mapping[str, set[str]], start: str) -> set[str]:
    """Return the packages that a package imports, directly or through others."""
    names: set[str] = set()
    waiting = [start]
    while waiting:
        for name in imports.get(waiting.pop(), set()) - names:
            names.add(name)
            waiting.append(name)
    return names
