"""The arguments of every command, with their defaults and choices: they change only together with their digests."""

from __future__ import annotations

import argparse
from importlib import import_module

import pytest

from pyptx.cli import COMMANDS
from tests.digests import assert_digest


def list_actions(command: str) -> list[argparse.Action]:
    parser = argparse.ArgumentParser()
    import_module(f"pyptx.cli.{command}").add_arguments(parser)
    return parser._actions  # pyright: ignore[reportPrivateUsage]


@pytest.mark.parametrize("command", COMMANDS)
def test_the_arguments_of_a_command(command: str) -> None:
    lines = [
        f"{action.option_strings} {action.dest} {action.nargs} {action.default!r} {action.const!r} {action.required} "
        f"{None if action.choices is None else list(action.choices)} {action.metavar}"
        for action in list_actions(command)
    ]
    assert_digest("options", command, "\n".join(lines))


def test_the_help_names_the_default_limit_of_steps() -> None:
    (action,) = [action for action in list_actions("sim") if action.dest == "max_steps"]
    assert action.help == "stop with an error after N instructions (default: 50,000,000)"
