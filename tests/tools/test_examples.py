"""The account of the example kernels: loops of machine code, and clocks from published rates."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from examples.parts.example import EXAMPLES, Example, find_example, list_paths, name_example
from examples.parts.tile_order import TileOrder
from pyptx.sim.observers.checks.choice import OPTIONAL
from pyptx.sim.observers.statistics.report import LineAccess
from pyptx.sim.observers.timeline.records import RunRecord, Track, Transfer
from tools import audit_examples
from tools.examples.account import (
    L2,
    choose_run,
    count_in_flight,
    count_loaded,
    count_tensor_clocks,
    find_bits,
    make_account,
)
from tools.examples.loops import choose_main, count_kinds, list_loops
from tools.examples.machines import MACHINES
from tools.examples.rivals import NONE, RIVALS
from tools.examples.runs import choose_checks, list_surprises
from tools.examples.times import find_rates, identify_code, list_times
from tools.examples.waves import count_memory_clocks, describe_order, list_waves

SASS = """
.text.k:
.L_x_0:
        /*0000*/                   MOV R1, c[0x0][0x28] ;
.L_x_1:
        /*0010*/                   HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24 ;
        /*0020*/                   MUFU.EX2 R2, R2 ;
        /*0030*/              @!P0 BRA `(.L_x_1) ;
        /*0040*/                   LDG.E.128 R4, desc[UR4][R2.64] ;
        /*0050*/               @P1 BRA `(.L_x_0) ;
        /*0060*/                   BRA `(.L_x_2) ;
.L_x_2:
        /*0070*/                   EXIT ;
"""


def test_loops_are_branches_back_and_only_the_innermost_count() -> None:
    (loop,) = list_loops(SASS)
    assert loop == Counter({"HGMMA.64x256x16.F32.BF16": 1, "MUFU.EX2": 1, "BRA": 1})
    assert count_kinds(choose_main([Counter({"FADD": 9}), loop])) == Counter(tensor=1, special=1, branch=1)
    assert choose_main([]) == Counter()


def test_a_loop_that_multiplies_may_contain_loops_that_do_not() -> None:
    copy = ".L_x_9:\n /*0011*/ UTMALDG.2D [UR8], [UR4] ;\n /*0012*/ @P0 BRA `(.L_x_9) ;\n"
    place = "        /*0020*/"
    loop = choose_main(list_loops(SASS.replace(place, copy + place)))
    assert loop == Counter({"HGMMA.64x256x16.F32.BF16": 1, "MUFU.EX2": 1, "UTMALDG.2D": 1, "BRA": 2})


@pytest.mark.parametrize(
    "body",
    [
        "SYNCS.PHASECHK.TRANS64.TRYWAIT P0, [UR4] ;\n /*0011*/ @!P0 BRA `(.L_x_9) ;",
        "UTMALDG.2D [UR8], [UR4] ;\n /*0011*/ @P0 BRA.U.ANY `(.L_x_9) ;",
        "STG.E [R2], R4 ;\n /*0011*/ EXIT ;\n /*0012*/ BRA `(.L_x_9) ;",
        "BRA `(.L_x_9) ;",
    ],
    ids=["wait", "lanes", "behind the code", "padding"],
)
def test_a_branch_back_that_repeats_no_work_is_no_loop(body: str) -> None:
    inserted = f".L_x_9:\n /*0010*/ {body}\n"
    assert list_loops(inserted) == []
    place = "        /*0070*/" if "EXIT" in body else "        /*0020*/"
    assert len(list_loops(SASS.replace(place, inserted + place))) == 1


def test_a_problem_of_one_size_is_limited_by_the_sms_that_it_uses() -> None:
    account = make_account(find_example("hopper/wgmma_tile"), "sm_90a")
    assert account.clocks["loads into SMs"] == pytest.approx(2 * 64 * 64 * 2 / 69)
    assert account.ceiling == "4.0 TFLOP/s"


