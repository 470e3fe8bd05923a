"""On what each Warp kernel runs, and what it must compute."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from tools.corpus.manifest import Argument, Field, Struct
from tools.corpus.python_producers.record import array, scalar
from tools.corpus.python_producers.warp_kernels import algebra, geometry, particles, tiles

EXACT = (0.0, 0.0)
CLOSE = (1e-5, 1e-5)
DEVICE_OBJECT = "needs an acceleration structure that Warp builds on the device"


@dataclass(frozen=True)
class Launch:
    """How one kernel of a module runs; `dims` are Warp's launch dimensions, `shared` bytes of dynamic shared memory."""

    algorithm: str
    dims: Sequence[int]
    arguments: Sequence[Argument] = ()
    outputs: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    reference: str = ""
    reason: str | None = None
    shared: int = 0


@dataclass(frozen=True)
class Unit:
    """One Warp module, which becomes one PTX file, with a launch for each of its kernels."""

    module: ModuleType
    arch: int
    options: Mapping[str, Any]
    launches: Mapping[str, Launch]


def view(name: str, dtype: str, *shape: int, inner: int = 0, init: str = "zeros", **parameters: Any) -> Struct:
    """Warp's array descriptor; `inner` trailing dimensions belong to the element (a vector or a matrix)."""
    data = array(name, dtype, *shape, init=init, **parameters)
    size = {"float64": 8, "float32": 4, "float16": 2, "int32": 4, "uint8": 1}[dtype]
    strides = [size]
    for extent in shape[:0:-1]:
        strides.insert(0, strides[0] * extent)
    outer = len(shape) - inner
    fields = [Field(0, data), Field(8, scalar(f"{name}.grad", "uint64", 0))]
    for k in range(outer):
        fields.append(Field(16 + 4 * k, scalar(f"{name}.shape{k}", "int32", shape[k])))
        fields.append(Field(32 + 4 * k, scalar(f"{name}.stride{k}", "int32", strides[k])))
    fields.append(Field(48, scalar(f"{name}.ndim", "uint16", outer)))
    return Struct(f"{name}.view", 56, tuple(fields))


def vector(name: str, *values: float) -> Struct:
    """A small vector by value."""
    parts = tuple(Field(4 * k, scalar(f"{name}.{k}", "float32", value)) for k, value in enumerate(values))
    return Struct(name, 4 * len(values), parts)


def f32(**values: float) -> tuple[Argument, ...]:
    return tuple(scalar(name, "float32", value) for name, value in values.items())


