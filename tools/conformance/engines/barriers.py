"""Sequences of operations on an mbarrier by one thread: after each, which phases have ended and what is pending."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from tools.conformance.engines.cases import Case, Inputs
from tools.conformance.engines.text import make_entry

_STEPS = 40
_SEQUENCES = 12


def list_cases() -> Iterator[Case]:
    """Yield the sequences."""
    for number in range(_SEQUENCES):
        entry = make_entry(f"sequence_{number}", _write_sequence(Random(f"sequence {number}")), size=16, threads=32)
        yield Case(f"barrier/{number}", entry, lambda random: Inputs(bytes(16), bytes(16), bytes(16 * _STEPS)))


def _write_sequence(random: Random) -> str:
    """Return code that keeps to what the manual allows: neither pending arrivals nor bytes out of range."""
    expected = pending = random.randint(1, 6)
    bytes_pending = 0
    lines = [f"@!%first ret;\nmbarrier.init.shared::cta.b64 [%bar], {expected};"]
    for step in range(_STEPS):
        choices = ["expect", "complete", "arrive", "arrive", "many", "both"]
        if expected > 1:
            choices.append("drop")
        kind = random.choice(choices)
        count = random.randint(1, pending)
        amount = random.randint(1, 5000)
        lines.append("mov.b64 %x, 0; mov.u32 %v1, 0xffff;")
        match kind:
            case "expect":
                lines.append(f"mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%bar], {amount};")
                bytes_pending += amount
            case "complete":
                amount = bytes_pending if bytes_pending and random.random() < 0.7 else min(amount, bytes_pending)
                lines.append(f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], {amount};")
                bytes_pending -= amount
            case "many":
                lines.append(f"mbarrier.arrive.shared::cta.b64 %x, [%bar], {count};")
                pending -= count
            case "both":
                lines.append(f"mbarrier.arrive.expect_tx.shared::cta.b64 %x, [%bar], {amount};")
                pending, bytes_pending = pending - 1, bytes_pending + amount
            case "drop":
                lines.append("mbarrier.arrive_drop.shared::cta.b64 %x, [%bar];")
                pending, expected = pending - 1, expected - 1
            case _:
                lines.append("mbarrier.arrive.shared::cta.b64 %x, [%bar];")
                pending -= 1
        if kind not in ("expect", "complete"):
            lines.append("mbarrier.pending_count.b64 %v1, %x;")
        lines.append(
            "mbarrier.test_wait.parity.shared::cta.b64 %p, [%bar], 0; selp.b32 %v0, 1, 0, %p;\n"
            "mbarrier.test_wait.parity.shared::cta.b64 %p, [%bar], 1; selp.b32 %v2, 1, 0, %p;\n"
            f"st.global.v4.b32 [%out+{16 * step}], {{%v0, %v1, %v2, %v2}};"
        )
        if not pending and not bytes_pending:
            pending = expected
        elif not pending:
            lines.append(f"mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%bar], {bytes_pending};")
            pending, bytes_pending = expected, 0
    return "\n".join(lines)
