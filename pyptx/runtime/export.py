"""Writes a kernel to a directory: PTX, machine code, a launcher in C, and a manifest that says what is in it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pyptx import __version__
from pyptx.runtime.c_launcher import write_header, write_source
from pyptx.runtime.planning import Plan
from pyptx.toolchain import Cubin
from pyptx.toolchain.fatbin import combine_images

FORMAT = 1
"""The version of the manifest's layout."""


def write_files(plan: Plan, text: str, cubins: Sequence[Cubin], folder: Path) -> dict[str, Any]:
    """Write a plan's kernel with its machine code, and return the manifest."""
    name = plan.definition.name
    files: dict[str, bytes] = {f"{name}.ptx": text.encode()}
    files |= {f"{name}.{cubin.target}.cubin": cubin.data for cubin in cubins}
    image = combine_images(text, plan.module.target.targets[0], cubins)
    files[f"{name}.fatbin"] = image
    files[f"{name}.h"] = write_header(plan).encode()
    files[f"{name}.c"] = write_source(plan, image).encode()
    manifest = describe(plan, cubins, files)
    folder.mkdir(parents=True, exist_ok=True)
    for file, data in files.items():
        (folder / file).write_bytes(data)
    # Last, so that a directory with a manifest is complete.
    (folder / f"{name}.json").write_text(json.dumps(manifest, indent=1) + "\n", "utf-8")
    return manifest


def describe(plan: Plan, cubins: Sequence[Cubin], files: Mapping[str, bytes]) -> dict[str, Any]:
    """Return the manifest."""
    definition = plan.definition
    tensors = [
        {
            "name": name, "type": tile.dtype.name, "shape": list(tile.resolve_shape(plan.dims)),
            "is_output": index >= len(definition.tensors) - len(plan.outputs),
        }
        for index, (name, tile) in enumerate(definition.tensors)
    ]  # fmt: skip
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
