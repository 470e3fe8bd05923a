"""Outputs that a call allocates are uninitialized: unwritten elements are reported, and with `check="outputs"` those of
other arrays as well."""

from __future__ import annotations

import linecache
import re
from typing import Any

import numpy as np
import pytest

from examples.parts.example import find_example
from pyptx import TensorSpec, Tile, kernel, ptx, sim
from pyptx.cli import main
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.hazards import Finding
from pyptx.types import f32, u32
from tests.messages import raises
from tests.sim.kernels import HEAD

VECTOR_ADD = find_example("any/vector_add")

Array = np.ndarray[Any, Any]
TEXT = f"""{HEAD}
.visible .entry k(.param .u64 x, .param .u64 y, .param .u32 n)
{{
.reg .b32 %r<9>; .reg .b64 %x, %y; .reg .pred %p; .reg .b16 %h;
ld.param.u64 %x, [x]; ld.param.u64 %y, [y]; ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x; mov.u32 %r3, %ctaid.x; mov.u32 %r4, %ntid.x; mad.lo.u32 %r2, %r3, %r4, %r2;
setp.ge.u32 %p, %r2, %r1;
mad.wide.u32 %x, %r2, 4, %x; mad.wide.u32 %y, %r2, 4, %y;
@!%p ld.global.u32 %r5, [%x];
{{store}}
ret;
}}
"""
WORD = "@!%p st.global.u32 [%y], %r5;"


def find_unwritten(
    n: int, grid: int = 2, *, store: str = WORD, check: str = "outputs", outputs: str = "y", **options: Any
) -> list[Finding]:
    """Copy n of 96 words, viewed as 12 rows of eight. `outputs` names arrays by letters, or `-` for all."""
    arrays = {"x": np.arange(96, dtype=np.uint32), "y": np.zeros((12, 8), np.uint32), "z": np.zeros(96, np.uint32)}
    output_arrays = None if outputs == "-" else [arrays[letter] for letter in outputs]
    return sim.run(
        parse(text(store)),
        grid=grid,
        block=48,
        args=(arrays["x"], arrays["y"], n),
        check=check,
        outputs=output_arrays,
        **options,
    ).hazards


def text(store: str = WORD) -> str:
    return TEXT.replace("{store}", store).replace("{{", "{").replace("}}", "}")


def test_what_is_left_is_named_and_counted() -> None:
    (left,) = find_unwritten(90)
    assert (left.rule.code, left.count, left.where) == ("PTX0998", 6, "y")
    assert "`y`: 6 of 96, the first at [11, 2]" in left.what
    (left,) = find_unwritten(96, grid=1)
    assert "`y`: 48 of 96, the first at [6, 0]" in left.what


def test_all_or_nothing_is_no_part() -> None:
    assert find_unwritten(96) == []
    assert find_unwritten(0) == []


def test_half_an_element_is_not_written() -> None:
    (left,) = find_unwritten(96, store="cvt.u16.u32 %h, %r5; @!%p st.global.u16 [%y], %h;\nsetp.ge.u32 %p, %r2, 95;\n"
                    "@!%p st.global.u16 [%y+2], %h;")  # fmt: skip
    assert "1 of 96, the first at [11, 7]" in left.what


def test_only_outputs_count_and_all_arrays_where_none_are_named() -> None:
    assert find_unwritten(90, outputs="x") == []
    assert find_unwritten(90, outputs="") == []
    assert len(find_unwritten(90, outputs="-")) == 1
    with raises(PtxError, match="contains an array that is not among the arguments"):
        find_unwritten(90, outputs="yz")


def test_only_who_asks_by_name_hears_of_it() -> None:
    assert (
        find_unwritten(90, check="all")
        == find_unwritten(90, check="strict")
        == find_unwritten(90, check="uninitialised")
        == []
    )
    assert len(find_unwritten(90, check="all,outputs")) == 1
    with raises(PtxError, match="PTX0998"):
        find_unwritten(90, check="strict,outputs")


