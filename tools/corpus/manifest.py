"""The schema of `tests/corpus/*/manifest.json`: typed values, reading, writing and validation.

FORMAT.md explains every field. Knows nothing about NumPy; `inputs.py` creates the arrays.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

CORPUS = Path(__file__).parents[2] / "tests" / "corpus"
FORMAT = 1

Init = str
Value = int | float
Dim3 = tuple[int, int, int]


@dataclass(frozen=True)
class Scalar:
    """A scalar argument."""

    name: str
    dtype: str
    value: Value
    kind: Literal["scalar"] = "scalar"


@dataclass(frozen=True)
class Array:
    """An array in global memory, passed as a 64-bit pointer unless `hidden`."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    init: Init = "zeros"
    parameters: Mapping[str, Any] | None = None
    hidden: bool = False
    kind: Literal["array"] = "array"


@dataclass(frozen=True)
class Field:
    """A scalar or a pointer at a byte offset of a by-value structure."""

    offset: int
    argument: Scalar | Array


@dataclass(frozen=True)
class Struct:
    """A structure passed by value."""

    name: str
    size: int
    fields: tuple[Field, ...]
    kind: Literal["struct"] = "struct"


@dataclass(frozen=True)
class TensorMap:
    """A 128-byte tensor map of an array argument, passed by value; dimensions run innermost first."""

    name: str
    array: str
    dtype: str
    dims: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str = "none"
    interleave: str = "none"
    kind: Literal["tensor_map"] = "tensor_map"


Argument = Scalar | Array | Struct | TensorMap


@dataclass(frozen=True)
class Output:
    """An argument compared after the launch."""

    argument: str
    rtol: float = 0.0
    atol: float = 0.0


@dataclass(frozen=True)
class Run:
    """A launch and its expected results."""

    grid: Dim3
    block: Dim3
    arguments: tuple[Argument, ...]
    outputs: tuple[Output, ...]
    reference: str
    cluster: Dim3 = (1, 1, 1)
    smem: int = 0
    seed: int = 0
    cooperative: bool = False


@dataclass(frozen=True)
class Entry:
    """One `.entry` of a file. `reason` says why it cannot run where `run` is None."""

    name: str
    algorithm: str
    run: Run | None = None
    reason: str | None = None


@dataclass(frozen=True)
class File:
    """One PTX file and its origin."""

    path: str
    version: str
    flags: tuple[str, ...]
    source: str
    target: str
    ptx: str
    sha256: str
    entries: tuple[Entry, ...]
    rewritten: str | None = None


@dataclass(frozen=True)
class Manifest:
    """One producer's directory."""

    producer: str
    recipe: str
    files: tuple[File, ...]


def read_declarations(text: bytes) -> tuple[str, str, list[str]]:
    """Return the target, the PTX version and the entry names that a PTX text declares."""
    version = re.search(rb"^\s*\.version\s+([\d.]+)", text, re.M)
    target = re.search(rb"^\s*\.target\s+(\w+)", text, re.M)
    if version is None or target is None:
        raise ValueError(".version or .target is missing")
    names = re.findall(rb"^(?:\.visible |\.weak )?\s*\.entry\s+([\w$.]+)", text, re.M)
    return target[1].decode(), version[1].decode(), [name.decode() for name in names]


def digest(data: bytes) -> str:
    """Return the hexadecimal SHA-256 of a file."""
    return hashlib.sha256(data).hexdigest()


def producers(root: Path = CORPUS) -> Iterator[Path]:
    """Return every producer's directory, in name order."""
    return (path.parent for path in sorted(root.glob("*/manifest.json")))


def load(directory: Path) -> Manifest:
    """Read the manifest of one producer's directory; ValueError or KeyError names what is malformed."""
    data = json.loads((directory / "manifest.json").read_text(encoding="utf-8"))
    if data["format"] != FORMAT:
        raise ValueError(f"{directory.name}: format {data['format']}, expected {FORMAT}")
    return Manifest(data["producer"], data["recipe"], tuple(_file(item) for item in data["files"]))


