"""The directives of PTX: where each is allowed, since which version, what it means (manual: Directives, Pragma
Strings)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache

from pyptx.isa.targets import Availability, Version, parse_availability


class Place(StrEnum):
    """Where a directive is allowed."""

    MODULE = "module"
    KERNEL = "kernel"
    """Between `.entry` and its body."""
    FUNCTION = "function"
    """Between `.func` and its body."""
    BODY = "body"
    """Among the statements of a body."""
    PROTOTYPE = "prototype"
    """At the end of a `.callprototype`."""
    LINKAGE = "linkage"
    """Before a variable, kernel or function."""
    VARIABLE = "variable"
    """Within the declaration of a variable."""
    PARAMETER = "parameter"
    """Within the declaration of a kernel's parameter."""


@dataclass(frozen=True, slots=True)
class Directive:
    """One directive. `removed` is the PTX version from which ptxas rejects it. Between a header and its body, it takes
    up to `operands` integers, or one or more integers and strings if `names`."""

    name: str
    places: tuple[Place, ...]
    meaning: str
    available: Availability
    removed: Version | None
    see: str
    operands: int = 0
    names: bool = False


@dataclass(frozen=True, slots=True)
class Pragma:
    """One string of `.pragma`, identified by its first word. ptxas ignores unknown words."""

    name: str
    meaning: str
    available: Availability


_MODULE, _KERNEL, _FUNCTION, _BODY = (Place.MODULE,), (Place.KERNEL,), (Place.FUNCTION,), (Place.BODY,)
_BOTH = (Place.KERNEL, Place.FUNCTION)
_DECLARED = (Place.MODULE, Place.BODY)
_LINKAGE = (Place.LINKAGE,)


def _directive(
    name: str,
    places: tuple[Place, ...],
    meaning: str,
    section: str,
    *,
    ptx: Version | None = None,
    sm: str = "",
    removed: Version | None = None,
    operands: int = 0,
    names: bool = False,
) -> Directive:
    return Directive(name, places, meaning, parse_availability(ptx, sm), removed, section, operands, names)


def _performance(
    name: str, places: tuple[Place, ...], operands: int, meaning: str, *, ptx: Version, sm: str = "",
    removed: Version | None = None,
) -> Directive:  # fmt: skip
    anchor = "performance-tuning-directives-" + name.removeprefix(".").replace("_", "-")
    return Directive(name, places, meaning, parse_availability(ptx, sm), removed, anchor, operands)


_MODULES = (
    _directive(".version", _MODULE, "PTX version of the module; must come first.", "ptx-module-directives-version"),
    _directive(".target", _MODULE, "Target and texturing mode; must come second.", "ptx-module-directives-target"),
    _directive(
        ".address_size", _MODULE, "Address width: 32 or 64 bits.", "ptx-module-directives-address-size", ptx=(2, 3),
    ),
    _directive(".entry", _MODULE, "A kernel.", "kernel-and-function-directives-entry"),
    _directive(".func", _MODULE, "A function.", "kernel-and-function-directives-func"),
    _directive(
        ".alias", _MODULE, "Another name for a function.", "kernel-and-function-directives-alias",
        ptx=(6, 3), sm="sm_30",
    ),
)  # fmt: skip

_CONTROL = (
    # The manual says PTX 2.1 and sm_20; ptxas requires what brx.idx needs.
    _directive(
        ".branchtargets", _BODY, "Possible targets of a brx.idx.", "control-flow-directives-branchtargets",
        ptx=(5, 1), sm="sm_30",
    ),
    _directive(
        ".calltargets", _BODY, "Possible targets of an indirect call.",
        "control-flow-directives-calltargets", ptx=(2, 1), sm="sm_20",
    ),
    _directive(
        ".callprototype", _BODY, "Prototype of an indirect call.", "control-flow-directives-callprototype",
        ptx=(2, 1), sm="sm_20",
    ),
)  # fmt: skip

_PERFORMANCE = (
    _performance(".maxnreg", _KERNEL, 1, "Maximum registers per thread.", ptx=(1, 3)),
    _performance(".maxntid", _KERNEL, 3, "Maximum threads per CTA.", ptx=(1, 3)),
    _performance(".reqntid", _KERNEL, 3, "Exact size of the CTA.", ptx=(2, 1)),
    _performance(
        ".minnctapersm", _KERNEL, 1, "CTAs that must fit on a multiprocessor; needs .maxntid or .reqntid.", ptx=(2, 0),
    ),
    _performance(".maxnctapersm", _KERNEL, 1, "Former name of .minnctapersm.", ptx=(1, 3), removed=(2, 1)),
    _performance(
        ".noreturn", (Place.FUNCTION, Place.PROTOTYPE), 0, "The function never returns.", ptx=(6, 4), sm="sm_30",
    ),
    _performance(".pragma", (Place.MODULE, Place.KERNEL, Place.BODY), 0, "Hints to ptxas, as strings.", ptx=(2, 0)),
    _performance(
        ".abi_preserve", (Place.FUNCTION, Place.PROTOTYPE), 1, "Registers that the callee must preserve.", ptx=(9, 0),
        sm="sm_80",
    ),
    _performance(
        ".abi_preserve_control", (Place.FUNCTION, Place.PROTOTYPE), 1,
        "Control registers that the callee must preserve.", ptx=(9, 0), sm="sm_80",
    ),
    # Undocumented; ptxas 13.5 accepts it.
    _performance(".local_maxnreg", _BOTH, 1, "Maximum registers per thread, for this function only.", ptx=(8, 8)),
    _performance(".minperctamemory", _KERNEL, 1, "Minimum bytes of global memory per CTA.", ptx=(9, 4), sm="sm_80"),
)  # fmt: skip

