"""Counts the corpus: `python -m tools.corpus.stats [--assemble]`.

Files, kernels, algorithms, opcodes, and kernels that are equal after renaming. Reads text without the parser.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

from tools.corpus.manifest import File, load, problems, producers

SPECIAL = re.compile(
    r"%(tid|ntid|ctaid|nctaid|laneid|warpid|nwarpid|smid|nsmid|gridid|clock|pm\d|envreg|lanemask|cluster|is_explicit_cluster"
    r"|global|dynamic|total|aggr|reserved|current)"
)
WORD = re.compile(r"[%$A-Za-z_][\w$]*")


def main() -> None:
    """Print the counts; exit status 1 if a manifest is wrong, a kernel is duplicated, or ptxas rejects a file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--assemble", action="store_true", help="assemble every file with ptxas")
    options = parser.parse_args()
    faults = [fault for directory in producers() for fault in problems(load(directory), directory)]
    faults += [" = ".join(names) for names in duplicates()]
    if options.assemble:
        faults += [fault for path, item in files() if (fault := refusal(path, item))]
    print("\n".join([*counts(), *faults]))
    raise SystemExit(bool(faults))


def files() -> Iterator[tuple[Path, File]]:
    """Yield every file of the corpus with its record."""
    for directory in producers():
        for item in load(directory).files:
            yield directory / item.path, item


def counts() -> Iterator[str]:
    """Yield one line per measure, then one per producer."""
    items = list(files())
    entries = [entry for _, item in items for entry in item.entries]
    texts = [path.read_text(encoding="latin-1") for path, _ in items]
    yield f"files       {len(items)}"
    yield f"bytes       {sum(len(text) for text in texts)}"
    runnable = sum(entry.run is not None for entry in entries)
    yield f"kernels     {len(entries)}, {runnable} of them with a launch and a reference"
    yield f"algorithms  {len({entry.algorithm for entry in entries})}"
    yield f"opcodes     {len({opcode for text in texts for opcode in opcodes(text)})}"
    yield f"targets     {' '.join(sorted({item.target for _, item in items}))}"
    yield f"ptx         {' '.join(sorted({item.ptx for _, item in items}))}"
    for name, count in sorted(Counter(path.parent.name for path, _ in items).items()):
        versions = sorted({item.version for path, item in items if path.parent.name == name})
        kernels = sum(len(item.entries) for path, item in items if path.parent.name == name)
        size = sum(path.stat().st_size for path, _ in items if path.parent.name == name)
        yield f"  {name:10} {count:4} files {kernels:4} kernels {size:8} bytes, {' '.join(versions)}"


def strip_text(text: str) -> str:
    """Return the text without comments, strings, trailing NUL and line information."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", " ", text.rstrip("\0"), flags=re.S)
    return re.sub(r'"[^"\n]*"|^\s*\.(loc|file)\s[^\n]*', " ", text, flags=re.M)


def statements(text: str) -> Iterator[tuple[str, str]]:
    """Yield the opcode with modifiers, and the operands, of every instruction."""
    for statement in re.split(r"[;{}]", re.sub(r"^\s*[\w$]+:", ";", strip_text(text), flags=re.M)):
        match = re.fullmatch(r"(?:@!?\s*[%\w$]+\s+)?([a-z]\w*(?:[.:]+\w+)*)(?:\s(.*))?", statement.strip(), re.S)
        if match is not None:
            yield match[1], match[2] or ""


def opcodes(text: str) -> set[str]:
    """Return the distinct opcodes with all modifiers."""
    return {opcode for opcode, _ in statements(text)}


def bodies(text: str) -> Iterator[tuple[str, str]]:
    """Yield the name and body of every entry."""
    text = strip_text(text)
    for match in re.finditer(r"\.entry\s+([\w$.]+)", text):
        start = text.find("{", match.end())
        depth, end = 1, start + 1
        for brace in re.finditer(r"[{}]", text[end:]):
            depth += 1 if brace[0] == "{" else -1
            if depth == 0:
                yield match[1], text[start : end + brace.end()]
                break


def fingerprint(body: str) -> str:
    """Return the instructions with registers, labels and symbols renamed in order of first use."""
    names: dict[str, str] = {}

    def rename(match: re.Match[str]) -> str:
        word = match[0]
        return word if SPECIAL.match(word) else names.setdefault(word, f"n{len(names)}")

    lines = [f"{opcode} {WORD.sub(rename, ' '.join(operands.split()))}" for opcode, operands in statements(body)]
    return "\n".join(lines)


def duplicates() -> list[list[str]]:
    """Return groups of entries that are equal after renaming."""
    groups: dict[str, list[str]] = defaultdict(list)
    for path, _ in files():
        for name, body in bodies(path.read_text(encoding="latin-1")):
            groups[fingerprint(body)].append(f"{path.parent.name}/{path.name}:{name}")
    return [names for names in groups.values() if len(names) > 1]


def ptxas() -> Path | None:
    """Return the wheel's ptxas, or the one on PATH."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or []) if spec else []
    wheels = [path for root in roots for path in sorted(Path(root).glob("cu*/bin/ptxas"))]
    on_path = shutil.which("ptxas")
    return wheels[-1] if wheels else Path(on_path) if on_path else None


def refusal(path: Path, item: File) -> str | None:
    """Return the error of ptxas for a file on its own target, or None. Cut a trailing NUL, which ptxas rejects."""
    tool = ptxas()
    if tool is None:
        return "ptxas not found: pip install nvidia-cuda-nvcc"
    relocatable = not item.entries or any("rdc=true" in flag or "relocatable" in flag for flag in item.flags)
    with tempfile.TemporaryDirectory() as directory:
        copy = Path(directory, path.name)
        copy.write_bytes(path.read_bytes().rstrip(b"\0"))
        command = [str(tool), f"-arch={item.target}", *(["-c"] if relocatable else []), "-o", "/dev/null", str(copy)]
        result = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return (
        None if result.returncode == 0 else f"{path.parent.name}/{path.name}: {(result.stderr or result.stdout)[:300]}"
    )


if __name__ == "__main__":
    main()