def test_a_machine_tells_when_it_has_finished() -> None:
    x, y = np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)
    for n, check, codes in ((90, "outputs", [("PTX0998", 6)]), (96, "outputs", []), (90, "all", [])):
        machine = sim.Machine(parse(text()), grid=2, block=48, args=(x, y, n), check=check, outputs=[y])
        machine.run()
        assert machine.hazards == []
        for _ in range(2):
            assert [(finding.rule.code, finding.count) for finding in machine.finish().hazards] == codes
    with raises(PtxError, match="contains an array that is not among the arguments"):
        sim.Machine(parse(text()), grid=2, block=48, args=(x, y, 9), check="outputs", outputs=[x.copy()]).finish()


def test_the_batches_of_a_grid_count_together() -> None:
    assert find_unwritten(96, batch_lanes=48) == []
    assert find_unwritten(90, batch_lanes=48)[0].count == 6


def test_kernels_know_their_outputs() -> None:
    add = VECTOR_ADD.make()
    x = np.ones(2048, np.float32)
    assert add.simulate(x, x, check="all,outputs").hazards == []
    zeros = np.zeros(2048, np.float32)
    assert add.simulate(x, x, grid=(1, 1, 1), out=zeros).hazards == []
    (left,) = add.simulate(x, x, grid=(1, 1, 1), out=zeros, check="all,outputs").hazards
    assert "`c`: 1024 of 2048, the first at [1024]" in left.what


@kernel(in_specs=(Tile("n", u32),), out_specs=(Tile("n", u32), Tile("n", f32)), grid=(1,), block=(32, 1, 1))
def counts(x: TensorSpec, y: TensorSpec, z: TensorSpec) -> None:
    _, py, _ = ptx.global_ptrs(x, y, z)
    ptx.red.add(u32, ptx.addr(py, ptx.special.tid.x() * 4), 1)


def test_an_atomic_on_an_output_that_the_call_allocates_reads_what_nobody_wrote() -> None:
    x = np.zeros(32, np.uint32)
    with raises(PtxError, match=r"PTX0913.*updates 4 bytes at y\+0x0, which was never written \(32 times\)"):
        counts(x)
    y, _ = counts(x, out=(np.zeros(32, np.uint32), np.zeros(32, np.float32)))
    assert y.tolist() == [1] * 32


def test_elements_that_nobody_wrote_are_a_warning_for_each_output_that_the_call_allocates() -> None:
    findings = counts.simulate(np.zeros(48, np.uint32), on_hazard="report").hazards
    left = [finding.what for finding in findings if finding.rule.code == "PTX0998"]
    assert left == ["`y`: 16 of 48, the first at [32]", "`z`: all 48"]
    with raises(PtxError, match="PTX0998"):
        VECTOR_ADD.make().simulate(*[np.ones(2048, np.float32)] * 2, grid=(1, 1, 1), check="strict")


def test_a_finding_about_outputs_lies_at_the_def_of_the_kernel() -> None:
    left, _ = counts.simulate(np.zeros(48, np.uint32), on_hazard="report").hazards[-2:]
    assert left.place.origin is not None
    assert linecache.getline(__file__, left.place.origin.line).startswith("def counts(")
    assert "| def counts(x: TensorSpec" in str(left)


def test_a_run_that_looked_at_uninitialized_outputs_says_so() -> None:
    x, y = np.zeros(48, np.uint32), (np.zeros(48, np.uint32), np.zeros(48, np.float32))
    whole, partly = "not checked: numerics, unused, ", "not checked: numerics, other outputs, unused, "
    assert whole in str(counts.simulate(x, on_hazard="report").coverage)
    assert "not checked: numerics, outputs, " in str(counts.simulate(x, out=y).coverage)
    words, zeros = np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)
    launch: dict[str, Any] = {"grid": 2, "block": 48, "args": (words, zeros, 96), "fresh": [zeros]}
    assert partly in str(sim.run(parse(text()), **launch).coverage)
    assert whole in str(sim.run(parse(text()), **launch, outputs=[zeros]).coverage)
    assert "outputs" in str(sim.run(parse(text()), **launch, outputs=[zeros], check="races").coverage)
    machine = sim.Machine(parse(text()), **launch, outputs=[zeros], check="all")
    assert whole in str(machine.finish().coverage)
    (result,) = sim.stream([sim.Launch(parse(text()), **launch)], outputs=[zeros])
    assert whole in str(result.coverage)


