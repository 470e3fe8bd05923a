"""The simulated driver in the process of the tests."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest

import pyptx.driver
from pyptx.runtime import calls, extension

Activate = Callable[..., None]


@pytest.fixture(params=["extension", "python"] if extension.load() else ["python"])
def implementation(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Run a test with the C extension, if it is built, and without."""
    name: str = request.param
    if name == "python":
        monkeypatch.setattr(extension, "load", find_none)
    return name


def find_none() -> None: ...


@pytest.fixture
def activate() -> Generator[Activate]:
    """Return the function that makes the simulated driver that of this process, until the test ends."""
    yield pyptx.driver.activate
    pyptx.driver.deactivate()


@pytest.fixture
def device(activate: Activate) -> Any:
    """Make the simulated driver that of this process, and return memory on its device."""
    from tests.runtime.device_memory import DeviceMemory

    activate()
    return DeviceMemory()


@pytest.fixture
def bindings(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Return a list that grows with every call that is bound."""
    bound: list[Any] = []
    bind = calls.bind

    def note(*arguments: Any, **keywords: Any) -> Any:
        bound.append(arguments)
        return bind(*arguments, **keywords)

    monkeypatch.setattr(calls, "bind", note)
    return bound
