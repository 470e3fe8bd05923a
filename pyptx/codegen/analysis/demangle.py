"""Extracts the readable part of a mangled C++ name: `_ZN7cutlass13device_kernelI…EvT_` -> `device_kernel`. Parses the
Itanium scheme as far as names need it and leaves unknown names unchanged. Rust's `_ZN…17h<hash>E` is supported too."""

from __future__ import annotations

import re

_BUILTIN = frozenset("vwbcahstijlmxynofdegz")
_HASH = re.compile(r"h[0-9a-f]{16}")
_NUMBER = re.compile(r"\d+")
_LITERAL = re.compile(r"[a-z]n?\d+E")
_QUALIFIERS = frozenset("rVKPROCG")
_OPERATORS = frozenset(
    "nw na dl da ps ng ad de co pl mi ml dv rm an or eo aS pL mI mL dV rM aN oR eO ls rs lS rS eq ne lt gt le ge nt aa "
    "oo pp mm cm pm pt cl ix qu cv li".split()
)
_DEEPEST = 200


def demangle(name: str) -> str:
    """Return the last component of a mangled name, or any other name unchanged."""
    if not name.startswith("_Z"):
        return name
    reader = _Reader(name)
    try:
        reader.position = 2
        component = reader.parse_encoding()
    except (_Unknown, RecursionError):
        return reader.last or name
    return component or reader.last or name


class _Unknown(Exception):
    """The name continues in a way that this parser does not know."""


class _Reader:
    """A position in a mangled name. `last` is the last plain identifier parsed."""

    def __init__(self, text: str) -> None:
        self.text, self.position, self.last, self.depth = text, 0, "", 0

    def peek(self, count: int = 1) -> str:
        return self.text[self.position : self.position + count]

    def take(self, text: str) -> bool:
        if not self.text.startswith(text, self.position):
            return False
        self.position += len(text)
        return True

    def parse_encoding(self) -> str:
        """Parse a name; the function's argument types that follow are ignored."""
        if self.peek() == "T" or self.peek(2) == "GV":
            raise _Unknown
        return self.parse_name()

    def parse_name(self) -> str:
        """Parse `N…E`, `Z<function>E<local>`, or a plain name with its template arguments."""
        self.take("L")
        if self.take("N"):
            return self.parse_nested()
        if self.take("Z"):
            self.parse_enclosing_function()
            if self.take("s"):
                return self.last
            return self.parse_name()
        if self.peek(2) == "St":
            self.position += 2
        component = self.parse_component()
        if self.peek() == "I":
            self.parse_arguments()
        return component

    def parse_enclosing_function(self) -> None:
        """Parse the function that contains a local entity, with its argument types, up to its `E`."""
        self.parse_encoding()
        while not self.take("E"):
            self.parse_type()

    def parse_nested(self) -> str:
        last = ""
        while self.peek() in _QUALIFIERS:
            self.position += 1
        while not self.take("E"):
            if self.peek() == "I":
                self.parse_arguments()
            elif self.peek() == "S":
                self.parse_substitution()
            elif self.peek() == "T":
                self.parse_parameter()
            else:
                component = self.parse_component()
                last = last if _HASH.fullmatch(component) and last else component
        return last

    def parse_component(self) -> str:
        """Parse one identifier, constructor, destructor, operator or lambda."""
        if self.peek() == "L":
            self.position += 1
        number = _NUMBER.match(self.text, self.position)
        if number is not None:
            first = number.end()
            self.position = first + int(number.group())
            if self.position > len(self.text):
                raise _Unknown
            self.last = self.text[first : self.position]
            return self.last
        two = self.peek(2)
        if two in ("C1", "C2", "C3", "D0", "D1", "D2"):
            self.position += 2
            return self.last if two[0] == "C" else f"delete_{self.last}"
        if two in ("Ul", "Ut"):
            return self.parse_lambda()
        if two in _OPERATORS:
            self.position += 2
            if two == "cv":
                self.parse_type()
            return "operator"
        raise _Unknown

    def parse_lambda(self) -> str:
        kind = self.peek(2)
        self.position += 2
        if kind == "Ul":
            while not self.take("E"):
                self.parse_type()
        number = _NUMBER.match(self.text, self.position)
        self.position = number.end() if number else self.position
        if not self.take("_"):
            raise _Unknown
        return "lambda_"

    def parse_substitution(self) -> None:
        self.position += 1
        if self.peek() in tuple("tabsiod"):
            self.position += 1
            return
        while self.peek().isdigit() or self.peek().isupper():
            self.position += 1
        if not self.take("_"):
            raise _Unknown

    def parse_parameter(self) -> None:
        self.position += 1
        while self.peek().isdigit():
            self.position += 1
        if not self.take("_"):
            raise _Unknown

    def parse_arguments(self) -> None:
        """Parse `I…E` or `J…E`."""
        self.position += 1
        while not self.take("E"):
            self.parse_argument()

    def parse_argument(self) -> None:
        if self.peek() in ("I", "J"):
            self.parse_arguments()
        elif self.peek() == "L":
            self.parse_literal()
        else:
            self.parse_type()

    def parse_literal(self) -> None:
        plain = _LITERAL.match(self.text, self.position + 1)
        if plain is not None:
            self.position = plain.end()
            return
        self.position += 1
        if self.peek(2) == "_Z":
            self.position += 2
            self.parse_encoding()
        else:
            self.parse_type()
            end = self.text.find("E", self.position)
            if end < 0:
                raise _Unknown
            self.position = end
        if not self.take("E"):
            raise _Unknown

    def parse_type(self) -> None:
        """Parse a type. Its identifiers are not candidates for the name."""
        self.depth += 1
        if self.depth > _DEEPEST or self.position >= len(self.text):
            raise _Unknown
        outer_last = self.last
        self._parse_type_body()
        self.last = outer_last
        self.depth -= 1

    def _parse_type_body(self) -> None:
        code = self.peek()
        if code in _QUALIFIERS:
            self.position += 1
            self.parse_type()
        elif code == "D":
            self._parse_extended()
        elif code in _BUILTIN:
            self.position += 1
        elif code == "S":
            self._parse_substituted()
        elif code == "T":
            self.parse_parameter()
            if self.peek() == "I":
                self.parse_arguments()
        elif code == "A":
            self._parse_array()
        elif code == "F":
            self.position += 1
            while not self.take("E"):
                self.parse_type()
        elif code == "M":
            self.position += 1
            self.parse_type()
            self.parse_type()
        else:
            self.parse_name()

    def _parse_substituted(self) -> None:
        if self.peek(2) == "St":
            self.parse_name()
            return
        self.parse_substitution()
        if self.peek() == "I":
            self.parse_arguments()

    def _parse_extended(self) -> None:
        two = self.peek(2)
        self.position += 2
        if two == "Dp":
            self.parse_type()
        elif two not in ("Dn", "Da", "Dc", "Dh", "Di", "Ds", "Du", "Df", "Dd", "De"):
            raise _Unknown

    def _parse_array(self) -> None:
        number = _NUMBER.match(self.text, self.position + 1)
        self.position = number.end() if number else self.position + 1
        if not self.take("_"):
            raise _Unknown
        self.parse_type()
