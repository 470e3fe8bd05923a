"""Compile every file of LLVM IR with the NVPTX back end in llvmlite.

Run by `tools.corpus.python_producers.build`, inside llvmlite's own environment.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import llvmlite.binding as llvm

from tools.corpus.manifest import File, Manifest, save
from tools.corpus.python_producers import record
from tools.corpus.python_producers.llvm_kernels.cases import UNITS, Unit

HERE = Path(__file__).parent
RECIPE = "tools.corpus.python_producers.build llvm"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    save(Manifest("llvm", RECIPE, tuple(compile_unit(unit, arguments.out) for unit in UNITS)), arguments.out)


def compile_unit(unit: Unit, out: Path) -> File:
    """Compile one file and write its PTX."""
    source = HERE / f"{unit.source}.ll"
    module = llvm.parse_assembly(source.read_text(encoding="utf-8"))
    module.verify()
    target = llvm.Target.from_triple("nvptx64-nvidia-cuda")
    machine = target.create_target_machine(cpu=unit.target, features=unit.features, opt=unit.level)
    text = machine.emit_assembly(module).encode()
    number = ".".join(map(str, llvm.llvm_version_info))
    version = f"{number} (llvmlite {record.installed('llvmlite')})"
    flags = [f"-mcpu={unit.target}", f"-mattr={unit.features}", f"-O{unit.level}"]
    return record.write(out, unit.source, text, unit.kernels, version=version, flags=flags, source=str(source))


if __name__ == "__main__":
    main()
