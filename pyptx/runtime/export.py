"""Writes a kernel to a directory: PTX, machine code, a launcher in C, and a manifest that says what is in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyptx import __version__
from pyptx.emitter import emit
from pyptx.isa.limits import LARGEST_BLOCK, LARGEST_GRID, sm_limits
from pyptx.runtime import planning
from pyptx.runtime.c_launcher import write_header, write_source
from pyptx.runtime.planning import Plan
from pyptx.specs import Layout, Tile
from pyptx.toolchain import Cubin, resources
from pyptx.toolchain.fatbin import combine_images
from pyptx.types import from_name

FORMAT = 1
"""The version of the manifest's layout."""


def write_files(plan: Plan, text: str, cubins: Sequence[Cubin], folder: Path) -> dict[str, Any]:
    """Write a plan's kernel with its machine code, and return the manifest. `text` is its PTX with line information,
    for the image."""
    name = plan.definition.name
    files: dict[str, bytes] = {f"{name}.ptx": emit(plan.module).encode()}
    files |= {f"{name}.{cubin.target}.cubin": cubin.data for cubin in cubins}
    image = combine_images(text, plan.module.target.targets[0], cubins)
    files[f"{name}.fatbin"] = image
    files[f"{name}.h"] = write_header(plan).encode()
    files[f"{name}.c"] = write_source(plan, image).encode()
    manifest = describe(plan, cubins, files)
    folder.mkdir(parents=True, exist_ok=True)
    # An earlier one goes first and the new one comes last, so that a directory with a manifest is complete.
    path = folder / f"{name}.json"
    path.unlink(missing_ok=True)
    for file, data in files.items():
        (folder / file).write_bytes(data)
    path.write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    return manifest


def check_limits(plan: Plan, cubins: Sequence[Cubin]) -> None:
    """Raise PtxError if the launch exceeds what the devices of a target can run."""
    definition = plan.definition
    for cubin in cubins:
        limits, static = sm_limits(cubin.target), resources(cubin)[definition.name].shared
        largest = LARGEST_GRID, LARGEST_BLOCK, limits.threads_per_cta, limits.shared_per_cta
        planning.check_limits(plan, f"for {cubin.target}", *largest, static)


def describe(plan: Plan, cubins: Sequence[Cubin], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the manifest."""
    definition = plan.definition
    first_output = len(definition.tensors) - len(plan.outputs)
    tensors = [
        {"name": name, **_describe_tile(tile, plan.dims), "is_output": index >= first_output}
        for index, (name, tile) in enumerate(definition.tensors)
    ]
    return {
        "format": FORMAT, "producer": f"pyptx {__version__}", "assembler": sorted({cubin.producer for cubin in cubins}),
        "kernel": definition.name, "target": plan.module.target.targets[0],
        "cubins": {cubin.target: f"{definition.name}.{cubin.target}.cubin" for cubin in cubins},
        "shape_variables": dict(plan.dims), "grid": list(plan.grid), "block": list(definition.block),
        "cluster": list(definition.cluster), "dynamic_shared": plan.kernel_trace.dynamic_shared,
        "tensors": tensors, "raw_parameters": [list(item) for item in definition.raw_params],
        "parameters": [parameter.name for parameter in plan.find_entry().params],
        "sha256": {file: hashlib.sha256(data).hexdigest() for file, data in files.items()},
    }  # fmt: skip


def _describe_tile(tile: Tile, dims: Mapping[str, int]) -> dict[str, Any]:
    """Return a tile with numbers in place of names."""
    sizes = dict(dims)
    return {
        "type": tile.dtype.name, "shape": list(tile.resolve_shape(sizes)), "layout": tile.layout.value,
        "box": None if tile.tma_box is None else list(tile.resolve_box(sizes)), "map_rank": tile.tma_rank,
        "map_padding": tile.tma_padding,
    }  # fmt: skip


def read_tile(tensor: Mapping[str, Any]) -> Tile:
    """Return the tile of a tensor in a manifest. KeyError, TypeError or ValueError if there is none."""
    box = tensor["box"]
    return Tile(
        *map(int, tensor["shape"]), dtype=from_name(tensor["type"]), layout=Layout(tensor["layout"]),
        tma_box=None if box is None else tuple(map(int, box)), tma_rank=int(tensor["map_rank"]),
        tma_padding=bool(tensor["map_padding"]),
    )  # fmt: skip