def save(manifest: Manifest, directory: Path) -> None:
    """Write a manifest deterministically, files in name order."""
    files = [_file_json(item) for item in sorted(manifest.files, key=lambda item: item.path)]
    data = {"format": FORMAT, "producer": manifest.producer, "recipe": manifest.recipe, "files": files}
    text = _pretty(data, "")
    (directory / "manifest.json").write_text(text + "\n", encoding="utf-8")


def problems(manifest: Manifest, directory: Path) -> list[str]:
    """Return the mismatches between a manifest and the files beside it; empty if it is valid."""
    mismatches: list[str] = []
    names = {item.path for item in manifest.files}
    mismatches += [f"{path.name}: not in the manifest" for path in directory.glob("*.ptx") if path.name not in names]
    for item in manifest.files:
        path = directory / item.path
        if not path.exists():
            mismatches.append(f"{item.path}: missing")
            continue
        mismatches += [f"{item.path}: {text}" for text in _file_problems(item, path.read_bytes())]
    return mismatches


def _file_problems(item: File, data: bytes) -> Iterator[str]:
    target, version, names = read_declarations(data)
    if digest(data) != item.sha256:
        yield "sha256 differs"
    if (target, version) != (item.target, item.ptx):
        yield f"declares {target} and {version}, manifest says {item.target} and {item.ptx}"
    if names != [entry.name for entry in item.entries]:
        yield f"entries are {names}, manifest says {[entry.name for entry in item.entries]}"
    for entry in item.entries:
        if not re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", entry.algorithm):
            yield f"{entry.name}: algorithm {entry.algorithm!r} is not a kebab-case noun"
        if (entry.run is None) == (entry.reason is None):
            yield f"{entry.name}: needs either a run or a reason"
        if entry.run is not None:
            yield from (f"{entry.name}: {text}" for text in _run_problems(entry.run))


def _run_problems(run: Run) -> Iterator[str]:
    arrays = {argument.name for argument in flat(run.arguments) if isinstance(argument, Array)}
    names = [argument.name for argument in flat(run.arguments)]
    if len(names) != len(set(names)):
        yield "two arguments with one name"
    if not run.outputs:
        yield "no output"
    for output in run.outputs:
        if output.argument not in arrays:
            yield f"output {output.argument!r} is not an array argument"
    for argument in run.arguments:
        if isinstance(argument, TensorMap) and argument.array not in arrays:
            yield f"tensor map {argument.name!r} of unknown array {argument.array!r}"


def flat(arguments: tuple[Argument, ...]) -> Iterator[Argument]:
    """Return the arguments, with the fields of structs in place of the structs."""
    for argument in arguments:
        if isinstance(argument, Struct):
            yield from (field.argument for field in argument.fields)
        else:
            yield argument


def _pretty(value: object, indent: str) -> str:
    line = json.dumps(value, ensure_ascii=False)
    if len(line) + len(indent) <= 180 or not isinstance(value, (dict, list)):
        return line
    inner = indent + " "
    if isinstance(value, dict):
        pairs = cast("dict[str, Any]", value).items()
        body = [f"{inner}{json.dumps(key)}: {_pretty(item, inner)}" for key, item in pairs]
        return "{\n" + ",\n".join(body) + "\n" + indent + "}"
    body = [inner + _pretty(item, inner) for item in cast("list[Any]", value)]
    return "[\n" + ",\n".join(body) + "\n" + indent + "]"


def _dim3(values: list[int]) -> Dim3:
    x, y, z = values
    return x, y, z


