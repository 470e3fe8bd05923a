"""Mangled names with every part of the scheme that a name can contain."""

from __future__ import annotations

import pytest

from pyptx.codegen.analysis.demangle import demangle


@pytest.mark.parametrize(
    "types",
    [
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
        ("_ZN3BoxplERKS_", "operator"), ("_ZN3BoxcvfEv", "operator"),
        ("_ZZ3runvENKUlfE_clEf", "operator"), ("_ZZ3runvENUt_3getEv", "get"), ("_ZZ3runvENKUlfE0_3getEf", "get"),
        ("_ZZ3runvEs", "run"), ("_ZZ3runvE4tile_0", "tile"), ("_ZZN3Box3getEvE4tile", "tile"),
        ("_ZN12_GLOBAL__N_13runEv", "run"), ("_ZTV3Box", "_ZTV3Box"), ("_ZGVZ3runvE4tile", "_ZGVZ3runvE4tile"),
        ("_Z", "_Z"), ("_Z3ru", "_Z3ru"), ("_ZN17h0123456789abcdefE", "h0123456789abcdef"),
        ("_ZZ3run" + "P" * 250 + "fE4tile", "run"), ("_ZZ3run" + "P" * 150 + "fE4tile", "tile"),
    ],
)  # fmt: skip
def test_the_last_component_is_the_name(symbol: str, name: str) -> None:
    assert demangle(symbol) == name
