"""Bind images to the texture, sampler and surface variables of a module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyptx.ir import FieldOperand, LabelOperand, Module, VarDecl, evaluate
from pyptx.sim.images.objects import Sampler, Surface, Texture
from pyptx.sim.images.storage import Images
from pyptx.sim.program.variables import Variables
from pyptx.sim.rules import faults

_KINDS: dict[str, type] = {".texref": Texture, ".samplerref": Sampler, ".surfref": Surface}


def bind_variables(module: Module, variables: Variables, images_by_name: Mapping[str, Any], images: Images) -> None:
    """Bind images to variables by name. A sampler variable may get its properties from its initializer."""
    declarations = {
        item.name: statement
        for statement in module.directives
        if isinstance(statement, VarDecl) and statement.type.ptx in _KINDS
        for item in statement.declarators
    }
    unknown = [name for name in images_by_name if name not in declarations]
    if unknown:
        text = (
            f"images={unknown}: expected names that the module declares, "
            f"{list(declarations) or 'no .texref, .samplerref or .surfref'}"
        )
        raise faults.error(faults.ARGUMENTS, None, text)
    for name, statement in declarations.items():
        image = images_by_name.get(name)
        if image is None:
            image = _read_sampler(statement, name)
        elif not isinstance(image, _KINDS[statement.type.ptx]):
            text = f"`{name}` is a {statement.type.ptx}, but its image is of type {type(image).__name__}"
            raise faults.error(faults.ARGUMENTS, statement.origin, text)
        symbol = variables.names.find(name)
        address = None if symbol is None else variables.addresses.get((name, id(symbol)))
        if image is not None and address is not None:
            images.bind(address, image)


def _read_sampler(statement: VarDecl, name: str) -> Sampler | None:
    """Return the sampler that an initializer describes; missing properties have the CUDA runtime's defaults."""
    if statement.type.ptx != ".samplerref":
        return None
    values = next(item.initializer for item in statement.declarators if item.name == name)
    fields: dict[str, str] = {}
    for value in values or ():
        if isinstance(value, FieldOperand):
            word = value.value
            fields[value.name] = word.name if isinstance(word, LabelOperand) else str(evaluate(word))
    address = [fields.get(f"addr_mode_{axis}", "clamp_to_edge") for axis in range(3)]
    return Sampler(address, fields.get("filter_mode", "nearest"), force_unnormalized=_is_true(fields))


def _is_true(fields: dict[str, str]) -> bool:
    return fields.get("force_unnormalized_coords", "0") not in ("0", "False")
