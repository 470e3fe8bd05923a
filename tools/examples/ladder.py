"""The table of examples/README.md that says what each step of the products removes, from the account of the kernels.

A figure in braces is one of the step before or after; other numbers must stand in the text of one of the two files.

python -m tools.examples.ladder        measures the figures anew and stores them
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from tools.examples.figures import Subject, read_figures, store_figures
from tools.examples.times import list_rates

AMPERE, ADA, HOPPER, BLACKWELL, RTX = "sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120a"
FIELD = re.compile(r"{(?P<step>before|after)\[(?P<name>\w+)\][^}]*}")
HEADER = "| step | what limits the step before | what changes | measured |\n|---|---|---|---|\n"


@dataclass(frozen=True)
class Row:
    """A step: what limits `before`, and what changes in `after`. `doubt` says why it may be slower nevertheless, where
    both are measured; this makes no sense of a step to another problem."""

    title: str
    before: Subject
    after: Subject
    limit: str
    change: str
    doubt: str = ""
    is_other: bool = False

    def render(self) -> str:
        """Return the row of the table."""
        rates = ", ".join(f"{before:.0f} → {after:.0f} {place}" for before, after, place in self.list_measured())
        return f"| {self.title} | {self.fill(self.limit)} | {self.fill(self.change)} | {rates} |\n"

    def fill(self, text: str) -> str:
        """Return a text with the figures."""
        figures = read_figures()
        before, after = (
            figures[str(step)].values if str(step) in figures else {} for step in (self.before, self.after)
        )
        return text.format(before=before, after=after)

    def list_figures(self) -> Iterator[tuple[Subject, str]]:
        """Yield the figures of the texts."""
        for field in FIELD.finditer(self.limit + self.change):
            yield self.before if field["step"] == "before" else self.after, field["name"]

    def list_measured(self) -> Iterator[tuple[float, float, str]]:
        """Yield the rates of both steps with unit, shape and GPU, where both are timed at one shape."""
        before, after = list_rates(self.before.name), list_rates(self.after.name)
        for place, rate in after.items():
            if place in before and not self.is_other:
                yield before[place], rate, place


def list_steps() -> str:
    """Return the table, and what it claims and measurements contradict."""
    table = HEADER + "".join(row.render() for row in ROWS)
    doubts = [
        f"\nSlower than the step before: {row.title}, {rate:.0f} instead of {before:.0f} {place}. {row.doubt}\n"
        for row in ROWS
        for before, rate, place in row.list_measured()
        if rate < before
    ]
    return "".join([table, *doubts])


def list_subjects() -> dict[Subject, set[str]]:
    """Return the examples whose figures the table has, and their names."""
    subjects = dict[Subject, set[str]]()
    for row in ROWS:
        for step, name in row.list_figures():
            subjects.setdefault(step, set()).add(name)
    return subjects


def subject(name: str, target: str, size: int = 0) -> Subject:
    """Return a subject by the name of its example without the directory of the target."""
    folders = {AMPERE: "ampere", ADA: "ampere", HOPPER: "hopper", BLACKWELL: "blackwell", RTX: "rtx"}
    return Subject(name if "/" in name else f"{folders[target]}/{name}", target, size)


ROWS = (
    Row(
        "Ampere 02, shared tiles", subject("one_warp_gemm", AMPERE), subject("two_stage_gemm", AMPERE),
        "each warp loads its own operands: {before[intensity]:.0f} FLOP per byte loaded",
        "{after[intensity]:.0f} FLOP per byte; two tiles in turns hide the loads",
    ),
    Row(
        "Ampere 03, pipelined", subject("two_stage_gemm", AMPERE), subject("pipelined_gemm", AMPERE),
        "L2 takes {before[l2]:.1f} times as long as the tensor cores, and fragments from shared memory "
        "{before[shared]:.1f} times",
        "{after[l2]:.1f} times with {after[intensity]:.0f} FLOP per byte; with `ldmatrix` and larger warp tiles "
        "{after[shared]:.1f} times",
    ),
    Row(
        "Ampere 04, stream-K", subject("pipelined_gemm", AMPERE), subject("stream_k_gemm", AMPERE),
        "{before[tiles]:.0f} tiles of 4096³ take {before[rounds]:.0f} rounds, the last one with {before[last]:.0f} "
        "of {before[wave]:.0f} SMs",
        "all SMs get the same share of all steps, at {after[intensity]:.0f} FLOP per byte",
    ),
    Row(
        "Ampere 05, fp8", subject("pipelined_gemm", ADA), subject("ampere/fp8_gemm", ADA),
        "the rate of bf16: {before[ceiling]:.0f} TFLOP/s on Ada",
        "{after[ceiling]:.0f} TFLOP/s and {after[intensity]:.0f} FLOP per byte; sums of 128 of K are added in f32",
    ),
    Row(
        "Hopper 03, TMA ring", subject("wgmma_tile", HOPPER), subject("tma_ring", HOPPER),
        "a load takes 510 clocks, its products 131: tensor cores idle 80 % of the time",
        "two loads in flight, {after[flight]:,.0f} bytes; {after[intensity]:.0f} FLOP per byte take {after[bytes]:.0f} "
        "bytes per clock, of the 69 that an SM receives",
    ),
    Row(
        "Hopper 04, warp-specialized", subject("tma_ring", HOPPER), subject("warp_specialized", HOPPER),
        "loads near the limit of an SM: {before[bytes]:.0f} bytes per clock; 45 clocks lost where warps meet in a step",
        "{after[bytes]:.0f} bytes per clock; one consumer multiplies while the other waits",
    ),
    Row(
        "Hopper 05, clusters", subject("warp_specialized", HOPPER), subject("cluster_gemm", HOPPER),
        "L2 delivers 35 bytes per clock to each SM when all read; {before[reads]:.0f} are needed",
        "{after[reads]:.0f} bytes per clock from L2, with half of `b` from the peer",
        doubt="The 35 bytes were measured with plain loads on an H800. Hopper 03 takes more on an H200, so they are no "
        "limit of Hopper 04 there, while the CTAs of a pair have to wait for each other.",
    ),
    Row(
        "Hopper 06, persistent", subject("cluster_gemm", HOPPER, 8192), subject("persistent_gemm", HOPPER),
        "start and end of a tile, 8 % with K = 1024; at 8192³, tiles in flight are in {before[rows]:.0f} rows and "
        "{before[columns]:.0f} columns, and memory delivers {before[megabytes]:,.0f} MB",
        "both overlap with products; {after[rows]:.0f} rows and {after[columns]:.0f} columns, "
        "{after[megabytes]:,.0f} MB",
    ),
    Row(
        "Hopper 07, fp8", subject("persistent_gemm", HOPPER), subject("hopper/fp8_gemm", HOPPER),
        "the rate of bf16: {before[ceiling]:.0f} TFLOP/s",
        "{after[ceiling]:,.0f} TFLOP/s with {after[bytes]:.0f} bytes per clock as before; the CUDA cores add sums of "
        "128 of K while the other consumer multiplies",
    ),
    Row(
        "Hopper 08, grouped", subject("persistent_gemm", HOPPER), subject("hopper/grouped_gemm", HOPPER),
        "a launch per group: 100 rows have 16 tiles for 132 SMs",
        "all groups in one launch; each warp finds its tiles in the sizes, at {after[bytes]:.0f} bytes per clock as "
        "before",
        is_other=True,
    ),
    Row(
        "Hopper 10, attention with overlap", subject("hopper/attention", HOPPER), subject("attention_overlap", HOPPER),
        "exponentials take {before[special]:.2f} times as long as the products: two warpgroups in step keep the "
        "tensor cores busy for 2080 of some 3200 clocks",
        "the exponentials of one warpgroup run during the products of the other, and those of a block during the "
        "product with the values of the block before",
    ),
    Row(
        "Hopper 11, decode", subject("hopper/attention", HOPPER), subject("decode_attention", HOPPER),
        "one query has one row of 64 and one CTA per head; no key is used twice",
        "query heads share the rows, and CTAs a sequence: memory is busy {after[memory]:.0f} times as long as the "
        "tensor cores",
        is_other=True,
    ),
    Row(
        "Hopper 12 and 13, backward",
        subject("attention_backward_dq", HOPPER), subject("attention_backward_dkv", HOPPER),
        "a kernel that adds to dq by atomics: results differ between runs",
        "two kernels, two products more; exponentials take {before[special]:.2f} and {after[special]:.2f} times as "
        "long as the products, at {before[intensity]:.0f} and {after[intensity]:.0f} FLOP per byte",
        is_other=True,
    ),
    Row(
        "Blackwell 02, ring", subject("tcgen05_tile", BLACKWELL), subject("ring_gemm", BLACKWELL),
        "loads take 1,850 cycles, their products 512: 22 %",
        "four loads in flight; {after[bytes]:.0f} bytes per cycle, where an SM receives 81",
    ),
    Row(
        "Blackwell 03, two SMs", subject("ring_gemm", BLACKWELL), subject("two_sm_gemm", BLACKWELL),
        "the rate of the loads: {before[ceiling]:,.0f} of {after[ceiling]:,.0f} TFLOP/s",
        "{after[bytes]:.0f} bytes per cycle",
    ),
    Row(
        "Blackwell 04, persistent", subject("two_sm_gemm", BLACKWELL, 8192), subject("persistent_gemm", BLACKWELL),
        "the output of a tile, 15 % with K = 4096; at 8192³, memory delivers {before[megabytes]:,.0f} MB",
        "it overlaps with the next tile, in the other half of tensor memory; in bands of 8 rows, "
        "{after[megabytes]:,.0f} MB",
    ),
    Row(
        "Blackwell 05, mxfp8", subject("persistent_gemm", BLACKWELL), subject("block_scaled_gemm", BLACKWELL),
        "the rate of bf16: {before[ceiling]:,.0f} TFLOP/s",
        "{after[ceiling]:,.0f} TFLOP/s; {after[bytes]:.0f} of the 81 bytes per cycle that an SM receives",
    ),
    Row(
        "Blackwell 06, grouped", subject("persistent_gemm", BLACKWELL), subject("blackwell/grouped_gemm", BLACKWELL),
        "a launch per group: 256 rows have 16 tiles for 74 pairs",
        "all groups in one launch; each task finds its tiles, at about 30 cycles for a size, of 16,384 for a tile",
        is_other=True,
    ),
    Row(
        "Blackwell 07, attention", subject("persistent_gemm", BLACKWELL), subject("blackwell/attention", BLACKWELL),
        "for 128 queries and keys, products take 1,024 cycles, and exponentials as many",
        "two tiles in turns keep both units busy; a quarter of the exponentials are polynomials: 1,536 of 2,048 cycles",
        is_other=True,
    ),
    Row(
        "Blackwell 08, nvfp4", subject("block_scaled_gemm", BLACKWELL), subject("nvfp4_gemm", BLACKWELL),
        "the rate of mxfp8: {before[ceiling]:,.0f} TFLOP/s",
        "{after[ceiling]:,.0f} TFLOP/s, not twice as many: {after[bytes]:.0f} bytes per cycle, 11 % more than the 81",
    ),
    Row(
        "RTX 01, TMA-fed", subject("ampere/pipelined_gemm", RTX), subject("bf16_gemm", RTX),
        "the warps that multiply also copy: {before[beside]:.2f} other instructions for each product",
        "one thread loads by TMA: {after[beside]:.2f}",
    ),
    Row(
        "RTX 02, fp8", subject("bf16_gemm", RTX), subject("rtx/fp8_gemm", RTX),
        "the rate of bf16: {before[ceiling]:.0f} TFLOP/s",
        "{after[ceiling]:.0f} TFLOP/s; a stage has 128 of K instead of 64",
    ),
    Row(
        "RTX 03, block-scaled", subject("rtx/fp8_gemm", RTX), subject("rtx/block_scaled_gemm", RTX),
        "one factor for a tensor",
        "one for 32 or 16 elements, which the tensor cores apply: a stage has {after[stage]:,.0f} bytes instead of "
        "{before[stage]:,.0f}, at the same rate",
    ),
)  # fmt: skip
"""The steps, in the order of the ladders."""


if __name__ == "__main__":
    store_figures(list_subjects())
