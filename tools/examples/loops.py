"""Loops in machine code: the instructions between a label and a branch back to it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_LABEL = re.compile(r"\s*(?P<name>\.L_\w+):")
_INSTRUCTION = re.compile(r"\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?\w+\s+)?(?P<opcode>[A-Z][\w.]*)(?P<rest>.*)")
_TARGET = re.compile(r"`\((?P<name>\.L_\w+)\)")
KINDS = {
    "tensor": ("HGMMA", "QGMMA", "IGMMA", "HMMA", "QMMA", "IMMA", "OMMA", "UTCHMMA", "UTCQMMA", "UTCOMMA", "UTCIMMA"),
    "shared": ("LDS", "STS", "LDSM", "STSM", "ATOMS"),
    "global": ("LDG", "STG", "LDGSTS", "RED", "ATOMG", "UTMALDG", "UTMASTG", "UBLKCP"),
    "tensor memory": ("LDTM", "STTM", "UTCCP"),
    "special": ("MUFU",),
    "float": ("FADD", "FMUL", "FFMA", "FADD2", "FMUL2", "FFMA2", "FMNMX", "FMNMX3", "HFMA2", "HADD2", "HMUL2"),
    "barrier": ("BAR", "SYNCS", "WARPSYNC", "DEPBAR", "LDGDEPBAR", "ARRIVES", "WARPGROUP", "UTCBAR", "FENCE"),
    "branch": ("BRA", "EXIT", "BSSY", "BSYNC", "NANOSLEEP"),
}
"""Opcodes of machine instructions by what they use; everything else is "other": integers, moves, predicates."""
WORK = ("tensor", "shared", "global", "tensor memory", "special", "float")


def classify(opcode: str) -> str:
    """Return what an instruction uses."""
    name = opcode.partition(".")[0]
    return next((kind for kind, names in KINDS.items() if name in names), "other")


def count_opcodes(text: str) -> Counter[str]:
    """Return the opcodes of all instructions."""
    return Counter(match["opcode"] for line in text.splitlines() if (match := _INSTRUCTION.match(line)))


def list_loops(text: str) -> list[Counter[str]]:
    """Return the opcodes of each loop that does work and contains no other such loop, though a loop that multiplies
    may contain loops of threads that load."""
    opcodes, labels, spans = list[str](), dict[str, int](), list[tuple[int, int]]()
    for line in text.splitlines():
        if label := _LABEL.match(line):
            labels[label["name"]] = len(opcodes)
        elif instruction := _INSTRUCTION.match(line):
            opcodes.append(instruction["opcode"])
            target = _TARGET.search(instruction["rest"])
            if target and target["name"] in labels and instruction["opcode"].startswith("BRA"):
                spans.append((labels[target["name"]], len(opcodes)))
    spans = [(a, b) for a, b in spans if repeats_work(opcodes[a:b])]
    products = [(a, b) for a, b in spans if any(classify(opcode) == "tensor" for opcode in opcodes[a:b])]

    def is_inner(a: int, b: int) -> bool:
        others = products if (a, b) in products else spans
        return not any((c, d) != (a, b) and a <= c and d <= b for c, d in others)

    return [Counter(opcodes[start:end]) for start, end in spans if is_inner(start, end)]


def repeats_work(opcodes: Sequence[str]) -> bool:
    """Tell whether instructions that end with a branch back are a loop of the kernel. Waits try again, single threads
    issue an instruction lane by lane, and waits that ptxas has moved behind the code branch back to it."""
    is_by_lane = opcodes[-1] == "BRA.U.ANY"
    return not is_by_lane and "EXIT" not in opcodes and any(classify(opcode) in WORK for opcode in opcodes)


def choose_main(loops: list[Counter[str]]) -> Counter[str]:
    """Return the loop with the most tensor instructions, else with the most accesses to global memory; if any."""

    def weigh(loop: Counter[str]) -> tuple[int, int, int]:
        kinds = count_kinds(loop)
        return kinds["tensor"], kinds["global"], loop.total()

    return max(loops, key=weigh, default=Counter[str]())


def count_kinds(loop: Counter[str]) -> Counter[str]:
    """Return how many instructions of a loop use what."""
    kinds = Counter[str]()
    for opcode, count in loop.items():
        kinds[classify(opcode)] += count
    return kinds
