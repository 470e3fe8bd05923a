"""Warp kernels on small matrices, quaternions, noise, random numbers and bytes."""

# ruff: noqa: UP018 - in Warp, float(0.0) declares a variable that a loop may change; 0.0 is a constant

import warp as wp


@wp.kernel
def matrix_inverses(a: wp.array(dtype=wp.mat33d), out: wp.array(dtype=wp.mat33d)):
    i = wp.tid()
    out[i] = wp.inverse(a[i])


@wp.kernel
def singular_values(a: wp.array(dtype=wp.mat33), out: wp.array(dtype=wp.vec3)):
    i = wp.tid()
    u = wp.mat33()
    s = wp.vec3()
    v = wp.mat33()
    wp.svd3(a[i], u, s, v)
    out[i] = s


@wp.kernel
def quaternion_chain(turns: wp.array(dtype=wp.quat, ndim=2), out: wp.array(dtype=wp.quat)):
    i = wp.tid()
    total = wp.quat_identity()
    for j in range(turns.shape[1]):
        total = wp.normalize(total * turns[i, j])
    out[i] = total


@wp.kernel
def fractal_noise(out: wp.array(dtype=float, ndim=2), seed: int, scale: float):
    y, x = wp.tid()
    state = wp.rand_init(seed)
    total = float(0.0)
    size = float(1.0)
    for _octave in range(3):
        total += wp.noise(state, wp.vec2(float(x) * scale * size, float(y) * scale * size)) / size
        size = size * 2.0
    out[y, x] = total


@wp.kernel
def random_walk(out: wp.array(dtype=wp.vec2), seed: int, steps: int):
    i = wp.tid()
    state = wp.rand_init(seed, i)
    place = wp.vec2(0.0, 0.0)
    for _step in range(steps):
        place = place + wp.vec2(wp.randn(state), wp.randf(state, -1.0, 1.0))
    out[i] = place


@wp.kernel
def bilinear_resize(image: wp.array(dtype=float, ndim=2), out: wp.array(dtype=float, ndim=2)):
    y, x = wp.tid()
    sy = float(y) * float(image.shape[0] - 1) / float(out.shape[0] - 1)
    sx = float(x) * float(image.shape[1] - 1) / float(out.shape[1] - 1)
    top = wp.min(int(sy), image.shape[0] - 2)
    left = wp.min(int(sx), image.shape[1] - 2)
    fy = sy - float(top)
    fx = sx - float(left)
    above = wp.lerp(image[top, left], image[top, left + 1], fx)
    below = wp.lerp(image[top + 1, left], image[top + 1, left + 1], fx)
    out[y, x] = wp.lerp(above, below, fy)


@wp.kernel
def heat_step(u: wp.array(dtype=wp.float64, ndim=3), out: wp.array(dtype=wp.float64, ndim=3), rate: wp.float64):
    i, j, k = wp.tid()
    n = u.shape[0] - 1
    here = u[i, j, k]
    around = u[wp.max(i - 1, 0), j, k] + u[wp.min(i + 1, n), j, k]
    around += u[i, wp.max(j - 1, 0), k] + u[i, wp.min(j + 1, n), k]
    around += u[i, j, wp.max(k - 1, 0)] + u[i, j, wp.min(k + 1, n)]
    out[i, j, k] = here + rate * (around - wp.float64(6.0) * here)


@wp.kernel
def caesar_cipher(text: wp.array(dtype=wp.uint8), out: wp.array(dtype=wp.uint8), shift: int):
    i = wp.tid()
    letter = int(text[i])
    if letter >= 97 and letter <= 122:
        letter = (letter - 97 + shift) % 26 + 97
    out[i] = wp.uint8(letter)


@wp.kernel
def half_mix(
    a: wp.array(dtype=wp.float16), b: wp.array(dtype=wp.float16), out: wp.array(dtype=wp.float16), t: wp.float16
):
    i = wp.tid()
    out[i] = wp.lerp(a[i], b[i], t)
