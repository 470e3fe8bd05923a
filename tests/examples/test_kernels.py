"""The example kernels have no findings and no spills, emit the golden PTX, and are correct at small sizes on the
simulator. `PYPTX_UPDATE_GOLDENS=1` rewrites the golden PTX."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from pyptx import Kernel, Tile, sim
from pyptx.ir.nodes import Function
from pyptx.tensormap import tensor_map

GOLDENS = Path(__file__).parent / "goldens"
KERNELS = Path(__file__).parents[2] / "examples" / "kernels"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One example file: its targets, its shape, and the instructions that its machine code must contain."""

    name: str
    targets: tuple[str, ...]
    shape: dict[str, Any] = field(default_factory=dict[str, Any])
    sass: tuple[str, ...] = ()


PORTABLE = ("sm_80", "sm_90a", "sm_100a", "sm_120a")
CASES = [
    Case("vector_add", PORTABLE, {"n": 1 << 20}, ("LDG.E.128", "STG.E.128")),
    Case("transpose", PORTABLE, {"m": 4096, "n": 2048}, ("STS", "LDS")),
    Case("rmsnorm", PORTABLE, {"m": 512, "n": 4096}, ("LDG.E.128", "SHFL.BFLY", "MUFU.RSQ")),
    Case("softmax", PORTABLE, {"m": 512, "n": 4096}, ("LDG.E.128", "MUFU.EX2")),
    Case("histogram", PORTABLE, {"n": 1 << 20}, ("ATOMS", "RED")),
    Case("tma_copy", ("sm_90a", "sm_100a", "sm_120a"), {"m": 1000, "n": 520}, ("UTMALDG.2D", "UTMASTG.2D", "SYNCS")),
    Case("wgmma_tile", ("sm_90a",), {}, ("UTMALDG.2D", "HGMMA.64x64x16.F32.BF16")),
    Case(
        "hopper_gemm",
        ("sm_90a",),
        {"m": 4096, "n": 4096, "k": 4096},
        ("UTMALDG.2D.MULTICAST", "HGMMA.64x256x16.F32.BF16", "STSM.16.M88.4", "UTMASTG.2D", "USETMAXREG.TRY_ALLOC"),
    ),
    Case(
        "mma_gemm",
        ("sm_80", "sm_89", "sm_120a"),
        {"m": 4096, "n": 4096, "k": 4096},
        ("LDGSTS.E.BYPASS", "LDSM.16.M88.4", "HMMA.16816.F32.BF16"),
    ),
    Case("tcgen05_tile", ("sm_100a", "sm_103a"), {}, ("UTMALDG.2D", "UTCHMMA", "UTCBAR", "LDTM.x32")),
    Case(
        "tcgen05_gemm",
        ("sm_100a", "sm_103a"),
        {"m": 4096, "n": 4096, "k": 4096},
        ("UTMALDG.2D.2CTA", "UTCHMMA.2CTA", "UTCBAR.2CTA.MULTICAST", "LDTM.x32", "UTMASTG.2D"),
    ),
    Case(
        "attention",
        ("sm_90a",),
        {"h": 16, "s": 4096},
        ("UTMALDG.3D", "HGMMA.64x128x16.F32.BF16", "MUFU.EX2", "USETMAXREG.TRY_ALLOC"),
    ),
]
EVERY = [(case, target) for case in CASES for target in case.targets]
EVERY_ID = [f"{case.name}-{target}" for case, target in EVERY]


def example(name: str) -> ModuleType:
    return import_module(f"examples.kernels.{name}")


def make_kernel(case: Case, target: str) -> Kernel:
    return example(case.name).make(target)


def test_every_file_and_golden_has_a_case() -> None:
    names = {case.name for case in CASES}
    assert {path.stem for path in KERNELS.glob("*.py")} == names
    assert {path.stem for path in GOLDENS.glob("*.ptx")} == names