def test_targets_are_simulated_apart_if_their_tensor_cores_or_code_differ() -> None:
    add, product = find_example("any/vector_add"), find_example("ampere/one_warp_gemm")
    assert len({audit_examples.identify(add, target) for target in add.targets}) == 1
    # Hopper and Blackwell sum with 25 fraction bits, and Blackwell RTX does not unpack bytes.
    identities = [audit_examples.identify(product, target) for target in ("sm_80", "sm_90a", "sm_100a", "sm_120a")]
    assert identities[1] == identities[2]
    assert len(set(identities)) == 3


@pytest.mark.parametrize(
    ("target", "label", "measured"),
    [("sm_90a", "m64n8k16", 18.9), ("sm_90a", "m64n64k16", 32.8), ("sm_90a", "m64n256k16", 129.3),
     ("sm_100a", "m128n64k16", 48.02), ("sm_100a", "m128n128k16", 64.02), ("sm_100a", "m128n256k16", 128.0),
     ("sm_100a", "m256n256k16", 2 * 128.03), ("sm_100a", "m256n64k16", 2 * 43.02)],
)  # fmt: skip
def test_clocks_of_products_are_near_published_measurements(target: str, label: str, measured: float) -> None:
    record = RunRecord("k", (1, 1, 1), (1, 1, 1), (1, 1, 1), "eager", "")
    record.transfers = [Transfer(0, 0, 1, label, 1, 0, flops=4, count=4)]
    assert count_tensor_clocks(record, 4, target, MACHINES[target]) / 4 == pytest.approx(measured, rel=0.08)


def test_products_without_a_shape_take_the_rate_of_their_operands() -> None:
    record = RunRecord("k", (1, 1, 1), (1, 1, 1), (1, 1, 1), "eager", "")
    record.transfers = [Transfer(0, 0, 1, "cp", 1, 0, flops=16384, count=7)]
    for opcode, clocks in (("UTCHMMA.2CTA", 2.0), ("UTCQMMA.2CTA", 1.0), ("UTCOMMA.4X", 0.5)):
        bits = find_bits(Counter({opcode: 4, "BRA": 1}))
        assert count_tensor_clocks(record, 16384, "sm_100a", MACHINES["sm_100a"], bits) == clocks


@pytest.mark.parametrize(
    ("name", "clocks"), [("mma_mxf8", 4 * 64), ("mma_mxf4", 4 * 64), ("mma_nvf4", 4 * 64), ("mma_sparse", 2 * 64)]
)
def test_products_outside_loops_take_the_rate_of_their_operands(name: str, clocks: int) -> None:
    # N / 2 clocks for 32 bytes of each row along K; twice as many of B's are read for a sparse product.
    account = make_account(find_example(f"tcgen05/{name}"), "sm_100a")
    assert account.clocks["tensor cores"] == clocks
    assert account.limit == "loads into SMs"


def test_a_multicast_arrives_in_every_cta() -> None:
    record = RunRecord("k", (2, 1, 1), (1, 1, 1), (2, 1, 1), "eager", "", tracks=[Track(0, "TMA loads", True)])
    record.transfers = [Transfer(0, 0, 1, "2d", 1, 0, bytes=100), Transfer(0, 0, 1, "2d multicast", 1, 0, bytes=10)]
    copy = LineAccess(1, None, "cp.async.cg.shared.global", "global", 1, 1, 1, 1, bytes=7)
    others = replace(copy, opcode="ld.global.b32"), replace(copy, space="shared")
    assert count_loaded(record, [copy, *others]) == (120 + 7, 110 + 7)


def test_a_multicast_reads_l2_once() -> None:
    alone, pairs = (
        make_account(find_example(f"hopper/{name}"), "sm_90a") for name in ("warp_specialized", "cluster_gemm")
    )
    assert alone.clocks["loads into SMs"] == pairs.clocks["loads into SMs"]
    # Of 128 rows of a and 256 of b, half of b comes from the other CTA's request.
    assert pairs.clocks[L2] == pytest.approx(alone.clocks[L2] * (128 + 128) / (128 + 256))


