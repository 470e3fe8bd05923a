"""Mangled names with every part of the scheme that a name can contain, and the corpus's with errors."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from pyptx.codegen.analysis.demangle import demangle
from tests.digests import assert_digest

_CORPUS = Path(__file__).parents[2] / "corpus"
_SYMBOL = re.compile(rb"\b_Z\w+")


@pytest.mark.parametrize(
    "types",
    [
        *"vwbcahstijlmxynofdegz", *"Dn Da Dc Dh Di Ds Du Df Dd De".split(),
        "v", "if", "3Box", "3BoxIfE", "N2ns3BoxE", "PFvifE", "M3BoxFviE", "M3BoxKFviE", "RA3_f", "A_i", "Dh", "DpT_",
        "St6vectorIfE3Box", "S_", "S0_T_", "RKSt4pairIifE", "OT0_", "PKPVi", "NSt3BoxE", "T_IfE", "S0_IfE",
    ],
)  # fmt: skip
def test_the_types_of_a_function_around_a_local_variable_are_skipped(types: str) -> None:
    assert demangle(f"_ZZ3run{types}E4tile") == "tile"


@pytest.mark.parametrize(
    "arguments",
    [
        "Li3E",
        "Lb1ELin5E",
        "LN2ns4KindE2E",
        "Jif",
        "L4Kind2E",
        "3BoxIS_Li2EE",
        "St4pairIifE",
        "L_Z3addE",
        "LPFvvE_Z3addE",
        "S0_IfE",
        "SaIcE",
    ],
)
def test_the_arguments_of_a_template_are_skipped(arguments: str) -> None:
    encoding = arguments if arguments[0] != "J" else f"{arguments}E"
    assert demangle(f"_ZZ3runI{encoding}EvvE4tile") == "tile"
    assert demangle(f"_ZN2ns3runI{encoding}EEvv") == "run"
    assert demangle(f"_Z3runI{encoding}Evv") == "run"


@pytest.mark.parametrize(
    ("symbol", "name"),
    [
        ("_ZN2nsL3runEv", "run"), ("_ZN3BoxT_E", "Box"),
        ("_ZL4half", "half"), ("_ZNK3Box3getEv", "get"), ("_ZN3BoxD1Ev", "delete_Box"), ("_ZN3BoxC2Ev", "Box"),
        ("_ZN3BoxplERKS_", "operator"), ("_ZN3BoxcvfEv", "operator"), ("_ZNK3BoxcvRA3_KfEv", "operator"),
        ("_ZZ3runvENKUlfE_clEf", "operator"), ("_ZZ3runvENUt_3getEv", "get"), ("_ZZ3runvENKUlfE0_3getEf", "get"),
        ("_ZZ3runvEs", "run"), ("_ZZ3runvE4tile_0", "tile"), ("_ZZN3Box3getEvE4tile", "tile"),
        ("_ZN12_GLOBAL__N_13runEv", "run"), ("_ZTV3Box", "_ZTV3Box"), ("_ZGVZ3runvE4tile", "_ZGVZ3runvE4tile"),
        ("_Z", "_Z"), ("_Z3ru", "_Z3ru"), ("_ZN17h0123456789abcdefE", "h0123456789abcdef"),
        ("_ZZ3run" + "P" * 200 + "fE4tile", "run"), ("_ZZ3run" + "P" * 199 + "fE4tile", "tile"),
        ("_ZN3BoxI3FooEC1Ev", "Box"), ("_ZN3BoxI3FooED1Ev", "delete_Box"),
    ],
)  # fmt: skip
def test_the_last_component_is_the_name(symbol: str, name: str) -> None:
    assert demangle(symbol) == name


_OPERATORS = """nw na dl da ps ng ad de co pl mi ml dv rm an or eo aS pL mI mL dV rM aN oR eO ls rs lS rS eq ne lt gt le
ge nt aa oo pp mm cm pm pt cl ix qu li"""


@pytest.mark.parametrize("operator", _OPERATORS.split())
def test_every_operator_is_a_component(operator: str) -> None:
    assert demangle(f"_ZZN3Box{operator}EvE4tile") == "tile"
    assert demangle(f"_ZN3Box{operator}Ev") == "operator"


@pytest.mark.parametrize("producer", ["cub", "cutlass", "numba", "nvcc", "nvrtc", "warp"])
def test_the_names_of_symbols_and_of_damaged_ones(producer: str) -> None:
    draw = random.Random(producer)
    names = {name for path in (_CORPUS / producer).glob("*.ptx") for name in _SYMBOL.findall(path.read_bytes())}
    symbols = sorted(name.decode() for name in names)
    damaged: list[str] = []
    for symbol in draw.sample(symbols, min(len(symbols), 100)):
        for _ in range(6):
            at = draw.randrange(2, len(symbol))
            damaged.append(symbol[:at] + draw.choice(("", symbol[at] * 2, "E", "_", "3ab")) + symbol[at + 1 :])
    assert_digest("demangled", producer, "\n".join(f"{symbol} {demangle(symbol)}" for symbol in [*symbols, *damaged]))
