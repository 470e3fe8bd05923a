"""Mistakes in arguments and options, and arrays that share memory."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any, cast

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import PtxError
from pyptx.parser import parse
from pyptx.sim.launch import overlaps, room
from pyptx.sim.state.unstarted import PendingClusters
from pyptx.tensormap import ElementType, TensorMap, encode
from tests.messages import raises
from tests.sim.kernels import assert_reported, kernel

COPY = kernel(
    "ld.param.u64 %rd1, [from]; mad.wide.u32 %rd1, %t, 4, %rd1; ld.global.u32 %r1, [%rd1];\nst.global.u32 [%o], %r1;",
    params=".param .u64 out, .param .u64 from",
)
NUMBER = kernel("ld.param.u32 %r1, [n];\nst.global.u32 [%o], %r1;", params=".param .u64 out, .param .u32 n")
OUT = np.zeros(32, np.uint32)
WRONG: dict[str, tuple[dict[str, Any], str, str]] = {
    "no arguments": ({"args": None}, "PTX1102", "mapping from names to arguments, found NoneType"),
    "one string": ({"args": "ab"}, "PTX1102", "mapping from names to arguments, found str"),
    "a fraction": ({"args": [OUT, 1.5]}, "PTX1102", "`n` is .u32, but 1.5 is not an integer"),
    "a NumPy number of another size": ({"args": [OUT, np.int64(1)]}, "PTX1102", "a plain Python number"),
    "an array for a number": ({"args": [OUT, OUT]}, "PTX1102", "an array is passed by its address"),
    "an array without dimensions": ({"args": [np.array(1, np.uint32), 1]}, "PTX1102", "shape (1,)"),
    "objects": ({"args": [np.array([None]), 1]}, "PTX1102", "an array of object cannot be passed"),
    "texts": ({"args": [np.array(["a"]), 1]}, "PTX1102", "cannot be passed"),
    "dates": ({"args": [np.zeros(1, "M8[s]"), 1]}, "PTX1102", "cannot be passed"),
    "a mask": ({"args": [np.ma.masked_less(OUT, 1), 1]}, "PTX1102", "`out`: a masked array cannot be passed"),
    "a number that is too large": ({"args": [OUT, 1 << 32]}, "PTX1102", "from -2147483648 to 4294967295"),
    "big-endian": ({"args": [np.zeros(1, ">f4"), 1]}, "PTX1102", "`out`: >f4 is big-endian"),
    "no grid": ({"grid": None}, "PTX1103", "grid: expected one to three positive integers, found None"),
    "a grid in words": ({"grid": "2"}, "PTX1103", "positive integers, found '2'"),
    "half a grid": ({"grid": 1.5}, "PTX1103", "positive integers, found 1.5"),
    "a high grid": ({"grid": (1, 65536)}, "PTX1103", "the limit in y is 65535"),
    "a deep block": ({"block": (1, 1, 65)}, "PTX1103", "the limit in z is 64"),
    "a large cluster": ({"grid": 32, "cluster": 32}, "PTX1103", "the cluster has 32 CTAs, but the limit is 16"),
    "a deep cluster": (
        {"grid": (2, 2, 8), "cluster": (2, 2, 8)},
        "PTX1103",
        "the cluster has 32 CTAs, but the limit is 16",
    ),
    "shared memory in words": ({"shared": "4"}, "PTX1103", "shared: expected an integer of at least 0, found '4'"),
    "a seed below zero": ({"seed": -1}, "PTX1103", "seed: expected an integer of at least 0, found -1"),
    "no seed": ({"seed": None}, "PTX1103", "seed: expected an integer of at least 0, found None"),
    "no steps": ({"max_steps": 0}, "PTX1103", "max_steps: expected an integer of at least 1, found 0"),
    "no lanes": ({"batch_lanes": 0}, "PTX1103", "batch_lanes: expected an integer of at least 1, found 0"),
    "no check": ({"check": None}, "PTX1103", "check is None"),
    "a number to watch": ({"watch": 5}, "PTX1102", "watch is 5"),
    "a grid of many digits": ({"grid": 1 << 20000}, "PTX1103", "positive integers, found an integer of 20001 bits"),
    "shared memory of many digits": (
        {"shared": 1 << 20000},
        "PTX1103",
        "shared: expected an integer of at least 0, found an integer of 20001 bits",
    ),
    "an argument of many digits": ({"args": [OUT, 1 << 20000]}, "PTX1102", "an integer of 20001 bits does not fit"),
    "an array of many bytes": (
        {"args": [np.broadcast_to(np.float32(1), (1 << 50,)), 1]},
        "PTX1107",
        "not enough memory for a contiguous copy",
    ),
    "a list for a name": ({"entry": ["k"]}, "PTX1101", "entry: expected a name or None, found ['k']"),
    "images without names": ({"images": 1}, "PTX1102", "images: expected {'name': sim.Texture(array)}, found 1"),
    "parts without offsets": ({"parts": ["ring"]}, "PTX1102", "parts: expected {'name': offset}, found ['ring']"),
    "outputs that are no arrays": (
        {"outputs": [1], "check": "all,outputs"},
        "PTX1102",
        "`outputs` takes a list of arrays",
    ),
}


@pytest.mark.parametrize(("options", "code", "words"), list(WRONG.values()), ids=list(WRONG))
def test_what_callers_get_wrong(options: dict[str, Any], code: str, words: str) -> None:
    assert_reported(NUMBER, code, words, **{"args": [OUT, 1], **options})


def test_a_module_without_an_entry() -> None:
    assert_reported(".version 8.0\n.target sm_90\n.address_size 64\n", "PTX1101", "the module has no entry")


LIMITS = {
    "threads": (".maxntid 32, 1, 1", {"block": 64}, "`.maxntid` allows 32"),
    "ranks": (".maxclusterrank 2", {"grid": 4, "cluster": 4}, "`.maxclusterrank` allows 2"),
    "another cluster": (".reqnctapercluster 2", {"grid": 4, "cluster": 4}, "the kernel requires (2, 1, 1)"),
    "no cluster": (".explicitcluster", {"grid": 4}, "the launch specifies no cluster"),
}


@pytest.mark.parametrize(("directive", "options", "words"), list(LIMITS.values()), ids=list(LIMITS))
def test_the_limits_of_an_entry(directive: str, options: dict[str, Any], words: str) -> None:
    assert_reported(NUMBER.replace(")\n{", f")\n{directive}\n{{"), "PTX1103", words, args=[OUT, 1], **options)


@pytest.mark.parametrize(("target", "limit"), [("sm_80", 232448), ("sm_90a", 232448), ("sm_120a", 101376)])
def test_shared_memory_of_the_target(target: str, limit: int) -> None:
    text = NUMBER.replace("sm_90a", target)
    sim.run(parse(text), args=[OUT.copy(), 1], shared=limit)
    assert_reported(text, "PTX1103", f"but the limit on {target} is {limit}", args=[OUT, 1], shared=limit + 1)


def test_views_of_one_buffer_are_one_memory() -> None:
    buffer = np.arange(96, dtype=np.uint32)
    sim.run(parse(COPY), block=32, args=[buffer[32:], buffer[:64]])
    assert buffer.tolist() == [*range(32), *range(32), *range(64, 96)]
    race = assert_reported(COPY, "PTX0901", "out and from", block=64, args=[buffer[32:], buffer[:64]])
    assert "reads" in str(race) or "writes" in str(race)
    assert buffer.tolist() == [*range(32), *range(32), *range(64, 96)]


def test_a_read_only_view_sees_what_is_written() -> None:
    buffer = np.arange(64, dtype=np.uint32)
    view = buffer.view()
    view.flags.writeable = False
    machine = sim.Machine(parse(COPY), block=32, args=[buffer[32:], view])
    machine.run()
    assert machine.memory("from").tolist() == [*range(32), *range(32)]
    assert machine.memory("out").tolist() == [*range(32)]


def test_partly_written_views_name_their_first_element() -> None:
    buffer = np.zeros(96, np.uint32)
    result = sim.run(parse(COPY), block=16, args=[buffer[48:], buffer[:64]], check="all,outputs", outputs=[buffer[48:]])
    assert ["[16]" in str(finding) for finding in result.hazards] == [True]


def test_views_that_are_not_contiguous_may_not_overlap() -> None:
    square = np.zeros((8, 8), np.uint32)
    assert_reported(COPY, "PTX1102", "the arguments 0 and 1 share memory", block=32, args=[square, square.T])
    interleaved = np.zeros(64, np.uint32)
    interleaved[1::2] = 7
    sim.run(parse(COPY), block=32, args=[interleaved[::2], interleaved[1::2]])
    assert interleaved.tolist() == [7] * 64


def test_a_sliding_window_is_not_written() -> None:
    window = np.lib.stride_tricks.as_strided(np.zeros(40, np.uint32), (8, 8), (4, 4))
    assert_reported(COPY, "PTX1113", "`out` is read-only", block=32, args=[window, OUT])


@pytest.mark.parametrize("by", range(5))
def test_clusters_start_in_order_or_in_batches_from_the_end(by: int) -> None:
    for clusters in range(1, 14):
        pending, starts = PendingClusters((2, 1, 1), (2 * clusters, 1, 1), by), list[int]()
        while pending.remaining:
            starts += pending.start(2 * (by or 3))[::2].tolist()
            last = pending.cancel()
            starts += [] if last is None else [last]
        firsts = list(range(0, 2 * clusters, 2))
        parts = [firsts[index : index + by] for index in range(0, clusters, by)] if by else []
        assert starts == ([first for part in reversed(parts) for first in part] if by else firsts)


def test_the_largest_grid_starts_at_once_and_one_that_is_resident_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "find_free_memory", lambda: 32 << 30)
    largest = (2**31 - 1, 65535, 65535)
    machine = sim.Machine(parse(NUMBER), args=[OUT, 1], grid=largest, schedule="adversarial", seed=1)
    assert machine.registers(cta=largest[0] * largest[1] * largest[2] - 1)
    with raises(PtxError, match="not enough memory to run 2147483647 CTAs"):
        sim.Machine(parse(NUMBER), args=[OUT, 1], grid=2**31 - 1, cooperative=True)


BY_VALUE = kernel("ret;", params=".param .align 64 .b8 s[128]")
MAP = TensorMap(ElementType.F32, 0, (8, 8), (32,), (8, 8))
FIELDS: dict[str, tuple[Any, str]] = {
    "a number without a size": (sim.Struct(128, [(8, 5)]), "give it a type: np.int32(5)"),
    "beyond the end": (sim.Struct(128, [(124, OUT)]), "lies outside a structure of 128 bytes"),
    "before the beginning": (sim.Struct(128, [(-8, OUT)]), "the field at byte -8"),
    "an array for a map": (OUT, "sim.Tensor(array, TensorMap(…))"),
    "an impossible size": (sim.Struct(1 << 60, []), "the argument has 1152921504606846976"),
    "a negative size": (sim.Struct(-1, []), "the argument has -1"),
    "a number for a structure": (1 << 20000, "for a structure, pass sim.Struct(…)"),
    "a number of many digits": (
        sim.Struct(128, [(0, 1 << 20000)]),
        "is an integer of 20001 bits, a number without a type",
    ),
    "no map": (sim.Tensor(OUT, cast("Any", None)), "sim.Tensor takes a TensorMap, found NoneType"),
    "a pointer to an array": (sim.Pointer(OUT), "pass the array; a sim.Pointer takes"),
    "a pointer to nothing": (sim.Pointer([]), "a sim.Pointer cannot point to nothing"),
    "a pointer to a number": (sim.Pointer([1]), "`s[0]` is 1, a number without a type"),
    "a pointer to text": (sim.Pointer(["x"]), "`s[0]`: a value of type str cannot be passed"),
    "a map of a list": (sim.Tensor(cast("Any", [1]), MAP), "sim.Tensor takes a NumPy array, found list"),
}


@pytest.mark.parametrize(("value", "words"), list(FIELDS.values()), ids=list(FIELDS))
def test_values_of_structures_and_maps(value: Any, words: str) -> None:
    assert_reported(BY_VALUE, "PTX1102", words, args=[value])


WRONG_VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    "fields without offsets": (lambda: sim.Struct(8, cast("Any", [1, 2])), "byte offsets and values"),
    "no fields": (lambda: sim.Struct(8, cast("Any", None)), "byte offsets and values"),
    "a size in words": (lambda: sim.Struct(cast("Any", "8"), []), "sim.Struct has an invalid size or fields: '8'"),
    "an offset in words": (lambda: sim.Struct(8, [(cast("Any", "0"), OUT)]), "byte offsets and values"),
    "no replicas": (lambda: sim.Multicast([]), "one per device, found"),
    "numbers for replicas": (lambda: sim.Multicast(cast("Any", [1])), "one per device, found \\[1\\]"),
}


@pytest.mark.parametrize(("make", "words"), list(WRONG_VALUES.values()), ids=list(WRONG_VALUES))
def test_values_that_say_nothing(make: Callable[[], Any], words: str) -> None:
    with raises(PtxError, match=words):
        make()


def test_numbers_beyond_every_format() -> None:
    text = kernel("ret;", params=".param .f32 x")
    for value in (1e300, 1 << 2000):
        assert_reported(text, "PTX1102", "does not fit", args=[value])


@pytest.mark.parametrize(("kind", "low", "high"), [("s32", -(2**31), 2**31 - 1), ("u32", -(2**31), 2**32 - 1)])
def test_integers_beyond_the_parameter_are_refused_instead_of_cut_off(kind: str, low: int, high: int) -> None:
    text = kernel("ret;", params=f".param .{kind} n")
    for value in (low, high):
        sim.run(parse(text), args=[value])
    for value in (low - 1, high + 1):
        assert_reported(
            text, "PTX1102", f"`n` is .{kind}, but {value} does not fit", f"from {low} to {high}", args=[value]
        )


def test_integers_that_a_float_cannot_hold_are_refused_instead_of_rounded() -> None:
    text = kernel("ret;", params=".param .f32 x")
    sim.run(parse(text), args=[1 << 24])
    sim.run(parse(text), args=[float((1 << 24) + 1)])
    assert_reported(
        text,
        "PTX1102",
        "cannot represent 16777217; the nearest value is 16777216",
        "pass float(16777217)",
        args=[(1 << 24) + 1],
    )


def test_masks_of_tensors_and_structures_are_refused() -> None:
    masked_array = np.ma.masked_less(np.arange(64, dtype=np.float32).reshape(8, 8), 9)
    for value in (sim.Tensor(masked_array, MAP), sim.Struct(128, [(0, masked_array)])):
        assert_reported(BY_VALUE, "PTX1102", "a masked array cannot be passed", "`s.filled(value)`", args=[value])


def test_a_stream_takes_launches_and_a_machine_what_launches() -> None:
    module = parse(NUMBER)
    for wrong in (module, [module], sim.Launch(module, args=[OUT, 1])):
        with raises(PtxError, match=r"a list of sim\.Launch"):
            sim.stream(cast("Any", wrong))
    with raises(PtxError, match=r"sim\.Machine has no option `bloc`"):
        sim.Machine(module, args=[OUT, 1], bloc=3)


def test_questions_that_a_machine_cannot_answer() -> None:
    machine = sim.Machine(parse(kernel("st.global.u32 [%o], %t;", module=".shared .u32 cells[4];")), args=[OUT])
    questions: list[tuple[Callable[[Any], object], str]] = [
        (lambda m: m.registers(thread=1.5), "the number or coordinates of a thread"),
        (lambda m: m.registers(cta=(0, 0, 0)), "expected the number of a CTA in the grid"),
        (lambda m: m.shared(0, None, "zz"), "a PTX type such as 'u32', found 'zz'"),
        (lambda m: m.shared(0, None, ""), "a PTX type such as 'u32', found ''"),
        (lambda m: m.shared(0, None, "u32", -1), "-1 × uint32 at "),
    ]
    for ask, words in questions:
        with raises(PtxError, match=re.escape(words)):
            ask(machine)


def test_recursion_without_end_meets_the_limit_of_local_memory() -> None:
    module = ".func other();\n.func self() { call other; ret; }\n.func other() { call self; ret; }"
    error = assert_reported(kernel("call self;", module=module), "PTX1124", "524288", args=[OUT])
    assert "check for unbounded recursion" in str(error)


def test_a_tensor_map_without_cvta_param() -> None:
    text = kernel(
        "mov.u32 %r1, bar; mov.u32 %r2, tile; mov.b64 %rd1, s; mov.u32 %r3, 0;\n"
        "mbarrier.init.shared::cta.b64 [%r1], 1;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r2], [%rd1, {%r3, %r3}], "
        "[%r1];",
        module=".shared .align 128 .b8 tile[256];\n.shared .align 8 .b64 bar;",
        params=".param .align 64 .b8 s[128]",
    )
    assert_reported(text, "PTX1110", "`cvta.param` converts", args=[sim.Tensor(np.zeros((8, 8), np.float32), MAP)])


def test_a_wrong_tensor_map_names_its_argument() -> None:
    wide = sim.Tensor(np.zeros((8, 8), np.float32), replace(MAP, box=(512, 8)))
    error = assert_reported(BY_VALUE, "PTX1205", "`s`: the box", args=[wide])
    assert error.diagnostics[0].line == 5


def test_a_cluster_may_have_sixteen_ctas() -> None:
    sim.run(parse(NUMBER), args=[np.zeros(512, np.uint32), 1], block=32, grid=16, cluster=16)


def test_a_tensor_map_alone_is_passed_as_its_bytes() -> None:
    tensor_map = replace(MAP, address=1 << 20)
    text = kernel(
        "ld.param.u64 %rd1, [out]; mad.wide.u32 %o, %t, 4, %rd1; mov.b64 %rd2, s; cvta.param.u64 %rd2, %rd2;\n"
        "mad.wide.u32 %rd2, %t, 4, %rd2; ld.u32 %r1, [%rd2]; st.global.u32 [%o], %r1;",
        params=".param .align 64 .b8 s[128], .param .u64 out",
    )
    out = np.zeros(32, np.uint32)
    sim.run(parse(text), block=32, args=[tensor_map, out])
    assert out.tobytes() == encode(tensor_map)


def test_views_whose_overlap_is_too_much_work_to_rule_out_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    buffer = np.zeros(1000, np.uint32)
    views = [np.lib.stride_tricks.as_strided(buffer[first:], (4, 2, 3), (8, 60, 104)) for first in (0, 36)]
    sim.run(parse(COPY), block=24, args=views)
    monkeypatch.setattr(overlaps, "_MOST_WORK", 1)
    assert_reported(COPY, "PTX1102", "the arguments 0 and 1 share memory", block=24, args=views)
