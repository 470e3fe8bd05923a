"""Warp kernels that query triangle meshes and bounding volumes, and intersect simple shapes."""

# ruff: noqa: UP018, RUF046 - in Warp, float(0.0) declares a variable that a loop may change; 0.0 is a constant

import warp as wp


@wp.kernel
def mesh_distance(mesh: wp.uint64, points: wp.array(dtype=wp.vec3), out: wp.array(dtype=float), limit: float):
    i = wp.tid()
    found = wp.mesh_query_point_no_sign(mesh, points[i], limit)
    if found.result:
        near = wp.mesh_eval_position(mesh, found.face, found.u, found.v)
        out[i] = wp.length(points[i] - near)
    else:
        out[i] = limit


@wp.kernel
def mesh_rays(
    mesh: wp.uint64, start: wp.array(dtype=wp.vec3), direction: wp.array(dtype=wp.vec3), out: wp.array(dtype=float)
):
    i = wp.tid()
    hit = wp.mesh_query_ray(mesh, start[i], direction[i], 1.0e6)
    if hit.result:
        out[i] = hit.t * hit.sign


@wp.kernel
def bvh_overlaps(
    tree: wp.uint64, low: wp.array(dtype=wp.vec3), high: wp.array(dtype=wp.vec3), count: wp.array(dtype=int)
):
    i = wp.tid()
    query = wp.bvh_query_aabb(tree, low[i], high[i])
    found = int(0)
    total = int(0)
    while wp.bvh_query_next(query, found):
        total += 1
    count[i] = total


@wp.kernel
def triangle_areas(points: wp.array(dtype=wp.vec3), faces: wp.array(dtype=int, ndim=2), out: wp.array(dtype=float)):
    f = wp.tid()
    a = points[faces[f, 0]]
    out[f] = 0.5 * wp.length(wp.cross(points[faces[f, 1]] - a, points[faces[f, 2]] - a))


@wp.func
def sphere_distance(p: wp.vec3, centre: wp.vec3, radius: float):
    return wp.length(p - centre) - radius


@wp.kernel
def march_spheres(out: wp.array(dtype=float, ndim=2), width: int, height: int):
    y, x = wp.tid()
    eye = wp.vec3(0.0, 0.0, -3.0)
    ray = wp.normalize(wp.vec3(2.0 * float(x) / float(width) - 1.0, 2.0 * float(y) / float(height) - 1.0, 2.0))
    depth = float(0.0)
    for _step in range(24):
        p = eye + ray * depth
        near = wp.min(sphere_distance(p, wp.vec3(0.0, 0.0, 0.0), 0.8), sphere_distance(p, wp.vec3(0.7, 0.4, -0.2), 0.4))
        depth += near
    out[y, x] = wp.min(depth, 10.0)