def test_l2_limits_small_tiles_on_an_a100() -> None:
    account = make_account(find_example("ampere/two_stage_gemm"), "sm_80")
    assert account.limit == L2
    assert account.clocks[L2] == pytest.approx(2 * 4096**3 / 32 / 2008)


def test_plain_loads_are_limited_by_l1() -> None:
    account = make_account(find_example("ampere/one_warp_gemm"), "sm_80")
    assert account.limit == "L1"
    # A row of a fragment is 16 bytes of a sector of 32.
    assert account.clocks["L1"] == pytest.approx(2 * account.loaded / account.flops * 2 * 4096**3 / 128 / 108)


def test_zeros_that_fill_stages_are_not_loaded() -> None:
    example = find_example("ampere/pipelined_gemm")
    for count in (4, 16):
        account = make_account(replace(example, large={"m": 4096, "n": 4096, "k": 32 * count}), "sm_80")
        # Tiles of 128 x 256.
        assert account.flops / account.loaded == pytest.approx(2 * 128 * 256 / ((128 + 256) * 2))


def test_what_a_tile_does_once_does_not_limit_a_long_product() -> None:
    account = make_account(find_example("ampere/stream_k_gemm"), "sm_80")
    assert account.clocks["shared memory"] < 0.85 * account.clocks["tensor cores"]


def test_rows_that_decode_pads_count() -> None:
    account = make_account(find_example("hopper/decode_attention"), "sm_90a")
    # 128 key heads with 8192 keys and values of 128, for 64 rows of queries.
    assert account.clocks["loads into SMs"] == pytest.approx(128 * 2 * 8192 * 256 / 69 / 132, rel=0.04)
    assert account.clocks["tensor cores"] >= 128 * 4 * 64 * 8192 * 128 / 4096 / 132


@pytest.mark.parametrize("name", ["hopper/fp8_gemm", "blackwell/block_scaled_gemm", "blackwell/nvfp4_gemm"])
def test_the_run_of_an_account_is_long_and_has_whole_tiles(name: str) -> None:
    example = find_example(name)
    assert isinstance(example.order, TileOrder)
    run = choose_run(example)
    assert run.shape["k"] == 2048
    assert run.shape["m"] % example.order.rows == run.shape["n"] % example.order.columns == 0
    example.simulate(run, check="none").verify()


def test_loads_are_in_flight_until_the_wait_for_them() -> None:
    tracks = [Track(0, "TMA loads", True), Track(1, "TMA loads", True), Track(0, "TMA stores", True)]
    record = RunRecord("k", (2, 1, 1), (1, 1, 1), (2, 1, 1), "eager", "", tracks=tracks)
    record.transfers = [
        Transfer(track, start, end, label, 1, 0, bytes=bytes)
        for track, start, end, label, bytes in [
            (0, 0, 5, "2d", 100), (0, 4, 6, "2d multicast", 10), (0, 5, 7, "2d", 50), (1, 4, 6, "2d", 70),
            (2, 4, 6, "2d", 1000),
        ]
    ]  # fmt: skip
    assert count_in_flight(record) == 120
    # The stage is free when it is used again, whatever the clock of the warp that waits.
    record.transfers = [
        Transfer(0, start, 9, "2d", 1, 0, bytes=100, barrier=name) for start, name in ((0, "a"), (4, "a"))
    ]
    assert count_in_flight(record) == 100
    record.transfers[1] = replace(record.transfers[1], barrier="other")
    assert count_in_flight(record) == 200
    assert count_in_flight(RunRecord("k", (1, 1, 1), (1, 1, 1), (1, 1, 1), "", "")) == 0


def test_special_functions_of_all_warps_and_loops_count() -> None:
    account = make_account(find_example("blackwell/attention"), "sm_100a")
    # Of 128 x 128 scores a quarter are polynomials; each row has a factor for each block besides.
    products, exponentials = 4 * 128 * 128 * 128 / 8192, 128 * (128 * 3 / 4 + 1) / 16
    ratio = account.clocks["special functions"] / account.clocks["tensor cores"]
    assert ratio == pytest.approx(exponentials / products, rel=0.01)


