"""The example kernels: clean, without spills, their PTX as it was, right at toy size on the simulator.

`PYPTX_UPDATE_GOLDENS=1` writes the golden PTX anew.
"""

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

from pyptx import Kernel, sim

GOLDENS = Path(__file__).parent / "goldens"
KERNELS = Path(__file__).parents[2] / "examples" / "kernels"
Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Case:
    """One file of examples: for which targets and which shape, what its machine code must contain."""

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
]
EVERY = [(case, target) for case in CASES for target in case.targets]
EVERY_ID = [f"{case.name}-{target}" for case, target in EVERY]


def example(name: str) -> ModuleType:
    return import_module(f"examples.kernels.{name}")


def made(case: Case, target: str) -> Kernel:
    return example(case.name).make(target)


def test_every_file_has_a_case() -> None:
    assert {path.stem for path in KERNELS.glob("*.py")} == {case.name for case in CASES}


@pytest.mark.parametrize(("case", "target"), EVERY, ids=EVERY_ID)
def test_a_kernel_is_clean_and_assembles_without_spills(case: Case, target: str) -> None:
    kernel = made(case, target)
    assert [str(found) for found in kernel.check(**case.shape)] == []
    assert kernel.cubin(**case.shape).diagnostics == ()
    needs = kernel.resources(**case.shape)
    assert (needs.spill_stores, needs.spill_loads) == (0, 0)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_ptx_is_the_golden(case: Case) -> None:
    text = made(case, case.targets[0]).ptx(**case.shape)
    golden = GOLDENS / f"{case.name}.ptx"
    if os.environ.get("PYPTX_UPDATE_GOLDENS"):
        golden.write_text(text, "utf-8")
    assert text == golden.read_text("utf-8")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_machine_code_has_the_instructions_it_was_written_for(case: Case) -> None:
    text = made(case, case.targets[0]).sass(**case.shape)
    assert [word for word in case.sass if word not in text] == []


def simulated(name: str, shape: dict[str, Any], args: list[Array], grid: tuple[int, ...] | None = None) -> None:
    """Run a kernel; the last array is its output."""
    kernel = example(name).make()
    sim.run(kernel.module(**shape), kernel.name, grid=grid or example(name).grid(**shape), block=kernel.block,
            cluster=kernel.cluster, args=args, shared=kernel.dynamic_smem(**shape))  # fmt: skip


def halves(*shape: int, seed: int = 0) -> Array:
    return numbers(*shape, seed=seed).astype(ml_dtypes.bfloat16)


def numbers(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("n", [1, 1023, 1024, 2050])
def test_vector_add_computes_its_reference(n: int) -> None:
    a, b, c = numbers(n), numbers(n, seed=1), np.full(n, np.nan, np.float32)
    simulated("vector_add", {"n": n}, [a, b, c])
    np.testing.assert_array_equal(c, example("vector_add").reference(a, b))


@pytest.mark.parametrize(("m", "n"), [(32, 32), (64, 96), (33, 70), (1, 5)])
def test_transpose_computes_its_reference(m: int, n: int) -> None:
    a, out = numbers(m, n), np.full((n, m), np.nan, np.float32)
    simulated("transpose", {"m": m, "n": n}, [a, out])
    np.testing.assert_array_equal(out, example("transpose").reference(a))


@pytest.mark.parametrize("n", [4, 1024, 1300])
def test_rmsnorm_computes_its_reference(n: int) -> None:
    x, w, y = numbers(3, n), numbers(n, seed=1), np.full((3, n), np.nan, np.float32)
    simulated("rmsnorm", {"m": 3, "n": n}, [x, w, y])
    np.testing.assert_allclose(y, example("rmsnorm").reference(x, w), rtol=2e-6)


@pytest.mark.parametrize("n", [4, 1024, 2500])
def test_softmax_computes_its_reference(n: int) -> None:
    x, y = numbers(3, n) * np.float32(20), np.full((3, n), np.nan, np.float32)
    simulated("softmax", {"m": 3, "n": n}, [x, y])
    np.testing.assert_allclose(y, example("softmax").reference(x), rtol=2e-5, atol=1e-30)


def test_histogram_computes_its_reference() -> None:
    data = np.random.default_rng(0).integers(0, 256, 5000).astype(np.uint8)
    counts = np.zeros(256, np.uint32)
    simulated("histogram", {"n": 5000}, [data, counts], grid=(3, 1, 1))
    np.testing.assert_array_equal(counts, example("histogram").reference(data))


@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 64), (128, 256, 320)])
def test_mma_gemm_computes_its_reference(m: int, n: int, k: int) -> None:
    a, b, c = halves(m, k), halves(n, k, seed=1), np.full((m, n), np.nan, ml_dtypes.bfloat16)
    simulated("mma_gemm", {"m": m, "n": n, "k": k}, [a, b, c])
    np.testing.assert_allclose(c.astype(np.float32), example("mma_gemm").reference(a, b), rtol=2**-8, atol=1e-3)


def test_mma_gemm_refuses_shapes_that_its_tiles_do_not_fill() -> None:
    with pytest.raises(ValueError, match="M and N are multiples of 128, K of 64; found 128, 128, 100"):
        example("mma_gemm").grid(128, 128, 100)


@pytest.mark.parametrize("name", ["mma_gemm", "hopper_gemm", "tcgen05_gemm"])
def test_the_ptx_of_a_product_does_not_grow_with_the_problem(name: str) -> None:
    kernel = example(name).make()
    small, large = (kernel.ptx(m=size, n=size, k=size) for size in (128, 8192))
    assert len(small.splitlines()) == len(large.splitlines())
