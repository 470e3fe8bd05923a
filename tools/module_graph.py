"""Finds modules that hide a public name of their package, and modules that nothing uses.

Knows only import statements and names. Both functions take `{relative path: parsed file}` and yield `path:line: why`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

# Modules that a program finds by listing a directory, and files that tools find by name.
FOUND_BY_NAME = re.compile(
    r"(^|/)(__init__|__main__|conftest|test_\w+)\.py$|^pyptx/isa/table/|^tools/(\w+/)?audit_\w+\.py$|^benchmarks/\w+\.py$"
    r"|^examples/(\w+/\d\w+|bugs/\w+)\.py$"
)
SPEAKS_OF_FILES = (".py", ".md", ".toml", ".sh", "Makefile", "Dockerfile", "manifest.json")


def shadowing(trees: dict[str, ast.Module]) -> Iterator[str]:
    """Importing `pkg/name.py` would replace the public object `pkg.name`."""
    for path, tree in trees.items():
        if not path.endswith("/__init__.py"):
            continue
        package = path.removesuffix("__init__.py")
        children = {
            neighbor.removeprefix(package).split("/")[0].removesuffix(".py")
            for neighbor in trees
            if neighbor != path and neighbor.startswith(package)
        }
        for name in sorted(_public_names(tree, package.replace("/", ".").rstrip(".")) & children):
            yield f"{path}:1: the public name {name!r} is also a module of this package"


def _public_names(tree: ast.Module, package: str) -> set[str]:
    names: set[str] = set()
    modules: set[str] = set()
    guards = [node for block in tree.body if isinstance(block, ast.If) for node in block.body]
    for node in (*tree.body, *guards):
        if isinstance(node, ast.ImportFrom):
            is_package = node.module == package or (node.level == 1 and not node.module)
            (modules if is_package else names).update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if isinstance(target, ast.Name)}
            if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
                names |= {
                    c.value for c in ast.walk(node.value) if isinstance(c, ast.Constant) and isinstance(c.value, str)
                }
    # A name imported from the package itself is the module, which hides nothing.
    return names - modules


def dead(files: dict[str, str], trees: dict[str, ast.Module]) -> Iterator[str]:
    """A Python file must be imported, or named by its path, its dotted name, or `f"{package}.{name}"`, somewhere else.
    The ends of those will do: scripts put their own folder on the path."""
    imports = {path: _imports(path, tree) for path, tree in trees.items()}
    prose = {path: text for path, text in files.items() if path.endswith(SPEAKS_OF_FILES)}
    for path in trees:
        module_name = path.removesuffix(".py").replace("/", ".")
        if FOUND_BY_NAME.search(path):
            continue
        parts = module_name.split(".")
        ends = {".".join(parts[start:]) for start in range(len(parts))}
        if any(ends & names for user, names in imports.items() if user != path):
            continue  # decided without reading any text, which takes long
        spellings = [f"{e}\\b|{e.replace('.', '/')}\\.py|{e.rpartition('.')[0]}\\.\\{{" for e in ends if "." in e]
        mention = re.compile(rf"(?<!\w)({'|'.join(spellings)})") if spellings else re.compile(rf"\b{re.escape(path)}\b")
        # Searching for a fixed string first is much faster than for the expression.
        stem, package = parts[-1], f"{parts[-2] if len(parts) > 1 else ''}.{{"
        texts = (text for user, text in prose.items() if user != path and (stem in text or package in text))
        if not any(mention.search(text) for text in texts):
            yield f"{path}:1: nothing imports or names this file"


def _imports(path: str, tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            parents = path.split("/")[: -node.level] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return names