def _argument(data: dict[str, Any]) -> Argument:
    match data["kind"]:
        case "struct":
            fields = tuple(Field(f["offset"], cast("Scalar | Array", _argument(f["argument"]))) for f in data["fields"])
            return Struct(data["name"], data["size"], fields)
        case "tensor_map":
            shape = tuple(data["dims"]), tuple(data["box"])
            layout = data.get("swizzle", "none"), data.get("interleave", "none")
            return TensorMap(data["name"], data["array"], data["dtype"], *shape, *layout)
        case "scalar":
            return Scalar(data["name"], data["dtype"], data["value"])
        case "array":
            init = data.get("init", "zeros"), data.get("with"), data.get("hidden", False)
            return Array(data["name"], data["dtype"], tuple(data["shape"]), *init)
        case kind:
            raise ValueError(f"argument kind {kind!r}")


def _run(data: dict[str, Any]) -> Run:
    return Run(
        grid=_dim3(data["grid"]),
        block=_dim3(data["block"]),
        arguments=tuple(_argument(item) for item in data["arguments"]),
        outputs=tuple(Output(o["argument"], o.get("rtol", 0.0), o.get("atol", 0.0)) for o in data["outputs"]),
        reference=data["reference"],
        cluster=_dim3(data.get("cluster", [1, 1, 1])),
        smem=data.get("smem", 0),
        seed=data.get("seed", 0),
        cooperative=data.get("cooperative", False),
    )


def _entry(data: dict[str, Any]) -> Entry:
    run = data.get("run")
    return Entry(data["name"], data["algorithm"], _run(run) if run is not None else None, data.get("reason"))


def _file(data: dict[str, Any]) -> File:
    return File(
        path=data["path"],
        version=data["version"],
        flags=tuple(data["flags"]),
        source=data["source"],
        target=data["target"],
        ptx=data["ptx"],
        sha256=data["sha256"],
        entries=tuple(_entry(item) for item in data["entries"]),
        rewritten=data.get("rewritten"),
    )


def _argument_json(argument: Argument) -> dict[str, Any]:
    match argument:
        case Struct():
            fields = [{"offset": f.offset, "argument": _argument_json(f.argument)} for f in argument.fields]
            return {"name": argument.name, "kind": "struct", "size": argument.size, "fields": fields}
        case Array():
            data: dict[str, Any] = {"name": argument.name, "kind": "array", "dtype": argument.dtype}
            data |= {"shape": list(argument.shape), "init": argument.init}
            data |= {"with": dict(argument.parameters)} if argument.parameters else {}
            return data | ({"hidden": True} if argument.hidden else {})
        case Scalar():
            return {"name": argument.name, "kind": "scalar", "dtype": argument.dtype, "value": argument.value}
        case TensorMap():
            data = {"name": argument.name, "kind": "tensor_map", "array": argument.array, "dtype": argument.dtype}
            data |= {"dims": list(argument.dims), "box": list(argument.box)}
            return data | {"swizzle": argument.swizzle, "interleave": argument.interleave}


def _entry_json(entry: Entry) -> dict[str, Any]:
    data: dict[str, Any] = {"name": entry.name, "algorithm": entry.algorithm}
    run = entry.run
    if run is None:
        return data | {"run": None, "reason": entry.reason}
    launch: dict[str, Any] = {"grid": list(run.grid), "block": list(run.block), "cluster": list(run.cluster)}
    launch |= {"smem": run.smem, "seed": run.seed, "cooperative": run.cooperative}
    launch["arguments"] = [_argument_json(argument) for argument in run.arguments]
    launch["outputs"] = [{"argument": o.argument, "rtol": o.rtol, "atol": o.atol} for o in run.outputs]
    launch["reference"] = run.reference
    return data | {"run": launch, "reason": None}


def _file_json(item: File) -> dict[str, Any]:
    data: dict[str, Any] = {"path": item.path, "version": item.version, "flags": list(item.flags)}
    data |= {"source": item.source, "target": item.target, "ptx": item.ptx, "sha256": item.sha256}
    return data | {"rewritten": item.rewritten, "entries": [_entry_json(entry) for entry in item.entries]}
