"""Files about the kernels that a program launches: their PTX, and a timeline of the first launch of each."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pyptx.driver.modules import Kernel
from pyptx.emitter import emit

if TYPE_CHECKING:
    from pyptx.sim.observers.timeline import Timeline

_LONGEST_NAME = 60


@dataclass(frozen=True, slots=True)
class Files:
    """The files about a kernel."""

    ptx: Path
    timeline: Path

    @property
    def is_new(self) -> bool:
        """Whether no launch has written the timeline yet."""
        return not self.timeline.exists()

    def write(self, kernel: Kernel, timeline: Timeline | None) -> None:
        """Write the files, unless they exist."""
        if not self.ptx.exists():
            self.ptx.write_text(emit(kernel.module.loaded.module), "utf-8", "surrogateescape")
        if timeline is not None:
            timeline.save(self.timeline)


def name_files(folder: Path, kernel: Kernel) -> Files:
    """Return the files about a kernel: its name, as far as files can have it, and a digest of its module."""
    text = emit(kernel.module.loaded.module)
    digest = hashlib.sha256(f"{kernel.name}\n{text}".encode("utf-8", "surrogateescape")).hexdigest()[:8]
    stem = f"{re.sub(r'[^A-Za-z0-9_]', '_', kernel.name)[:_LONGEST_NAME]}-{digest}"
    return Files(folder / f"{stem}.ptx", folder / f"{stem}.html")