def test_the_remedy_names_out_only_where_the_call_allocates() -> None:
    x = np.zeros(48, np.uint32)
    source = counts.simulate(x, out=(x.copy(), np.zeros(48, np.float32)), check="all,outputs")
    assert [finding.diagnostic().help for finding in source.hazards] == [
        "let the grid cover the whole output, tail included"
    ]
    left, _ = counts.simulate(x, on_hazard="report").hazards[-2:]
    assert "`out=`" in (left.diagnostic().help or "")


def test_an_output_that_nobody_wrote_holds_the_same_odd_values_in_every_run() -> None:
    y, z = (counts.simulate(np.zeros(48, np.uint32), check="none").outputs[name] for name in "yz")
    assert y[32:].tolist() == [0xCCCCCCCC] * 16
    assert np.isnan(z).all()


def test_in_a_stream_the_place_is_the_kernel_that_was_to_write_the_output() -> None:
    x = np.zeros(2048, np.float32)
    first = VECTOR_ADD.make().stream_launch(x, x)
    _, second = sim.stream([first, counts.stream_launch(np.zeros(48, np.uint32))], on_hazard="report")
    places = {finding.where: finding.place.text for finding in second.hazards if finding.rule.code == "PTX0998"}
    assert places == {"y": "counts", "z": "counts"}


def test_launches_of_a_stream_share_an_uninitialized_array() -> None:
    x, y = np.arange(96, dtype=np.uint32), np.zeros(96, np.uint32)
    module = parse(text())
    launches = [sim.Launch(module, grid=2, block=48, args=args, fresh=[y]) for args in ((x, y, 90), (y, x, 96))]
    with raises(PtxError, match=r"PTX0913[^\n]*\(6 times\)"):
        sim.stream(launches)
    assert [
        stream_result.hazards
        for stream_result in sim.stream([sim.Launch(module, grid=2, block=48, args=(x, y, 96), fresh=[y])])
    ] == [[]]
    with raises(PtxError, match="`fresh` names an array that is not among the arguments"):
        sim.run(module, grid=2, block=48, args=(x, y, 96), fresh=[x.copy()])


def test_what_a_kernel_does_to_its_inputs_is_its_own_business() -> None:
    @kernel(in_specs=(Tile(64, u32),), out_specs=(Tile(64, u32),), grid=(1, 1, 1), block=(64, 1, 1))
    def swaps(x: TensorSpec, y: TensorSpec) -> None:
        px, py = ptx.global_ptrs(x, y)
        thread = ptx.special.tid.x()
        ptx.st(u32, ptx.addr(py, thread * 4), thread)
        with ptx.if_(thread < 9):
            ptx.st(u32, ptx.addr(px, thread * 4), thread)

    assert swaps.simulate(np.zeros(64, np.uint32), check="all,outputs").hazards == []


def test_the_shell_asks_for_classes(tmp_path: Any, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "k.ptx"
    path.write_text(text(WORD + " mov.b32 %r6, 0x7F000000; .reg .f32 %f; add.f32 %f, %r6, %r6;"), "utf-8")
    words = [str(path), "--grid", "2", "--block", "48"]
    words += [word for value in ("u32[96]=arange", "u32[96]=zeros", "u32=90") for word in ("--arg", value)]
    assert main(["sim", *words]) == 0
    assert "PTX09" not in capsys.readouterr().out
    assert main(["sim", *words, "--check", "all,numerics,outputs"]) == 0
    output = capsys.readouterr()
    assert sorted(re.findall(r"PTX09\d\d", output.out + output.err)) == ["PTX0993", "PTX0998"]
    assert main(["sim", *words, "--check", "strict,numerics"]) == 1
