"""PTX to cubin by either engine, and text that both refuse."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from pyptx.diagnostics import PtxError
from pyptx.isa.targets import ASSEMBLED
from pyptx.toolchain import (
    AssemblyError,
    Cubin,
    assemble,
    assemble_with_nvjitlink,
    assemble_with_ptxas,
    default_target,
    disassemble,
    resources,
    validate,
)
from pyptx.toolchain.cubin import Engine
from pyptx.toolchain.tools import report_missing
from tests.toolchain.modules import HEAD, REGISTER_PARTITION, SMALL, TWO_KERNELS

ENGINES: list[Engine] = ["ptxas", "nvjitlink"]


@pytest.mark.parametrize("engine", ENGINES)
def test_a_kernel_assembles(engine: Engine) -> None:
    cubin = assemble(SMALL, engine=engine)
    assert cubin.data.startswith(b"\x7fELF")
    assert cubin.target == "sm_90a"
    assert cubin.diagnostics == ()
    assert list(resources(cubin)) == ["small"]


def test_ptxas_is_the_default() -> None:
    assert assemble(SMALL).producer.startswith("ptxas 13.")


def test_nvjitlink_takes_the_place_of_a_missing_ptxas(monkeypatch: pytest.MonkeyPatch) -> None:
    def find_nothing(name: str) -> None:
        raise report_missing(name)

    monkeypatch.setattr("pyptx.toolchain.assembler.find_tool", find_nothing)
    assert assemble(SMALL) == assemble_with_nvjitlink(SMALL)


def test_the_same_text_gives_the_same_cubin() -> None:
    assert assemble(TWO_KERNELS) == assemble(TWO_KERNELS)


@pytest.mark.parametrize("target", ASSEMBLED)
def test_every_target_assembles_and_validates(target: str) -> None:
    text = f".version 9.5\n.target {target}\n.address_size 64\n.visible .entry k()\n{{\n    ret;\n}}\n"
    assert assemble_with_ptxas(text).target == target
    assert assemble_with_nvjitlink(text).target == target
    assert validate(text) == ()


def test_a_virtual_name_means_the_same_architecture() -> None:
    assert assemble(SMALL, "compute_90a").target == "sm_90a"


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (".version 8.0\n.target sm_90a, texmode_independent\n", "sm_90a"),
        ("// .target sm_80\n/* .target\nsm_86 */ .target\n sm_100f", "sm_100f"),
        ('.file 1 ".target sm_80"\n.target sm_89', "sm_89"),
        (".target sm_52", "sm_75"),
        ("", "sm_75"),
        ("/* unclosed .target sm_90", "sm_75"),
    ],
)
def test_the_default_target_is_the_modules_own(text: str, target: str) -> None:
    assert default_target(text) == target


@pytest.mark.parametrize("target", ["sm_hopper", "90", "sm_90a -o /tmp/x", "", "-v", "sm_90b"])
def test_a_name_that_is_no_target_is_refused(target: str) -> None:
    with pytest.raises(PtxError, match="PTX0704"):
        assemble(SMALL, target)


def test_a_target_that_ptxas_does_not_know_is_reported_as_one() -> None:
    with pytest.raises(AssemblyError, match="PTX0704"):
        assemble(SMALL, "sm_999")
    with pytest.raises(AssemblyError):
        assemble_with_nvjitlink(SMALL, "sm_999")


@pytest.mark.parametrize("engine", ENGINES)
def test_options_reach_the_assembler(engine: Engine) -> None:
    fast = resources(assemble(TWO_KERNELS, engine=engine))["second"].registers
    slow = assemble(TWO_KERNELS, engine=engine, options=["-O0"])
    assert resources(slow)["second"].registers != fast


@pytest.mark.parametrize("option", ["/etc/passwd", "-o x", "", "-", "-Xptxas", "out.cubin", "-v\n"])
def test_what_is_no_option_is_refused(option: str) -> None:
    if option == "-Xptxas":
        with pytest.raises(AssemblyError, match="Unknown option"):
            assemble(SMALL, options=[option])
    else:
        with pytest.raises(ValueError, match="expected a ptxas option without spaces"):
            assemble(SMALL, options=[option])


@pytest.mark.parametrize("engine", ENGINES)
def test_trailing_nuls_are_dropped_and_others_refused(engine: Engine) -> None:
    assert assemble(SMALL + "\0\0", engine=engine) == assemble(SMALL, engine=engine)
    with pytest.raises(PtxError) as excinfo:
        assemble(SMALL.replace("ret;", "ret;\0"), engine=engine)
    assert [(d.code, d.line, d.col) for d in excinfo.value.diagnostics] == [("PTX0705", 12, 9)]


@pytest.mark.parametrize("engine", ENGINES)
def test_comments_may_hold_any_character(engine: Engine) -> None:
    assert assemble(SMALL + "// \u4e2d \udcff\n", engine=engine).data


@pytest.mark.parametrize("text", ["", "hello", "\ufeff" + SMALL, HEAD[14:]])
def test_text_that_nvjitlink_does_not_take_for_ptx_is_an_error_with_words(text: str) -> None:
    for engine in ENGINES:
        with pytest.raises(AssemblyError) as excinfo:
            assemble(text, "sm_90a", engine=engine)
        assert excinfo.value.diagnostics[0].message


@pytest.mark.parametrize("engine", ENGINES)
def test_an_undefined_function_is_an_error(engine: Engine) -> None:
    text = HEAD + ".extern .func late;\n.visible .entry k()\n{\n    call late;\n    ret;\n}\n"
    with pytest.raises(AssemblyError, match="late") as excinfo:
        assemble(text, engine=engine)
    assert "late" in excinfo.value.log


def test_relocatable_code_may_leave_functions_open() -> None:
    text = HEAD + ".extern .func late;\n.visible .entry k()\n{\n    call late;\n    ret;\n}\n"
    assert assemble_with_nvjitlink(text, relocatable=True).data
    assert assemble_with_ptxas(text, options=["-c"]).data


def test_only_ptxas_honors_setmaxnreg() -> None:
    """The reason why ptxas is the default: nvJitLink compiles relocatable code, and ignores the redistribution of
    registers."""
    by_ptxas, by_nvjitlink = assemble_with_ptxas(REGISTER_PARTITION), assemble_with_nvjitlink(REGISTER_PARTITION)
    assert by_ptxas.diagnostics == ()
    assert any(i.opcode.startswith("USETMAXREG") for i in disassemble(by_ptxas))
    assert not any(i.opcode.startswith("USETMAXREG") for i in disassemble(by_nvjitlink))
    (advice,) = by_nvjitlink.diagnostics
    assert (advice.code, str(advice.severity)) == ("PTX0714", "note")
    assert "'setmaxnreg' ignored" in advice.message


@pytest.mark.parametrize("engine", ENGINES)
def test_threads_may_assemble_at_the_same_time(engine: Engine) -> None:
    texts = [SMALL.replace("%r1, 1", f"%r1, {n}") for n in range(12)]
    serial = [assemble(text, engine=engine) for text in texts]

    def work(text: str) -> Cubin:
        return assemble(text, engine=engine)

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, texts)) == serial
    assert len({cubin.data for cubin in serial}) == len(texts)
