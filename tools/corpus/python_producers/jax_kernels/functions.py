"""Array functions that XLA fuses into kernels of its own."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def softmax(x):
    return jax.nn.softmax(x, axis=-1)


def layernorm(x, weight, bias):
    mean = x.mean(axis=-1, keepdims=True)
    rstd = jax.lax.rsqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    return (x - mean) * rstd * weight + bias


def gelu(x):
    return 0.5 * x * (1.0 + jax.lax.erf(x * 0.7071067811865476))


def argmax(x):
    return x.argmax(axis=-1).astype(jnp.int32)


def cumsum(x):
    return jnp.cumsum(x, axis=-1)


def sort(x):
    return jnp.sort(x, axis=-1)


def gather_rows(table, index):
    return jnp.take(table, index, axis=0, mode="clip")


def scatter_add(x, index):
    return jnp.zeros((16, 32), x.dtype).at[index].add(x, mode="drop")


def transpose(x):
    return x.T.copy()


def column_sums(x):
    return x.sum(axis=0)


def matmul(a, b):
    return jax.lax.dot(a, b, preferred_element_type=jnp.float32)


def matmul_gelu(a, b):
    return gelu(jax.lax.dot(a, b, preferred_element_type=jnp.float32))


def random_bits(key):
    return jax.random.bits(key, (512,), jnp.uint32)


def convert_fp8(x):
    return x.astype(jnp.float8_e4m3fn)


def complex_exp(x):
    return jnp.exp(x)


def gamma_functions(x):
    return jax.lax.lgamma(x) + jax.lax.digamma(x)


def inverse_error(x):
    return jax.lax.erf_inv(x)


def max_pool(x):
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (2, 2), (2, 2), "VALID")


def population_count(x):
    return jax.lax.population_count(x)


def clamp_reverse(x):
    return jnp.flip(jnp.clip(x, -0.5, 0.5), axis=0)


def power_iteration(x):
    return jax.lax.fori_loop(0, 8, lambda _, v: jnp.sqrt(v * v + 1.0) - 0.25 * v, x)


def double_trigonometry(x):
    return jnp.sin(x) * jnp.cosh(x) + jnp.arctan2(x, 2.0) + jnp.power(jnp.abs(x), 1.5)


def bilinear_gradient(x):
    return jnp.gradient(x)[0] - jnp.gradient(x)[1]


def logsumexp(x):
    return jax.nn.logsumexp(x, axis=-1)


def integer_divisions(x, y):
    return x // y + x % y


def mean_variance(x):
    return x.mean(), x.var()
