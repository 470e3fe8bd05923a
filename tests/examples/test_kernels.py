"""The example kernels have no findings and no spills, emit the golden PTX, and are correct at small sizes on the
simulator. `PYPTX_UPDATE_GOLDENS=1` rewrites the golden PTX."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from examples.parts.runs import DTYPES, RUNS, Run, make_input
from pyptx import Kernel, sim
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