def test_the_account_of_the_cluster_gemm() -> None:
    account = make_account(find_example("hopper/cluster_gemm"), "sm_90a")
    assert account.limit == "tensor cores"
    # A step of 128 x 256 x 64 loads 128 rows of a and 256 of b, 128 bytes each.
    assert account.flops / account.loaded == pytest.approx(2 * 128 * 256 * 64 / ((128 + 256) * 128))
    ideal = 2 * 4096**3 / (132 * 4096)
    assert ideal <= account.clocks["tensor cores"] <= 1.01 * ideal


def test_tiles_in_flight_share_operands() -> None:
    example = find_example("hopper/persistent_gemm")
    small = replace(example, large={"m": 1000, "n": 8192, "k": 64})
    waves = list_waves(small, MACHINES["sm_90a"], resident=1)
    # 4 rows of 256, the last one of 232, and 32 columns, all in one band: 66 tiles and what remains of 128.
    assert [(wave.tiles, wave.rows, wave.columns) for wave in waves] == [(66, 4, 17), (62, 4, 16)]
    assert [wave.bytes for wave in waves] == [(1000 + 17 * 256) * 128, (1000 + 16 * 256) * 128]
    assert (
        describe_order(small, waves)
        == "order: 66 tiles in flight read 4 rows and 17 columns of tiles, 0.7 MB in L2, 1 MB from memory in all"
    )
    assert list_waves(replace(example, order=None), MACHINES["sm_90a"], resident=1) == []
    memory = count_memory_clocks(small, MACHINES["sm_90a"], waves) / 132
    assert memory == pytest.approx(sum(wave.bytes for wave in waves) / 3172e9 * 1830e6)


@pytest.mark.parametrize(
    ("name", "target", "tiles", "read", "once"),
    [
        # 32 tiles of 128 queries for each of 16 heads: five heads' keys and values, and the tiles' own rows.
        ("hopper/attention", "sm_90a", 132, 5 * 2 * 4096 + 132 * 128, 16 * 3 * 4096),
        ("hopper/attention_backward_dq", "sm_90a", 132, 5 * 2 * 4096 + 3 * 132 * 128, 16 * 5 * 4096),
        ("hopper/attention_backward_dkv", "sm_90a", 132, 5 * 2 * 4096 + 2 * 132 * 128, 16 * 4 * 4096),
        ("blackwell/attention", "sm_100a", 148, 3 * 2 * 16384 + 148 * 256, 16 * 3 * 16384),
        # Groups of 256 rows have 2 x 16 or 1 x 16 tiles.
        ("hopper/grouped_gemm", "sm_90a", 132, 10 * 128 + 66 * 256, 16384 + 64 * 4096),
        ("blackwell/grouped_gemm", "sm_100a", 74, 5 * 256 + 74 * 256, 16384 + 64 * 4096),
        # Tiles 6.5 apart: all rows, and all columns.
        ("ampere/stream_k_gemm", "sm_80", 108, 2 * 4096, 2 * 4096),
    ],
)
def test_heads_groups_and_parts_share_operands(name: str, target: str, tiles: int, read: int, once: int) -> None:
    example = find_example(name)
    first, *others = list_waves(example, MACHINES[target], resident=1)
    length = 2 * example.large.get("d", example.large.get("k"))
    assert (first.tiles, first.bytes) == (tiles, read * length)
    assert once * length <= first.bytes + sum(wave.bytes for wave in others) <= 7 * once * length
    assert describe_order(example, [first]).startswith(f"order: {tiles} tiles in flight read ")


