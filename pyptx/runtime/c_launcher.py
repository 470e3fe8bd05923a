"""Writes C for an exported kernel: a header and a launcher over the driver API, with the kernel's image inside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyptx.dsl.run import parse_raw_parameter
from pyptx.ir import Param
from pyptx.runtime.planning import MAP_SUFFIX, Plan
from pyptx.tensormap import TensorMap, tensor_map

_TYPES = {"f32": "float", "f64": "double"}
_BYTES_PER_LINE = 24
_PORTABLE_CLUSTER = 8


@dataclass(frozen=True, slots=True)
class Argument:
    """A parameter of the launcher in C: its declaration, and its name in the call."""

    declaration: str
    name: str
    about: str


def write_header(plan: Plan) -> str:
    """Return the header: dimensions, load, launch and unload."""
    name, guard = plan.definition.name, f"PYPTX_{plan.definition.name}_H".upper()
    capitals = [dim.upper() for dim in plan.dims]
    dims = "".join(
        f"#define {name.upper()}_{capital if capitals.count(capital) == 1 else dim} {extent}\n"
        for (dim, extent), capital in zip(plan.dims.items(), capitals, strict=True)
    )
    about = "".join(f" *   {argument.name}: {argument.about}\n" for argument in list_arguments(plan))
    return f"""\
/* {name}: written by pyptx. Link with the CUDA driver (-lcuda). */
#ifndef {guard}
#define {guard}

#include <cuda.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

{dims}
/* The kernel in one context. */
typedef struct {{
    CUmodule module;
    CUfunction function;
}} {name}_kernel;

/* Load the kernel into the current context. */
CUresult {name}_load({name}_kernel *kernel);

/* Submit a launch to a stream.
{about} */
CUresult {name}_launch({_declare(plan)});

CUresult {name}_unload({name}_kernel *kernel);

#ifdef __cplusplus
}}
#endif

#endif
"""


def list_arguments(plan: Plan) -> list[Argument]:
    """Return the arguments of the launch in C, in the order of the kernel's tensors and raw parameters."""
    arguments: list[Argument] = []
    inputs = len(plan.definition.tensors) - len(plan.outputs)
    for index, (name, tile) in enumerate(plan.definition.tensors):
        role = "input" if index < inputs else "output"
        shape = " x ".join(map(str, tile.resolve_shape(plan.dims)))
        own = choose_name(name)
        arguments.append(Argument(f"CUdeviceptr {own}", own, f"{role}, {shape} elements of {tile.dtype}, row-major"))
    for kind, name in plan.definition.raw_params:
        parameter = parse_raw_parameter(kind, name)
        own, kind = choose_name(parameter.name), parameter.type.ptx[1:]
        if parameter.array_size is not None:
            size = parameter.array_size * parameter.type.bits // 8
            arguments.append(Argument(f"const unsigned char {own}[{size}]", own, f"{size} bytes"))
        else:
            arguments.append(Argument(f"{_find_type(parameter)} {own}", own, kind))
    return arguments


def _find_type(parameter: Param) -> str:
    """Return the C type of a scalar: types that C lacks are passed as their bits."""
    name = parameter.type.ptx[1:]
    return _TYPES.get(name, f"{'int' if name[0] == 's' else 'uint'}{parameter.type.bits}_t")


def _declare(plan: Plan) -> str:
    name = plan.definition.name
    parts = [f"const {name}_kernel *kernel", "CUstream stream", *(item.declaration for item in list_arguments(plan))]
    return ", ".join(parts)


def write_source(plan: Plan, image: bytes) -> str:
    """Return the source of the launcher, which contains the image."""
    name = plan.definition.name
    return f"""\
/* {name}: written by pyptx. */
#include "{name}.h"

#include <string.h>

static const unsigned char image[] __attribute__((aligned(16))) = {{
{_write_bytes(image)}}};

CUresult {name}_load({name}_kernel *kernel)
{{
    CUresult result = cuModuleLoadData(&kernel->module, image);
    if (result != CUDA_SUCCESS)
        return result;
    result = cuModuleGetFunction(&kernel->function, kernel->module, "{name}");
{_write_limits(plan)}    if (result != CUDA_SUCCESS)
        cuModuleUnload(kernel->module);
    return result;
}}

CUresult {name}_launch({_declare(plan)})
{{
{_write_maps(plan)}    void *parameters[] = {{{_list_parameters(plan)}}};
    CUlaunchAttribute attribute;
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
{_assign("attribute.value.clusterDim.", "xyz", plan.definition.cluster)}
    CUlaunchConfig config;
    memset(&config, 0, sizeof config);
{_assign("config.gridDim", "XYZ", (*plan.grid, 1, 1)[:3])}
{_assign("config.blockDim", "XYZ", plan.definition.block)}
    config.sharedMemBytes = {plan.kernel_trace.dynamic_shared};
    config.hStream = stream;
    config.attrs = &attribute;
    config.numAttrs = {int(plan.definition.cluster != (1, 1, 1))};
    return cuLaunchKernelEx(&config, kernel->function, parameters, NULL);
}}

CUresult {name}_unload({name}_kernel *kernel)
{{
    return cuModuleUnload(kernel->module);
}}
"""


