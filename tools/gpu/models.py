"""Checks of the models in `examples/models`: they train on a GPU as the library's own operations do."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from examples.parts.example import HALF
from tools.gpu.checks import Machine, check

STEPS, BACKEND = 5, "inductor"


@check("losses of a Llama block of kernels in PyTorch, eager and compiled by Inductor", "PyTorch with CUDA")
def torch_llama(machine: Machine) -> str:
    """Compare five steps of training with those of PyTorch's operations in f32."""
    return compare(machine, "llama_torch", {}, {"backend": BACKEND})


@check("losses of a Llama block of kernels in JAX", "JAX with CUDA")
def jax_llama(machine: Machine) -> str:
    """Compare five steps of training with those of jax.numpy in f32."""
    return compare(machine, "llama_jax", {})


def compare(machine: Machine, name: str, *variants: dict[str, Any]) -> str:
    """Train a model with each of these options, and compare the losses with those of the plain one."""
    if machine.target != "sm_90a":
        return "not run, the kernels are for Hopper"
    model: Any = import_module(f"examples.models.{name}")
    for options in variants:
        for step, (loss, expected) in enumerate(model.train_both(STEPS, **options)):
            assert abs(loss - expected) < HALF * expected, f"{options} step {step}: {loss}, expected {expected}"
    return f"{len(variants)} × {STEPS} steps"