@pytest.mark.parametrize("name", ["any/swiglu", "hopper/tma_copy", "hopper/decode_attention"])
def test_rates_on_an_h200_are_below_its_ceiling(name: str) -> None:
    example = find_example(name)
    match = re.fullmatch(
        r"([\d.]+) (\S+) on NVIDIA H200, whose ceiling is ([\d.,]+) \2", audit_examples.compare(example)
    )
    assert match is not None
    ceiling = make_account(example, "sm_90a").ceiling.partition(" ")[0]
    assert float(ceiling.replace(",", "")) < float(match[1]) < float(match[3].replace(",", ""))


def find_problems(example: Example, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the row of an example for sm_90a, and what the audit finds wrong."""

    def load(path: Path) -> Example:
        assert path == example.path
        return replace(example, targets=("sm_90a",))

    monkeypatch.setattr(audit_examples, "load_example", load)
    status = audit_examples.main([example.name, "--jobs", "1"])
    lines = capsys.readouterr().out.splitlines()
    problems = [line.strip() for line in lines if line.startswith("    WRONG sm_90a: ")]
    assert f"1 kernels, 12 orders each: {len(problems)} problems" in lines
    assert status == (1 if problems else 0)
    return [lines[1], *problems]


def test_the_audit_shows_what_is_wrong(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    example = find_example("any/vector_add")
    wrong = replace(example, reference=np.subtract, runs=example.runs[1:2])
    row, *problems = find_problems(wrong, monkeypatch, capsys)
    assert row.split()[2:4] == ["0/1", "0/12"]
    assert " H100 SXM5 " in row
    assert len(problems) == 13
    assert any(problem.startswith("WRONG sm_90a: n=1023, random 3: ") for problem in problems)


def test_instructions_that_the_code_lacks_are_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = find_example("any/vector_add")
    other = replace(example, sass=("ABSENT|STG.E.128", "HMMA|HGMMA"), runs=example.runs[:1])
    row, *problems = find_problems(other, monkeypatch, capsys)
    assert row.split()[2:4] == ["1/1", "12/12"]
    assert problems == ["WRONG sm_90a: HMMA|HGMMA is not in the machine code"]


def test_findings_that_are_not_declared_are_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads without elements compute an infinity, which the class of checks that is for the eager order reports."""
    example = find_example("any/softmax")
    row, *problems = find_problems(replace(example, runs=example.runs[:1]), monkeypatch, capsys)
    assert (row.split()[2:4], problems) == (["1/1", "12/12"], [])
    silent = replace(example.runs[0], findings={})
    row, *problems = find_problems(replace(example, runs=(silent,)), monkeypatch, capsys)
    assert row.split()[2:4] == ["0/1", "11/12"]
    assert [re.sub(r"/.*: warning", "", problem) for problem in problems] == [
        "WRONG sm_90a: m=3 n=4, eager 0: [PTX0993]: infinity first produced here: a = -3e+38, b = 1.442695: "
        "the result is -inf (765 times)"
    ] * 2


def test_findings_that_are_declared_and_absent_are_wrong(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    example = find_example("any/vector_add")
    gone = replace(example.runs[0], findings={"PTX0998": "because", "PTX0992": "why"})
    row, *problems = find_problems(replace(example, runs=(gone,)), monkeypatch, capsys)
    assert row.split()[2:4] == ["0/1", "0/12"]
    assert problems[:3] == [
        "WRONG sm_90a: n=1, eager 0: PTX0998 is declared but not found: because",
        "WRONG sm_90a: n=1, eager 0: PTX0992 is declared but not found: why",
        "WRONG sm_90a: n=1, lazy 0: PTX0998 is declared but not found: because",
    ]
    assert len(problems) == 13


def test_only_special_runs_may_produce_nan_without_a_reason() -> None:
    example = find_example("any/reduction")
    run = next(run for run in example.runs if run.special)
    findings = example.simulate(run, check=choose_checks("eager")).report.hazards
    assert {finding.rule.code for finding in findings} == {"PTX0992"}
    assert list_surprises(run, "eager", findings) == []
    assert len(list_surprises(replace(run, special=False), "eager", findings)) == len(findings)


def test_every_class_of_checks_is_made() -> None:
    assert {*choose_checks("eager")} == {"all", *OPTIONAL}
    assert {*choose_checks("eager")} - {*choose_checks("lazy")} == {"numerics"}


def test_every_kernel_of_the_examples_has_a_row_or_a_reason() -> None:
    kernels = {path for path in EXAMPLES.glob("*/*.py") if "\n    @kernel(" in path.read_text("utf-8")}
    rows = {name_example(path) for path in list_paths()}
    others = {name_example(path) for path in kernels if path.parent.name not in ("bugs", "models", "parts")} - rows
    assert others == set(audit_examples.WITHOUT_ROW)


def test_every_kernel_has_a_published_figure_with_gpu_and_shape_or_a_reason() -> None:
    assert set(RIVALS) == {name_example(path) for path in list_paths()}
    for figure, source in RIVALS.values():
        assert source
        if figure != NONE:
            assert re.search(r"[AH]100|H800|H200|B200|RTX [45]090", figure), figure
            assert re.search(r"\d³|\d × \d|square size|\d rows|\dk, |\d keys|\^30|CTAs|shape", figure), figure


def test_an_unknown_name_is_an_error_of_the_audit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        audit_examples.main(["any/vector_add", "any/add"])
    assert "no example is called any/add; expected names such as" in capsys.readouterr().err


def test_the_table_of_times_says_how_much_faster_ours_is(tmp_path: Path) -> None:
    golden = EXAMPLES.parent / "tests" / "examples" / "goldens" / "hopper" / "05_cluster_gemm.ptx"
    gemm = {
        "code": identify_code(golden.read_text("utf-8")),
        "shape": {"m": 4096, "k": 64},
        "milliseconds": {"pyptx": [0.2, 0.19, 0.21], "cuBLAS": [0.21, 0.2, 0.22]},
        "tflops": 700.4,
    }
    add = {
        "code": identify_code((golden.parents[1] / "any" / "01_vector_add.ptx").read_text("utf-8")),
        "shape": {"n": 1024},
        "milliseconds": {"pyptx": [0.002, 0.001, 0.003], "copy": [0.001, 0.001, 0.001]},
        "gigabytes_per_second": 3000.0,
        "share_of_copy": 0.5,
    }
    ceilings = {"copy_gigabytes_per_second": 4250.0, "cublas_bf16_8192_tflops": 700.0}
    kernels = {
        "hopper/cluster_gemm": [gemm],
        "hopper/tma_ring": [{**gemm, "code": "0123"}],
        "any/vector_add": [add, {"label": "default", "failure": "out of memory"}],
        "ceilings": [ceilings],
    }
    (tmp_path / "gpu.json").write_text(
        json.dumps({"device": "A GPU", "commit": "1a2b", "note": "Noted.", "kernels": kernels}), "utf-8"
    )
    assert list_times(tmp_path).splitlines() == [
        "A GPU, commit 1a2b, whose copies reached 4250 GB/s and cuBLAS 700 TFLOP/s at 8192³:",
        "",
        "| kernel | shape | time | rate | compared with |",
        "|---|---|---|---|---|",
        "| [01_vector_add](any/01_vector_add.py) | n 1024 | 2.0 µs | 3000 GB/s | 50% of a copy |",
        "| [05_cluster_gemm](hopper/05_cluster_gemm.py) | m 4096, k 64 | 200.0 µs | 700 TFLOP/s | 1.05× cuBLAS |",
        "",
        "Noted.",
        "Not shown, because the code has changed since: hopper/tma_ring.",
    ]
    assert find_rates("hopper/cluster_gemm", tmp_path) == "700 TFLOP/s on A GPU"
    assert find_rates("hopper/tma_ring", tmp_path) == "not measured"


def test_code_is_the_same_with_other_comments() -> None:
    text = "mov.u32 %r1, 1;\n"
    assert (
        identify_code(f"// BEGIN f\n{text}  // n\n") == identify_code(text) != identify_code(text.replace("1;", "2;"))
    )