def _write_bytes(data: bytes) -> str:
    lines = (data[start : start + _BYTES_PER_LINE] for start in range(0, len(data), _BYTES_PER_LINE))
    return "".join(f"    {','.join(map(str, line))},\n" for line in lines)


def _assign(prefix: str, axes: str, values: Iterable[int]) -> str:
    return "\n".join(f"    {prefix}{axis} = {value};" for axis, value in zip(axes, values, strict=True))


def _write_limits(plan: Plan) -> str:
    """Return the statements that raise the limits of the function to what its launches need."""
    x, y, z = plan.definition.cluster
    limits = {
        # Static shared memory lowers the limit of dynamic memory.
        "MAX_DYNAMIC_SHARED_SIZE_BYTES": plan.kernel_trace.dynamic_shared,
        "NON_PORTABLE_CLUSTER_SIZE_ALLOWED": int(x * y * z > _PORTABLE_CLUSTER),
    }
    return "".join(
        "    if (result == CUDA_SUCCESS)\n"
        f"        result = cuFuncSetAttribute(kernel->function, CU_FUNC_ATTRIBUTE_{limit}, {value});\n"
        for limit, value in limits.items()
        if value
    )


def _list_parameters(plan: Plan) -> str:
    """Return the addresses of the parameters in the order of the entry."""
    maps = _list_maps(plan)
    return ", ".join(
        f"(void *){'&' if parameter.array_size is None or parameter.name in maps else ''}{choose_name(parameter.name)}"
        for parameter in plan.find_entry().params
    )


def _write_maps(plan: Plan) -> str:
    tiles = dict(plan.definition.tensors)
    maps = {name: tensor_map(tiles[name.removesuffix(MAP_SUFFIX)], dict(plan.dims), 0) for name in _list_maps(plan)}
    return "".join(_write_map(name, value) for name, value in maps.items())


def _list_maps(plan: Plan) -> list[str]:
    tensors = {f"{name}{MAP_SUFFIX}" for name, _ in plan.definition.tensors}
    return [parameter.name for parameter in plan.find_entry().params if parameter.name in tensors]


def _write_map(name: str, value: TensorMap) -> str:
    """Return the statements that encode a tensor map at the address of its tensor."""
    tensor = name.removesuffix(MAP_SUFFIX)
    arrays: Mapping[str, tuple[str, tuple[int, ...]]] = {
        "dims": ("cuuint64_t", value.dims),
        "strides": ("cuuint64_t", value.strides or (0,)),
        "box": ("cuuint32_t", value.box),
        "steps": ("cuuint32_t", value.element_strides),
    }
    declarations = "".join(
        f"    const {kind} {name}_{noun}[] = {{{', '.join(map(str, numbers))}}};\n"
        for noun, (kind, numbers) in arrays.items()
    )
    modes = [value.interleave.value, value.swizzle.driver_value, value.l2_promotion.value, value.fill.value]
    kinds = ["CUtensorMapInterleave", "CUtensorMapSwizzle", "CUtensorMapL2promotion", "CUtensorMapFloatOOBfill"]
    words = ", ".join(f"({kind}){number}" for kind, number in zip(kinds, modes, strict=True))
    return (
        f"{declarations}    CUtensorMap {name};\n"
        f"    CUresult {name}_result = cuTensorMapEncodeTiled(\n"
        f"        &{name}, (CUtensorMapDataType){value.dtype.driver_value}, {value.rank},\n"
        f"        (void *)(uintptr_t){choose_name(tensor)}, {name}_dims, {name}_strides, {name}_box,\n"
        f"        {name}_steps, {words});\n"
        f"    if ({name}_result != CUDA_SUCCESS)\n"
        f"        return {name}_result;\n"
    )


def choose_name(name: str) -> str:
    """Return the name of a parameter in C. No two have the same."""
    return f"{name}_" if name.rstrip("_") in _RESERVED else name


_RESERVED = frozenset(
    """kernel stream image parameters attribute config result memset NULL
    CUDA_SUCCESS CUdeviceptr CUfunction CUlaunchAttribute CUlaunchConfig CUmodule CUresult CUstream CUtensorMap
    CUtensorMapDataType CUtensorMapFloatOOBfill CUtensorMapInterleave CUtensorMapL2promotion CUtensorMapSwizzle
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
    int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t
    auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while
    _Alignas _Alignof _Atomic _BitInt _Bool _Complex _Decimal128 _Decimal32 _Decimal64 _Generic _Imaginary _Noreturn
    _Static_assert _Thread_local
    alignas alignof and and_eq asm bitand bitor bool catch char16_t char32_t char8_t class co_await co_return
    co_yield compl concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit export
    false friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private protected public
    reinterpret_cast requires static_assert static_cast template this thread_local throw true try typeid typename
    typeof typeof_unqual using virtual wchar_t xor xor_eq linux unix""".split()
)
"""The names that the launcher itself uses, and keywords of C and C++."""
