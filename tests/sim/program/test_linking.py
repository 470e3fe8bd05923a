"""Linked modules: the values of the equivalent single module, and the verdicts of nvJitLink."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pyptx import sim
from pyptx.diagnostics import Diagnostic, PtxError
from pyptx.emitter import emit
from pyptx.ir import Module
from pyptx.parser import parse
from pyptx.toolchain import validate
from tests.messages import raises
from tests.sim.linked import PAIRS, arch_of, links_with_nvjitlink, module, pair

READ = "ld.global.u32 %r1, [x];"
CALL = """{ .param .b32 a; .param .b32 b; mov.b32 %r2, 5; st.param.b32 [a], %r2; call (b), f, (a);
ld.param.b32 %r1, [b]; }"""
PROTO = ".extern .func (.param .b32 r) f(.param .b32 a);"


def entry(body: str, name: str = "k", linking: str = ".visible") -> str:
    return (
        f"{linking} .entry {name}(.param .u64 out) {{ .reg .b32 %r<9>; .reg .b64 %o, %rd<4>;\n"
        f"ld.param.u64 %o, [out];\n{body}\nst.global.u32 [%o], %r1; ret; }}\n"
    )


def adds(number: int, linking: str = ".visible", extra: str = "") -> str:
    return (
        f"{linking} .func (.param .b32 r) f(.param .b32 a) {{ .reg .b32 %r<3>; ld.param.b32 %r1, [a];\n"
        f"add.u32 %r1, %r1, {number}; {extra} st.param.b32 [r], %r1; ret; }}\n"
    )


def value(*texts: str, **options: Any) -> int:
    """Return the values that the kernel of linked modules stores."""
    out = np.zeros(1, np.uint32)
    sim.run([module(text) for text in texts], options.pop("entry", "k"), args=[out], **options)
    return int(out[0])


def list_link_errors(modules: list[Module]) -> list[Diagnostic]:
    """Return why modules do not link."""
    try:
        sim.link(modules)
    except PtxError as why:
        return list(why.diagnostics)
    return []


@pytest.mark.parametrize("name", PAIRS)
def test_modules_link_where_nvjitlink_links_them(name: str, capfd: pytest.CaptureFixture[str]) -> None:
    texts = pair(name)
    wrong = list_link_errors([parse(text) for text in texts])
    assert {finding.code for finding in wrong} <= {"PTX1104", "PTX1108", "PTX0410", "PTX0411"}
    assert all(finding.origin is not None for finding in wrong)
    pytest.importorskip("cuda.bindings.nvjitlink")
    assert links_with_nvjitlink(texts, arch_of(name), capfd) is not bool(wrong)


VALUES = {
    "an external variable": ((".extern .global .u32 x;" + entry(READ), ".visible .global .u32 x = 5;"), 5),
    "one without size": (
        (".extern .global .u32 x[];" + entry(READ.replace("x]", "x+8]")), ".visible .global .u32 x[] = {1, 2, 3};"), 3),
    "one of another type": (
        (".extern .global .b8 x[4];" + entry(READ), ".visible .global .f32 x = 1.0;"), 0x3F800000),
    "a constant": ((".extern .const .u32 x;" + entry("ld.const.u32 %r1, [x];"), ".visible .const .u32 x = 6;"), 6),
    "the definition comes first": ((".visible .global .u32 x = 5;", ".extern .global .u32 x;" + entry(READ)), 5),
    "strong before weak": ((".weak .global .u32 x = 1;" + entry(READ), ".visible .global .u32 x = 2;"), 2),
    "the first weak one": ((".weak .global .u32 x = 1;" + entry(READ), ".weak .global .u32 x = 2;"), 1),
    "the first weak one, elsewhere": ((".weak .global .u32 x = 1;", ".weak .global .u32 x = 2;" + entry(READ)), 1),
    "common and strong": ((".common .global .u32 x;" + entry(READ), ".visible .global .u32 x = 7;"), 7),
    "common and initialized": ((".common .global .u32 x;" + entry(READ), ".common .global .u32 x = 7;"), 7),
    "the largest common one": (
        (".common .global .u32 x[2];" + entry("st.global.u32 [x+12], 9; ld.global.u32 %r1, [x+12];"),
         ".common .global .u32 x[4];"), 9),
    "private names": ((".global .u32 x = 1;" + entry(READ), ".global .u32 x = 2;" + entry(READ, "k2")), 1),
    "a private name beside a visible one": (
        (".global .u32 x = 1;" + entry(READ), ".visible .global .u32 x = 2;"), 1),
    "a private name that a function hides": (
        (".global .u32 x = 1;" + entry(READ),
         ".global .u32 x = 2;" + entry("{ .reg .u32 x; mov.u32 x, 3; mov.u32 %r1, x; }", "k2")), 1),
    "several names in a declaration": (
        (".weak .global .u32 w = 1, x = 2, y = 3;" + entry("ld.global.u32 %r1, [x];\nld.global.u32 %r2, [y];\n"
         "mad.lo.u32 %r1, %r1, 10, %r2;"), ".visible .global .u32 x = 8;"), 83),
    "a function": ((PROTO + entry(CALL), adds(1)), 6),
    "a weak function and a strong one": ((adds(1, ".weak") + entry(CALL), adds(2)), 7),
    "two weak functions": ((adds(1, ".weak") + entry(CALL), adds(2, ".weak")), 6),
    "private functions": ((adds(1, "") + entry(CALL), adds(2, "") + entry(CALL, "k2")), 6),
    "a function that reads its module's private variable": (
        (PROTO + ".global .u32 y = 1;" + entry(CALL),
         ".global .u32 y = 70;" + adds(0, extra=".reg .u32 %y; ld.global.u32 %y, [y]; add.u32 %r1, %r1, %y;")), 75),
    "each needs the other": (
        (PROTO + ".visible .global .u32 y = 4;" + entry(CALL),
         ".extern .global .u32 y;" + adds(0, extra=".reg .u32 %y; ld.global.u32 %y, [y]; add.u32 %r1, %r1, %y;")), 9),
    "an address in an initial value": (
        (".extern .global .u32 x;\n.global .u64 p = x;" + entry("ld.global.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1];"),
         ".visible .global .u32 x = 5;"), 5),
    "addresses of private names in initial values": (
        (".global .u32 x = 1;\n.global .u64 p[] = {x};" + entry(READ, "k2"),
         ".global .u32 x = 2;\n.global .u64 p[] = {x, generic(x)};"
         + entry("ld.global.u64 %rd1, [p+8]; ld.u32 %r1, [%rd1];")), 2),
    "a private name in the sum of an initial value": (
        (".global .u32 x[2] = {1, 2};" + entry(READ, "k2"),
         ".global .u32 x[2] = {3, 4};\n.global .u64 p = x+4;" + entry("ld.global.u64 %rd1, [p]; ld.u32 %r1, [%rd1];")),
        4),
    "private names declared behind another": (
        (".global .u32 w = 1, x = 2;\n.global .u64 p = x;" + entry(READ, "k2"),
         ".global .u32 w, x = 4, y;\n.global .u64 q, p = x;" + entry("ld.global.u64 %rd1, [p]; ld.u32 %r1, [%rd1];")),
        4),
    "a private function in a list of targets": (
        (adds(1, "") + entry(CALL, "k2"),
         adds(9, "") + entry("""{ .param .b32 a; .param .b32 b; mov.b32 %r2, 5; st.param.b32 [a], %r2; mov.u64 %rd1, f;
T: .calltargets f; call (b), %rd1, (a), T; ld.param.b32 %r1, [b]; }""")), 14),
    "a function of another module in a list of targets": (
        (PROTO + entry("""{ .param .b32 a; .param .b32 b; mov.b32 %r2, 5; st.param.b32 [a], %r2; mov.u64 %rd1, f;
T: .calltargets f; call (b), %rd1, (a), T; ld.param.b32 %r1, [b]; }"""), adds(2)), 7),
    "an alias of a private function": (
        (adds(1, "").replace(" f(", " g(") + entry(CALL.replace(" f,", " g,"), "k2"),
         adds(3, "").replace(" f(", " g(") + PROTO.replace(".extern", ".visible") + "\n.alias f, g;" + entry(CALL)), 8),
    "an alias": (
        (PROTO + entry(CALL),
         adds(3).replace(" f(", " g(") + ".visible .func (.param .b32 r) f(.param .b32 a);\n.alias f, g;"), 8),
    "shared memory": (
        (".extern .shared .u32 s[];" + entry("st.shared.u32 [s+4], 5; ld.shared.u32 %r1, [s+4];"),
         ".visible .shared .u32 s[4];"), 5),
    "shared memory that both use": (
        (".extern .shared .u32 s[];" + PROTO + entry("st.shared.u32 [s], 4;" + CALL),
         ".visible .shared .u32 s[4];" + adds(0, extra=".reg .u32 %y; ld.shared.u32 %y, [s]; add.u32 %r1, %r1, %y;")),
        9),
    "weak shared memory is one": (
        (".weak .shared .u32 s[4];" + PROTO + entry("mov.u32 %r3, s; st.shared.u32 [%r3], 3;" + CALL),
         ".weak .shared .u32 s[4];" + adds(0, extra=".reg .u32 %y; ld.shared.u32 %y, [s]; add.u32 %r1, %r1, %y;")), 8),
    "the call of a private function through its address": (
        (adds(1, "") + entry(CALL, "k2"),
         adds(9, "") + entry("""{ .param .b32 a; .param .b32 b; mov.b32 %r2, 5; st.param.b32 [a], %r2; mov.u64 %rd1, f;
P: .callprototype (.param .b32 r) _ (.param .b32 a); call (b), %rd1, (a), P; ld.param.b32 %r1, [b]; }""")), 14),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name: str) -> None:
    texts, expected = VALUES[name]
    assert value(*texts) == expected


def test_dynamic_shared_memory_begins_at_one_place_for_all_modules() -> None:
    first = ".extern .shared .align 16 .b8 s[];" + PROTO + entry("st.shared.u32 [s], 3;" + CALL)
    second = ".extern .shared .align 64 .b8 w[];" + adds(
        0, extra=".reg .u32 %y; ld.shared.u32 %y, [w]; add.u32 %r1, %r1, %y;"
    )
    assert value(first, second, shared=64) == 8


def test_linked_modules_run_as_one_that_says_the_same() -> None:
    """The same program in one module and in three: arrays and counts of instructions are equal."""
    parts = (
        ".extern .global .u32 table[];" + PROTO
        + entry("mov.u32 %r3, %tid.x; mul.wide.u32 %rd1, %r3, 4; add.u64 %o, %o, %rd1;\n" + CALL
                + "mov.u64 %rd2, table; add.u64 %rd2, %rd2, %rd1; ld.global.u32 %r4, [%rd2]; add.u32 %r1, %r1, %r4;"),
        adds(1),
        ".visible .global .u32 table[32] = {" + ", ".join(str(n * n) for n in range(32)) + "};",
    )  # fmt: skip
    whole = parts[2] + parts[1] + parts[0].replace(PROTO, "").replace(".extern .global .u32 table[];", "")
    outs = [np.zeros(32, np.uint32) for _ in range(2)]
    counts: list[int] = []
    for out, modules in zip(outs, ([module(part) for part in parts], module(whole)), strict=True):
        result = sim.run(modules, "k", block=32, args=[out], schedule="random", seed=3)
        counts.append(result.stats.lane_instructions)
    assert outs[0].tolist() == outs[1].tolist() == [6 + n * n for n in range(32)]
    assert counts[0] == counts[1]


def test_ptxas_accepts_the_declaration_that_replaces_a_weak_variable() -> None:
    modules = [module(".weak .global .u32 x[2] = {1, 2};"), module(".visible .global .u32 x[2] = {3, 4};")]
    assert validate(emit(sim.link(modules))) == ()


def test_modules_of_several_versions_and_targets_run_on_the_newest() -> None:
    first = parse(".version 7.0\n.target sm_80\n.address_size 64\n.visible .global .u32 x = 5;")
    second = module(".extern .global .u32 x;" + entry("griddepcontrol.wait;" + READ))
    out = np.zeros(1, np.uint32)
    sim.run([first, second], args=[out])
    assert out[0] == 5
    linked_module = sim.link([first, second])
    assert (linked_module.version.major, linked_module.version.minor, linked_module.target.targets) == (
        8,
        0,
        ("sm_90",),
    )


def test_modules_without_a_target_of_their_own_keep_their_options() -> None:
    modules = [module(".visible .global .u32 x;"), module(".visible .global .u32 y;")]
    modules = [part.replace(target=part.target.replace(targets=("debug", "texmode_unified"))) for part in modules]
    assert sim.link(modules).target.targets == ("debug", "texmode_unified")


def test_the_first_module_says_the_options_of_the_target() -> None:
    plain, other = module(".visible .global .u32 x;"), module(".visible .global .u32 y;")
    debugged = plain.replace(target=plain.target.replace(targets=("sm_80", "debug")))
    assert sim.link([debugged, other]).target.targets == ("sm_90", "debug")
    assert sim.link([other, debugged]).target.targets == ("sm_90",)


@pytest.mark.parametrize(
    ("versions", "expected"), [(("8.8", "8.10"), "8.10"), (("9.0", "8.10"), "9.0"), (("7.8", "8.0"), "8.0")]
)
def test_linked_modules_have_the_newest_version(versions: tuple[str, str], expected: str) -> None:
    texts = (".visible .global .u32 x;", ".visible .global .u32 y;")
    modules = [module(text) for text in texts]
    modules = [
        part.replace(version=part.version.replace(major=int(text.split(".")[0]), minor=int(text.split(".")[1])))
        for part, text in zip(modules, versions, strict=True)
    ]
    version = sim.link(modules).version
    assert f"{version.major}.{version.minor}" == expected


def test_what_does_not_link_names_both_places_and_a_remedy() -> None:
    modules = [module(".visible .global .u32 x = 1;" + entry(READ)), module("\n.visible .global .u32 x = 2;")]
    with raises(PtxError) as excinfo:
        sim.link(modules, ["a.ptx", "b.ptx"])
    (finding,) = excinfo.value.diagnostics
    assert str(finding.origin) == "b.ptx:5:1"
    assert finding.message == "`x` is defined here and at a.ptx:4:1"
    assert finding.help is not None
    assert ".weak" in finding.help


def test_a_module_without_a_place_is_another_module() -> None:
    first = module(entry(READ)).replace(origin=None)
    first = first.replace(target=first.target.replace(origin=None), address_size=None)
    (finding,) = list_link_errors([first, module(adds(1))])
    assert finding.message == "addresses have 64 bits here and 32 in another module"


@pytest.mark.parametrize("value", ["f", "{0, f}", "f+0", "generic(f)", "{generic(f), 0}"])
def test_a_function_in_an_initial_value_must_be_defined(value: str) -> None:
    use = f".global .u64 p{'[2]' if '{' in value else ''} = {value};\n"
    with raises(PtxError, match=r"`f` is external, but no module has a definition"):
        sim.link([module(PROTO + use + entry("mov.u32 %r1, 0;")), module(".global .u32 x;")])


def test_a_function_with_an_alias_must_be_defined() -> None:
    text = PROTO.replace(" f(", " g(") + PROTO.replace(".extern", ".visible") + "\n.alias f, g;"
    with raises(PtxError, match=r"`g` is external, but no module has a definition"):
        sim.link([module(text + entry("mov.u32 %r1, 0;")), module(".global .u32 x;")])


@pytest.mark.parametrize(("count", "words"), [(1, "1 other module declares it"), (2, "2 other modules declare it")])
def test_a_name_without_a_definition_says_who_else_declares_it(count: int, words: str) -> None:
    with raises(PtxError, match=words):
        sim.link([module(PROTO + entry(CALL)), *(module(PROTO) for _ in range(count))])


def test_a_fault_names_the_module() -> None:
    modules = [module(PROTO + entry(CALL)), module(adds(1, extra="trap;"))]
    with raises(PtxError, match=r"^<module 2>:5:22: error\[PTX1120\]"):
        sim.run(modules, args=[np.zeros(1, np.uint32)])


def test_a_private_name_gets_the_number_of_its_module() -> None:
    modules = [module(".global .u32 x = 1;" + entry(READ)), module(".global .u32 x = 2;" + entry(READ, "k2"))]
    machine = sim.Machine(modules, "k2", args=[np.zeros(1, np.uint32)])
    assert machine.memory("x$2").view(np.uint32).tolist() == [2]


def test_a_new_name_that_there_is_already_gets_a_dollar() -> None:
    first, second = ".global .u32 x = 1;", ".global .u32 x = 2;\n.global .u32 x$2 = 3;\n.global .u32 x$2$ = 4;"
    body = "ld.global.u32 %r2, [x$2]; ld.global.u32 %r3, [x$2$];" + READ
    machine = sim.Machine([module(first), module(second + entry(body))], args=[np.zeros(1, np.uint32)])
    values = {name: int(machine.memory(name).view(np.uint32)[0]) for name in ("x$2", "x$2$", "x$2$$")}
    assert values == {"x$2": 3, "x$2$": 4, "x$2$$": 2}


def test_a_function_in_which_a_name_has_two_meanings_is_refused() -> None:
    body = READ + "{ .reg .u32 x; mov.u32 x, 3; add.u32 %r1, %r1, x; }"
    with raises(PtxError, match=r"PTX1108.*`x`, which another module also declares, is hidden by a name in `k2`"):
        sim.link([module(".global .u32 x = 1;"), module(".global .u32 x = 2;" + entry(body, "k2"))])


def test_a_label_with_the_name_of_a_private_variable_stays() -> None:
    body = "mov.u32 %r1, 4; bra x; mov.u32 %r1, 5;\nx:"
    assert value(".global .u32 x = 1;", ".global .u32 x = 2;" + entry(body)) == 4


def test_linked_modules_are_prepared_once() -> None:
    modules = [module(".extern .global .u32 x;" + entry(READ)), module(".visible .global .u32 x = 5;")]
    assert sim.link(modules) is not sim.link(modules)
    from pyptx.sim.program.linking import combine_modules

    assert combine_modules(modules) is combine_modules(list(modules))
    assert combine_modules(modules[0]) is modules[0]


@pytest.mark.parametrize(
    ("modules", "kind"), [(".version 8.0", "str"), (5, "int"), ({1}, "set"), (None, "NoneType")],
)  # fmt: skip
def test_what_is_no_module_is_refused(modules: Any, kind: str) -> None:
    with pytest.raises(TypeError, match=f"^expected a module, found {kind}: pyptx.parser.parse"):
        sim.run(modules)


def test_lines_of_source_are_those_of_the_module() -> None:
    def add_line(name: str, body: str) -> Module:
        return module(f'.file 1 "{name}.cu"\n{body}')

    first = add_line("one", PROTO + entry(".loc 1 7 0\n" + CALL))
    second = add_line("two", adds(1, extra="\n.loc 1 9 0\ntrap;"))
    with raises(PtxError, match=r"it comes from two\.cu:9"):
        sim.run([first, second], args=[np.zeros(1, np.uint32)])


def test_streams_take_several_modules_too() -> None:
    modules = [module(".extern .global .u32 x;" + entry(READ)), module(".visible .global .u32 x = 5;")]
    out = np.zeros(1, np.uint32)
    sim.stream([sim.Launch(modules, args=[out])])
    assert out[0] == 5


def test_texts_are_to_be_parsed_first() -> None:
    texts: Any = ["text", "text"]
    with pytest.raises(TypeError, match="expected modules, found str"):
        sim.run(texts, args=())


@pytest.mark.parametrize("first", [0, 1])
def test_a_weak_definition_is_taken_before_a_common_one(first: int) -> None:
    texts = [".weak .global .u32 x = 7;\n", ".common .global .u32 x;\n" + entry(READ)]
    assert value(texts[first], texts[1 - first]) == 7
