"""Loads exported kernels: a manifest and PTX become an object that is called like the kernel that was exported."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn, cast

from pyptx.diagnostics import PtxError, hide_frames
from pyptx.dsl.finish import Traced
from pyptx.dsl.run import Definition
from pyptx.ir import Module
from pyptx.isa.targets import FIRST_PTX
from pyptx.parser import parse
from pyptx.runtime import calls
from pyptx.runtime.export import FORMAT, read_tile
from pyptx.runtime.rules import EXPORT
from pyptx.specs import Tile

_OPTIONS = ("out", "args", "stream", "cooperative", "programmatic")


class ExportedKernel:
    """A kernel from a directory, for the shapes that it was exported for. `manifest` says what they are."""

    def __init__(self, manifest: Mapping[str, Any], definition: Definition, kernel_trace: Traced) -> None:
        self.manifest, self.definition, self._kernel_trace = manifest, definition, kernel_trace
        tiles = [tile for _, tile in definition.tensors]
        outputs = sum(bool(tensor["is_output"]) for tensor in manifest["tensors"])
        self.in_specs: tuple[Tile, ...] = tuple(tiles[: len(tiles) - outputs])
        self.out_specs: tuple[Tile, ...] = tuple(tiles[len(tiles) - outputs :])
        self.grid: tuple[int, ...] = tuple(manifest["grid"])
        self.template_params: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The name of the entry in PTX."""
        return self.definition.name

    @property
    def shape_variables(self) -> tuple[str, ...]:
        """No dimension is variable."""
        return ()

    def trace(self, **kwargs: Any) -> tuple[Module, Traced]:
        """Return the module."""
        self.check_arguments(**kwargs)
        return self._kernel_trace.module, self._kernel_trace

    def check_arguments(self, **kwargs: Any) -> None:
        """Refuse keywords: they were fixed by the export."""
        if kwargs:
            text = f"`{self.name}` was exported with its shape and template parameters; found {', '.join(kwargs)}"
            raise PtxError([EXPORT.report(None, text, help="omit them")])

    @hide_frames
    def __call__(
        self,
        *inputs: Any,
        out: Any = None,
        args: Any = None,
        stream: Any = None,
        cooperative: bool = False,
        programmatic: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Run the kernel on arrays, like the kernel that was exported."""
        bound = calls.bind(self, inputs, out, grid=None, positional=args, keywords=kwargs, options=_OPTIONS)
        return calls.execute(bound, stream, cooperative=cooperative, programmatic=programmatic, depth=3)[1]

    def __repr__(self) -> str:
        return f"<exported kernel {self.name} for {self.definition.arch}>"


@hide_frames
def load_kernel(directory: str | Path, name: str | None = None) -> ExportedKernel:
    """Return an exported kernel from a directory: the only one, or that of a name. PtxError if there is none, or if a
    file is not the one that was exported."""
    folder = Path(directory)
    path = _find_manifest(folder, name)
    try:
        manifest: Any = json.loads(path.read_text("utf-8"))
        return _load(folder, cast("dict[str, Any]", manifest))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as why:
        _fail(f"{path} is not the manifest of an exported kernel: {type(why).__name__}: {why}")
    except OSError as why:
        _fail(f"{path} cannot be read: {why.strerror}")


def _find_manifest(folder: Path, name: str | None) -> Path:
    if not folder.is_dir():
        _fail(f"there is no directory {folder}")
    names = sorted(path.stem for path in folder.glob("*.json"))
    if name is None and len(names) == 1:
        return folder / f"{names[0]}.json"
    if name is None or name not in names:
        _fail(
            f"expected {'one manifest' if name is None else f'the manifest {name}.json'} in {folder}, "
            f"found {', '.join(f'{stem}.json' for stem in names) or 'none'}",
            "pass the name of the kernel" if names else "Kernel.export and `pyptx compile` write one",
        )
    return folder / f"{name}.json"


def _load(folder: Path, manifest: dict[str, Any]) -> ExportedKernel:
    name, digests = str(manifest["kernel"]), manifest["sha256"]
    if manifest["format"] != FORMAT:
        _fail(f"`{name}` was exported in format {manifest['format']}, this version reads format {FORMAT}")
    text = _read_file(folder, f"{name}.ptx", digests).decode("utf-8")
    image = _read_file(folder, f"{name}.fatbin", digests)
    target = manifest["target"]
    if target not in FIRST_PTX:
        raise ValueError(f"target {target}")
    tensors = tuple((str(tensor["name"]), read_tile(tensor)) for tensor in manifest["tensors"])
    raw_params = tuple((str(kind), str(own)) for kind, own in manifest["raw_parameters"])
    x, y, z = map(int, manifest["block"])
    a, b, c = map(int, manifest["cluster"])
    shared = int(manifest["dynamic_shared"])
    definition = Definition(
        _load, name, target, None, tensors, raw_params, (x, y, z), (a, b, c), shared, None, directives=()
    )
    maps = tuple(manifest["parameters"][len(tensors) + len(raw_params) :])
    return ExportedKernel(manifest, definition, Traced(parse(text), shared, maps, (), image=image))


def _read_file(folder: Path, name: str, digests: Mapping[str, str]) -> bytes:
    """Return the contents of a file that was exported."""
    path = folder / name
    try:
        data = path.read_bytes()
    except OSError as why:
        _fail(f"{path} cannot be read: {why.strerror}")
    if hashlib.sha256(data).hexdigest() != digests[name]:
        _fail(f"{path} is not the file that was exported: its digest differs", "export the kernel again")
    return data


def _fail(text: str, help: str = "") -> NoReturn:
    raise PtxError([EXPORT.report(None, text, help=help or None)]) from None