@pytest.mark.parametrize(("case", "target"), EVERY, ids=EVERY_ID)
def test_a_kernel_is_clean_and_assembles_without_spills(case: Case, target: str) -> None:
    kernel = make_kernel(case, target)
    assert [str(finding) for finding in kernel.check(**case.shape)] == []
    assert kernel.cubin(**case.shape).diagnostics == ()
    needs = kernel.resources(**case.shape)
    assert (needs.spill_stores, needs.spill_loads) == (0, 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_ptx_is_the_golden(case: Case) -> None:
    text = make_kernel(case, case.targets[0]).ptx(**case.shape)
    golden = GOLDENS / f"{case.name}.ptx"
    if os.environ.get("PYPTX_UPDATE_GOLDENS"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_machine_code_has_the_instructions_it_was_written_for(case: Case) -> None:
    text = make_kernel(case, case.targets[0]).sass(**case.shape)
    assert [word for word in case.sass if word not in text] == []


@dataclass(frozen=True)
class Run:
    """One launch on the simulator: inputs are normal numbers times `scale`; results must be within rtol and atol."""

    name: str
    shape: dict[str, int]
    rtol: float = 0.0
    atol: float = 0.0
    scale: float = 1.0


HALF = 2.0**-8
"""Half a unit in the last place of bf16."""
RUNS = [
    *(Run("vector_add", {"n": n}) for n in (1, 1023, 1024, 2050)),
    *(Run("transpose", {"m": m, "n": n}) for m, n in ((32, 32), (64, 96), (33, 70), (1, 5))),
    *(Run("rmsnorm", {"m": 3, "n": n}, rtol=2e-6) for n in (4, 1024, 1300)),
    *(Run("softmax", {"m": 3, "n": n}, rtol=2e-5, atol=1e-30, scale=20) for n in (4, 1024, 2500)),
    *(Run("histogram", {"n": n}) for n in (4, 5000)),
    *(Run("tma_copy", {"m": m, "n": n}) for m, n in ((64, 64), (100, 72))),
    Run("wgmma_tile", {}, atol=1e-4),
    Run("tcgen05_tile", {}, atol=1e-4),
    *(Run("mma_gemm", {"m": m, "n": n, "k": k}, HALF, 1e-3) for m, n, k in ((128, 128, 64), (128, 256, 320))),
    *(Run("hopper_gemm", {"m": m, "n": n, "k": k}, HALF, 1e-3)
      for m, n, k in ((256, 256, 64), (256, 256, 512), (300, 520, 200))),
    *(Run("tcgen05_gemm", {"m": m, "n": n, "k": k}, HALF, 1e-3) for m, n, k in ((256, 256, 128), (300, 520, 200))),
    *(Run("attention", {"h": h, "s": s}, 2 * HALF, 4e-3, 2) for h, s in ((1, 128), (2, 384))),
]  # fmt: skip


DTYPES: dict[str, Any] = {"f32": np.float32, "bf16": ml_dtypes.bfloat16, "u8": np.uint8, "u32": np.uint32}


def make_input(tile: Tile, shape: dict[str, int], scale: float, seed: int) -> Array:
    """Return an input of a tile's shape and type."""
    random, dims = np.random.default_rng(seed), tile.resolve_shape(shape)
    if tile.dtype.kind == "u":
        return random.integers(0, 1 << tile.dtype.bits, dims).astype(DTYPES[tile.dtype.name])
    return (random.standard_normal(dims) * scale).astype(DTYPES[tile.dtype.name])


def simulate_run(run: Run, schedule: str) -> tuple[Array, Array]:
    """Return the result of a kernel on the simulator, and its reference."""
    kernel, shape = example(run.name).make(), run.shape
    module = kernel.module(**shape)
    inputs = [make_input(tile, shape, run.scale, seed) for seed, tile in enumerate(kernel.in_specs)]
    (result,) = kernel.out_specs
    output = np.zeros(result.resolve_shape(shape), DTYPES[result.dtype.name])
    if result.dtype.kind == "f":
        output.fill(np.nan)
    (entry,) = (item for item in module.directives if isinstance(item, Function))
    names = [param.name for param in entry.params]
    args: dict[str, Any] = {}
    for name, tile, array in zip(names, (*kernel.in_specs, result), (*inputs, output), strict=False):
        args[name] = array
        if f"{name}_tma_desc" in names:
            args[f"{name}_tma_desc"] = sim.Tensor(array, tensor_map(tile, shape, 0))
    sim.run(module, kernel.name, grid=example(run.name).grid(**shape), block=kernel.block, cluster=kernel.cluster,
            args=args, shared=kernel.dynamic_smem(**shape), schedule=schedule)  # fmt: skip
    return output, example(run.name).reference(*inputs)


@pytest.mark.parametrize("schedule", ["eager", "lazy"])
@pytest.mark.parametrize("run", RUNS, ids=lambda run: "-".join([run.name, *map(str, run.shape.values())]))
def test_a_kernel_computes_its_reference(run: Run, schedule: str) -> None:
    got, expected = simulate_run(run, schedule)
    np.testing.assert_allclose(got.astype(np.float64), expected.astype(np.float64), run.rtol, run.atol)


def test_mma_gemm_refuses_shapes_that_its_tiles_do_not_fill() -> None:
    with pytest.raises(ValueError, match="M and N must be multiples of 128, K of 64; found 128, 128, 100"):
        example("mma_gemm").grid(128, 128, 100)


@pytest.mark.parametrize("name", ["mma_gemm", "hopper_gemm", "tcgen05_gemm"])
def test_the_ptx_of_a_product_does_not_grow_with_the_problem(name: str) -> None:
    kernel = example(name).make()
    small, large = (kernel.ptx(m=size, n=size, k=size) for size in (128, 8192))
    assert len(small.splitlines()) == len(large.splitlines())