POINTS = view("points", "float32", 48, 3, inner=1, init="uniform", low=-1.0, high=1.0)
PARTICLES = {
    "sph_density": Launch(
        "sph-density", (48,), (POINTS, view("density", "float32", 48), *f32(mass=0.5, radius=0.6)),
        {"density": (1e-3, 1e-3)}, "simulations.sph_density"),
    "sph_density_grid": Launch("sph-hash-grid", (48,), reason=DEVICE_OBJECT),
    "integrate_bounce": Launch(
        "particle-integration", (50,),
        (view("position", "float32", 50, 3, inner=1, init="normal"), view("velocity", "float32", 50, 3, inner=1,
         init="normal"),
         vector("gravity", 0.0, -9.8125, 0.0), *f32(restitution=0.5, dt=0.0625)),
        {"position": CLOSE, "velocity": CLOSE}, "simulations.bounce"),
    "spring_forces": Launch(
        "mass-spring", (40,),
        (view("position", "float32", 30, 3, inner=1, init="normal"),
         view("ends", "int32", 40, 2, init="values", values=[1, 7, 3, 20, 5, 11, 29, 2, 14, 0]),
         view("rest", "float32", 40, init="uniform"), view("force", "float32", 30, 3, inner=1), *f32(stiffness=2.5)),
        {"force": (1e-4, 1e-4)}, "simulations.springs"),
    "rigid_points": Launch(
        "rigid-transform", (4, 20),
        (view("bodies", "float32", 4, 8, inner=1, init="uniform", low=-1.0, high=1.0),
         view("local", "float32", 20, 3, inner=1, init="normal"), view("out", "float32", 4, 20, 3, inner=1)),
        {"out": CLOSE}, "simulations.rigid_points"),
}  # fmt: skip
GEOMETRY = {
    "mesh_distance": Launch("mesh-distance", (8,), reason=DEVICE_OBJECT),
    "mesh_rays": Launch("mesh-ray-cast", (8,), reason=DEVICE_OBJECT),
    "bvh_overlaps": Launch("bvh-overlap", (8,), reason=DEVICE_OBJECT),
    "triangle_areas": Launch(
        "triangle-area", (40,),
        (view("points", "float32", 30, 3, inner=1, init="normal"),
         view("faces", "int32", 40, 3, init="integers", low=0, high=30), view("out", "float32", 40)),
        {"out": CLOSE}, "simulations.triangle_areas"),
    "march_spheres": Launch(
        "sphere-tracing", (8, 12),
        (view("out", "float32", 8, 12), scalar("width", "int32", 12), scalar("height", "int32", 8)),
        {"out": (1e-3, 1e-3)}, "simulations.march_spheres"),
}  # fmt: skip
ALGEBRA = {
    "matrix_inverses": Launch(
        "matrix-inverse", (40,),
        (view("a", "float64", 40, 3, 3, inner=2, init="normal"), view("out", "float64", 40, 3, 3, inner=2)),
        {"out": (1e-9, 1e-9)}, "simulations.inverses"),
    "singular_values": Launch(
        "singular-values", (20,),
        (view("a", "float32", 20, 3, 3, inner=2, init="normal"), view("out", "float32", 20, 3, inner=1)),
        {"out": (1e-3, 1e-3)}, "simulations.singular_values"),
    "quaternion_chain": Launch(
        "quaternion-product", (20,),
        (view("turns", "float32", 20, 5, 4, inner=1, init="normal"), view("out", "float32", 20, 4, inner=1)),
        {"out": (1e-4, 1e-4)}, "simulations.quaternions"),
    "fractal_noise": Launch("noise", (8, 8), reason="Warp's lattice noise has no short NumPy equivalent"),
    "random_walk": Launch("random-walk", (32,), reason="Warp's generator has no short NumPy equivalent"),
    "bilinear_resize": Launch(
        "bilinear-resize", (12, 15),
        (view("image", "float32", 7, 9, init="normal"), view("out", "float32", 12, 15)), {"out": (1e-4, 1e-4)},
        "simulations.bilinear"),
    "heat_step": Launch(
        "heat-stencil", (6, 6, 6),
        (view("u", "float64", 6, 6, 6, init="normal"), view("out", "float64", 6, 6, 6), scalar("rate", "float64",
         0.125)),
        {"out": (1e-12, 1e-12)}, "simulations.heat"),
    "caesar_cipher": Launch(
        "caesar-cipher", (100,),
        (view("text", "uint8", 100, init="integers", low=80, high=128), view("out", "uint8", 100), scalar("shift",
         "int32", 3)),
        {"out": EXACT}, "simulations.caesar"),
    "half_mix": Launch(
        "interpolation", (100,),
        (view("a", "float16", 100, init="normal"), view("b", "float16", 100, init="normal"), view("out", "float16",
         100),
         scalar("t", "float16", 0.25)), {"out": (4e-3, 4e-3)}, "simulations.mix"),
}  # fmt: skip
TILES = {
    "tile_row_sums": Launch(
        "reduction-rows", (4,), (view("x", "float32", 4, 64, init="normal"), view("out", "float32", 4)),
        {"out": (1e-4, 1e-4)}, "simulations.row_sums"),
    "tile_row_extremes": Launch(
        "reduction-extremes", (4,),
        (view("x", "float32", 4, 64, init="normal"), view("low", "float32", 4), view("high", "float32", 4)),
        {"low": EXACT, "high": EXACT}, "simulations.row_extremes"),
    "tile_matmul": Launch(
        "matmul", (2, 2),
        (view("a", "float32", 16, 24, init="normal"), view("b", "float32", 24, 16, init="normal"),
         view("out", "float32", 16, 16)), {"out": (1e-4, 1e-4)}, "products.matmul", shared=4096),
    "tile_map_activation": Launch(
        "activation", (4,), (view("x", "float32", 4, 64, init="normal"), view("out", "float32", 4, 64)),
        {"out": CLOSE}, "simulations.squash"),
}  # fmt: skip
PLAIN = {"enable_backward": False}
UNITS = [
    Unit(particles, 75, {"enable_backward": True}, PARTICLES),
    Unit(geometry, 86, PLAIN, GEOMETRY),
    Unit(algebra, 120, PLAIN | {"fast_math": True}, ALGEBRA),
    Unit(tiles, 90, PLAIN | {"block_dim": 64, "enable_mathdx_gemm": False}, TILES),
]
