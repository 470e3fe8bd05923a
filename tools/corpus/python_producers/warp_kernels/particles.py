"""Warp kernels of particle methods: smoothed-particle hydrodynamics, neighbors, integration, springs."""

# ruff: noqa: UP018 - in Warp, float(0.0) declares a variable that a loop may change; 0.0 is a constant

import warp as wp


@wp.func
def poly6(distance_squared: float, radius: float):
    result = 0.0
    if distance_squared < radius * radius:
        gap = radius * radius - distance_squared
        result = 1.5666814710608448 / wp.pow(radius, 9.0) * gap * gap * gap
    return result


@wp.kernel
def sph_density(points: wp.array(dtype=wp.vec3), density: wp.array(dtype=float), mass: float, radius: float):
    i = wp.tid()
    here = points[i]
    total = float(0.0)
    for j in range(points.shape[0]):
        delta = here - points[j]
        total += mass * poly6(wp.dot(delta, delta), radius)
    density[i] = total


@wp.kernel
def sph_density_grid(
    grid: wp.uint64, points: wp.array(dtype=wp.vec3), density: wp.array(dtype=float), mass: float, radius: float
):
    i = wp.hash_grid_point_id(grid, wp.tid())
    here = points[i]
    total = float(0.0)
    for j in wp.hash_grid_query(grid, here, radius):
        total += mass * poly6(wp.length_sq(here - points[j]), radius)
    density[i] = total


@wp.kernel
def integrate_bounce(
    position: wp.array(dtype=wp.vec3),
    velocity: wp.array(dtype=wp.vec3),
    gravity: wp.vec3,
    restitution: float,
    dt: float,
):
    i = wp.tid()
    v = velocity[i] + gravity * dt
    x = position[i] + v * dt
    if x[1] < 0.0:
        x = wp.vec3(x[0], -x[1] * restitution, x[2])
        v = wp.vec3(v[0], -v[1] * restitution, v[2])
    position[i] = x
    velocity[i] = v


@wp.kernel
def spring_forces(
    position: wp.array(dtype=wp.vec3),
    ends: wp.array(dtype=int, ndim=2),
    rest: wp.array(dtype=float),
    force: wp.array(dtype=wp.vec3),
    stiffness: float,
):
    s = wp.tid()
    a = ends[s, 0]
    b = ends[s, 1]
    delta = position[b] - position[a]
    length = wp.length(delta)
    pull = delta * (stiffness * (length - rest[s]) / length)
    wp.atomic_add(force, a, pull)
    wp.atomic_sub(force, b, pull)


@wp.struct
class Body:
    origin: wp.vec3
    turn: wp.quat
    mass: float


@wp.kernel
def rigid_points(bodies: wp.array(dtype=Body), local: wp.array(dtype=wp.vec3), out: wp.array(dtype=wp.vec3, ndim=2)):
    b, p = wp.tid()
    body = bodies[b]
    out[b, p] = body.origin + wp.quat_rotate(body.turn, local[p]) * body.mass
