"""Kernels that were exported load in Python and run like the kernel; damaged exports are refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from examples.parts.example import Run, find_example
from pyptx import HazardWarning, Layout, PtxError, Tile, kernel, load_kernel, ptx
from pyptx.types import bf16, f32
from tests.messages import raises
from tests.runtime.conftest import Activate

from .test_calls import A, B, add_scaled, reverse_and_count
from .test_launching import write_ranks

HOPPER_GEMM = find_example("hopper/cluster_gemm")


def test_an_exported_kernel_runs_like_the_kernel(tmp_path: Path) -> None:
    add_scaled.export(tmp_path, n=1000)
    loaded = load_kernel(tmp_path)
    assert repr(loaded) == "<exported kernel add_scaled for sm_90a>"
    np.testing.assert_array_equal(loaded(A, B, scale=2.0), add_scaled(A, B, scale=2.0))
    out = np.zeros_like(A)
    assert loaded(A, B, args=[3.0], out=out) is out
    np.testing.assert_array_equal(out, add_scaled(A, B, scale=3.0))


def test_one_of_several_is_chosen_by_name(tmp_path: Path) -> None:
    add_scaled.export(tmp_path, n=1000)
    reverse_and_count.export(tmp_path, step=4)
    values = np.arange(32, dtype=np.int32)
    for found, expected in zip(
        load_kernel(tmp_path, "reverse_and_count")(values), reverse_and_count(values, step=4), strict=True
    ):
        np.testing.assert_array_equal(found, expected)


def test_tensor_maps_boxes_and_clusters_are_those_of_the_kernel(tmp_path: Path) -> None:
    shape: dict[str, Any] = {"m": 256, "n": 256, "k": 64}
    HOPPER_GEMM.make().export(tmp_path, **shape)
    inputs = HOPPER_GEMM.draw_inputs(Run(shape))
    result = load_kernel(tmp_path)(*inputs)
    assert result.tobytes() == HOPPER_GEMM.make()(*inputs).tobytes()


def test_tensors_are_those_of_the_kernel(tmp_path: Path) -> None:
    @kernel(
        in_specs=[
            Tile("m", "k", bf16, Layout.TMA_128B, tma_box=(64, 128), tma_rank=3),
            Tile("m", "k", bf16, tma_box=(64, "m"), tma_rank=3, tma_padding=True),
        ],
        out_specs=[Tile("k", "m", f32, Layout.COL)],
        grid=(1,),
    )  # fmt: skip
    def nothing(a: Any, b: Any, c: Any) -> None:
        ptx.ret()

    nothing.export(tmp_path, m=128, k=256)
    loaded = load_kernel(tmp_path)
    assert loaded.in_specs == (
        Tile(128, 256, bf16, Layout.TMA_128B, tma_box=(64, 128), tma_rank=3),
        Tile(128, 256, bf16, tma_box=(64, 128), tma_rank=3, tma_padding=True),
    )
    assert loaded.out_specs == (Tile(256, 128, f32, Layout.COL),)


def test_an_exported_kernel_runs_on_a_device(tmp_path: Path, activate: Activate) -> None:
    torch = pytest.importorskip("torch")
    activate()
    add_scaled.export(tmp_path, n=1000)
    found = load_kernel(tmp_path)(torch.from_numpy(A), torch.from_numpy(B), scale=2.0)
    np.testing.assert_array_equal(found.numpy(), A + np.float32(2) * B)
    write_ranks.export(tmp_path)
    assert load_kernel(tmp_path, "write_ranks")(stream=0).to_numpy().tolist() == [0, 1]


def test_warnings_are_shown_at_the_call(tmp_path: Path) -> None:
    @kernel(out_specs=[Tile(1, f32)], grid=(1,))
    def nothing(out: Any) -> None:
        ptx.ret()

    nothing.export(tmp_path)
    with pytest.warns(HazardWarning) as caught:
        load_kernel(tmp_path)()
    assert caught[0].filename == __file__


def test_other_shapes_and_keywords_are_refused(tmp_path: Path) -> None:
    add_scaled.export(tmp_path, n=64)
    with raises(PtxError, match="`a`: dimension 0 must be 64"):
        load_kernel(tmp_path)(A, A, scale=1.0)
    with raises(PtxError, match="was exported with its shape and template parameters; found n"):
        load_kernel(tmp_path)(A[:64].copy(), A[:64].copy(), scale=1.0, n=64)
    with raises(PtxError, match="was exported with its shape and template parameters; found n, arch"):
        load_kernel(tmp_path).trace(n=64, arch="sm_90")


def change_manifest(key: str, value: Any) -> Callable[[Path], None]:
    """Return a function that changes an entry of the manifest; None removes it."""

    def change(folder: Path) -> None:
        file = folder / "add_scaled.json"
        manifest = json.loads(file.read_text("utf-8"))
        manifest[key] = value
        file.write_text(json.dumps({k: v for k, v in manifest.items() if v is not None}), "utf-8")

    return change


DAMAGE: list[tuple[Callable[[Path], object], str]] = [
    (lambda folder: (folder / "add_scaled.json").unlink(), "expected one manifest in .*, found none"),
    (
        lambda folder: (folder / "other.json").touch(),
        r"found add_scaled\.json, other\.json",
    ),
    (lambda folder: (folder / "add_scaled.json").write_text("[", "utf-8"), "is not the manifest .*: JSONDecodeError"),
    (lambda folder: (folder / "add_scaled.json").write_text("[]", "utf-8"), "is not the manifest .*: TypeError"),
    (
        lambda folder: (folder / "add_scaled.json").write_text("[" * 100_000, "utf-8"),
        "is not the manifest .*: RecursionError",
    ),
    (change_manifest("format", 2), "was exported in format 2, this version reads format 1"),
    (change_manifest("kernel", None), "is not the manifest .*: KeyError"),
    (change_manifest("target", "sm_1"), "is not the manifest .*: ValueError: target sm_1"),
    (change_manifest("block", [1]), "is not the manifest .*: ValueError"),
    (change_manifest("tensors", [{"name": "a"}]), "is not the manifest .*: KeyError"),
    (lambda folder: (folder / "add_scaled.ptx").unlink(), r"add_scaled\.ptx cannot be read: No such file"),
    (lambda folder: (folder / "add_scaled.fatbin").write_bytes(b""), r"add_scaled\.fatbin is not the file that was"),
]


@pytest.mark.parametrize(("damage", "message"), DAMAGE, ids=[message for _, message in DAMAGE])
def test_a_damaged_export_is_refused(damage: Callable[[Path], object], message: str, tmp_path: Path) -> None:
    add_scaled.export(tmp_path, n=64)
    damage(tmp_path)
    with pytest.raises(PtxError, match=f"PTX1006.*{message}"):
        load_kernel(tmp_path)


def test_a_missing_directory_or_kernel_is_named(tmp_path: Path) -> None:
    with pytest.raises(PtxError, match=r"PTX1006.*there is no directory"):
        load_kernel(tmp_path / "absent")
    add_scaled.export(tmp_path, n=64)
    with pytest.raises(PtxError, match=r"expected the manifest other\.json in .*, found add_scaled\.json"):
        load_kernel(tmp_path, "other")
