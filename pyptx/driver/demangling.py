"""Names of C++ as people write them. Uses the demangler of a library that the process has loaded already, or a program:
a library that is loaded for this could take the place of a newer one that the program loads later."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping
from functools import cache

_LIBRARIES = ("libstdc++.so.6", "libc++abi.so.1")
_TOOLS = ("c++filt", "llvm-cxxfilt")
_SECONDS = 10
_QUOTED = re.compile(r"(?<=`)_Z\w+(?=`)")
"""A mangled name in a message. Lines of PTX, in which names keep their length, quote nothing."""
_TAG = re.compile(r"\[abi:\w+\]")
"""With these, numba tells the compilations of a function apart."""


def list_names(texts: Iterable[str]) -> dict[str, str]:
    """Return the mangled names that texts quote, with the names as people write them."""
    names = {name for text in texts for name in _QUOTED.findall(text)}
    return {name: text for name in sorted(names) if (text := demangle(name)) != name}


def replace_names(text: str, names: Mapping[str, str]) -> str:
    """Return a text with other names in place of those that it quotes."""
    return _QUOTED.sub(lambda match: names.get(match[0], match[0]), text)


@cache
def demangle(name: str) -> str:
    """Return a name of C++ as people write it; any other name, or one that nobody here can read, as it is."""
    if not name.startswith("_Z"):
        return name
    library = _find_library()
    text = _run_tool(name) if library is None else _call(library, name)
    return _TAG.sub("", text) or name


def _call(library: ctypes.CDLL, name: str) -> str:
    """Return what a library says, nothing if it cannot read the name."""
    status = ctypes.c_int()
    address = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    text = ctypes.string_at(address).decode("utf-8", "replace") if address else ""
    ctypes.CDLL(None).free(ctypes.c_void_p(address))
    return text


def _find_library() -> ctypes.CDLL | None:
    """Return a library of C++ that is loaded, None if none is."""
    for name in _LIBRARIES:
        try:
            library = ctypes.CDLL(name, os.RTLD_NOW | os.RTLD_NOLOAD)
        except OSError:
            continue
        library.__cxa_demangle.restype = ctypes.c_void_p
        return library
    return None


def _run_tool(name: str) -> str:
    """Return what a program says, nothing if there is none."""
    tool = next(filter(None, map(shutil.which, _TOOLS)), None)
    if tool is None:
        return ""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("LD_")}
    try:
        process = subprocess.run(
            [tool], input=name, env=environment, capture_output=True, text=True, errors="replace", check=False,
            timeout=_SECONDS,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return process.stdout.strip()