_CLUSTERS = (
    _directive(
        ".reqnctapercluster", _KERNEL, "Exact size of the cluster.",
        "cluster-dimension-directives-reqnctapercluster", ptx=(7, 8), sm="sm_90", operands=3,
    ),
    _directive(
        ".explicitcluster", _KERNEL, "The launch must specify a cluster size.",
        "cluster-dimension-directives-explicitcluster", ptx=(7, 8), sm="sm_90",
    ),
    _directive(
        ".maxclusterrank", _KERNEL, "Maximum CTAs per cluster.", "cluster-dimension-directives-maxclusterrank",
        ptx=(7, 8), sm="sm_90", operands=1,
    ),
    _directive(
        ".blocksareclusters", _KERNEL, "The grid counts clusters, not CTAs; needs .reqntid and .reqnctapercluster.",
        "miscellaneous-directives-blocksareclusters", ptx=(9, 0), sm="sm_90",
    ),
    # The manual says PTX 9.3; ptxas also accepts it in 9.2.
    _directive(
        ".language", _BOTH, "Source languages, as names or numbers.", "miscellaneous-directives-language", ptx=(9, 2),
        names=True,
    ),
)  # fmt: skip

_DEBUGGING = (
    # The manual says PTX 1.2; ptxas also accepts it before.
    _directive(
        "@@DWARF", _MODULE, "Debugging information in old modules; replaced by .section.",
        "debugging-directives-dwarf", removed=(2, 0),
    ),
    _directive(".section", _MODULE, "Debugging information.", "debugging-directives-section", ptx=(2, 0)),
    _directive(".file", _MODULE, "Number of a source file.", "debugging-directives-file"),
    _directive(".loc", _BODY, "Source location of the next instructions, maybe inlined.", "debugging-directives-loc"),
    _directive(
        ".loc_intermediate", _BODY, "Location in an intermediate source (undocumented).",
        "debugging-directives-loc", ptx=(9, 4),
    ),
)  # fmt: skip

_LINKING = (
    _directive(".extern", _LINKAGE, "Defined in another module.", "linking-directives-extern"),
    _directive(".visible", _LINKAGE, "Visible to other modules.", "linking-directives-visible"),
    _directive(
        ".weak", _LINKAGE, "Visible to other modules; another definition may override it.", "linking-directives-weak",
        ptx=(3, 1),
    ),
    # The manual says sm_20; ptxas accepts it on every target.
    _directive(
        ".common", _LINKAGE, "May be declared in several modules; the largest is used.", "linking-directives-common",
        ptx=(5, 0),
    ),
)  # fmt: skip

_STATE_SPACES = (
    _directive(".reg", _BODY, "Registers.", "register-state-space"),
    _directive(".const", _DECLARED, "Constant memory.", "constant-state-space"),
    _directive(".global", _DECLARED, "Global memory.", "global-state-space"),
    _directive(".local", _BODY, "Memory private to a thread.", "local-state-space"),
    _directive(".param", (Place.KERNEL, Place.FUNCTION, Place.BODY), "Parameters.", "parameter-state-space"),
    _directive(".shared", _DECLARED, "Memory shared by the threads of a CTA.", "shared-state-space"),
    _directive(
        ".tex", _MODULE, "Textures in old modules; replaced by .texref.", "texture-state-space-deprecated",
        removed=(1, 5),
    ),
)  # fmt: skip

_DECLARATIONS = (
    _directive(".align", (Place.VARIABLE, Place.PARAMETER), "Alignment in bytes.", "variables-alignment"),
    _directive(
        ".ptr", (Place.PARAMETER,), "The parameter is a pointer: the state space and alignment of its target.",
        "kernel-parameter-attribute-ptr", ptx=(2, 2),
    ),
    _directive(
        ".attribute", (Place.VARIABLE, Place.FUNCTION), "Managed or unified memory.",
        "variable-and-function-attribute-directive-attribute", ptx=(4, 0), sm="sm_30",
    ),
)  # fmt: skip

DIRECTIVES: tuple[Directive, ...] = (
    *_MODULES, *_CONTROL, *_PERFORMANCE, *_CLUSTERS, *_DEBUGGING, *_LINKING, *_STATE_SPACES, *_DECLARATIONS,
)  # fmt: skip

PRAGMAS: tuple[Pragma, ...] = (
    Pragma("nounroll", "Do not unroll the enclosing loop, or the next one.", parse_availability((2, 0))),
    Pragma("used_bytes_mask", "Bytes of the next load that are used.", parse_availability((8, 3), "sm_50")),
    # The manual says PTX 9.0; ptxas also accepts it in 8.7.
    Pragma("enable_smem_spilling", "Spill registers to shared memory first.", parse_availability((8, 7), "sm_75")),
    Pragma("frequency", "Execution frequency of the block.", parse_availability((9, 0))),
    Pragma("mma_throughput", "Tensor core throughput that the code needs.", parse_availability((9, 3))),
)


@lru_cache(maxsize=1)
def _index_by_name() -> dict[str, Directive]:
    return {d.name: d for d in DIRECTIVES}


def find_directive(name: str) -> Directive | None:
    """Return the directive of this name, with its dot."""
    return _index_by_name().get(name)


@lru_cache(maxsize=3)
def list_header_directives(place: Place) -> dict[str, Directive]:
    """Return the directives that follow the header of a kernel, function or prototype, by name with its dot."""
    return {d.name: d for d in DIRECTIVES if place in d.places and d.name not in (".param", ".attribute")}


def find_pragma(text: str) -> Pragma | None:
    """Return the pragma for a string of `.pragma`, by its first word."""
    first = text.split(None, 1)[0] if text.strip() else ""
    return next((p for p in PRAGMAS if p.name == first), None)
