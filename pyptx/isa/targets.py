"""Architectures, PTX versions and which target supports what. Knows nothing about instructions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

Version = tuple[int, int]

NEWEST_PTX: Version = (9, 5)
"""The newest PTX version in the table, which is the newest of ptxas 13.5."""

PTX_VERSIONS: tuple[Version, ...] = tuple(
    (major, minor)
    for major, last in ((1, 5), (2, 3), (3, 2), (4, 3), (5, 1), (6, 5), (7, 8), (8, 8), (9, 5))
    for minor in range(last + 1)
    if (major, minor) not in ((3, 3),)
)

FIRST_PTX: dict[str, Version] = {
    "sm_10": (1, 0), "sm_11": (1, 0), "sm_12": (1, 2), "sm_13": (1, 2), "sm_20": (2, 0), "sm_21": (2, 0),
    "sm_30": (3, 0), "sm_32": (4, 0), "sm_35": (3, 1), "sm_37": (4, 1), "sm_50": (4, 0), "sm_52": (4, 1),
    "sm_53": (4, 2), "sm_60": (5, 0), "sm_61": (5, 0), "sm_62": (5, 0), "sm_70": (6, 0), "sm_72": (6, 1),
    "sm_75": (6, 3), "sm_80": (7, 0), "sm_86": (7, 1), "sm_87": (7, 4), "sm_88": (9, 0), "sm_89": (7, 8),
    "sm_90": (7, 8), "sm_90a": (8, 0),
    "sm_100": (8, 6), "sm_100a": (8, 6), "sm_100f": (8, 8),
    "sm_101": (8, 6), "sm_101a": (8, 6), "sm_101f": (8, 8),
    "sm_103": (8, 8), "sm_103a": (8, 8), "sm_103f": (8, 8),
    "sm_107": (9, 4), "sm_107a": (9, 4), "sm_107f": (9, 4),
    "sm_110": (9, 0), "sm_110a": (9, 0), "sm_110f": (9, 0),
    "sm_120": (8, 7), "sm_120a": (8, 7), "sm_120f": (8, 8),
    "sm_121": (8, 8), "sm_121a": (8, 8), "sm_121f": (8, 8),
}  # fmt: skip
"""Every target and the PTX version that introduced it (manual: PTX Module Directives: .target)."""

ASSEMBLED = (
    "sm_75", "sm_80", "sm_86", "sm_87", "sm_88", "sm_89", "sm_90", "sm_90a", "sm_100", "sm_100a", "sm_100f",
    "sm_103", "sm_103a", "sm_103f", "sm_107", "sm_107a", "sm_107f", "sm_110", "sm_110a", "sm_110f",
    "sm_120", "sm_120a", "sm_120f", "sm_121", "sm_121a", "sm_121f",
)  # fmt: skip
"""The targets of the newest ptxas."""

FAMILIES = ((100, 103, 107), (110,), (120, 121))
"""The architectures of each family: code with the suffix `f` runs on its own architecture and the later ones."""
RENAMED = {101: 110}
"""sm_101 was renamed sm_110 in PTX 9.0; both names mean the same architecture."""


@dataclass(frozen=True, slots=True)
class Target:
    """One architecture: its number and its suffix (`a` architecture-specific, `f` family-specific, or none)."""

    arch: int
    suffix: str = ""

    @property
    def name(self) -> str:
        return f"sm_{self.arch}{self.suffix}"

    def __str__(self) -> str:
        return self.name

    def provides(self, feature: Target) -> bool:
        """Tell whether code for this target may use a feature introduced with `feature`."""
        mine, theirs = RENAMED.get(self.arch, self.arch), RENAMED.get(feature.arch, feature.arch)
        if feature.suffix == "a":
            return self.suffix == "a" and mine == theirs
        if feature.suffix == "f":
            return self.suffix != "" and any(mine in f and theirs in f for f in FAMILIES) and mine >= theirs
        return mine >= theirs


@cache
def find_target(name: str) -> Target:
    """Return the target of this name; ValueError for a name that no PTX version defines."""
    if name not in FIRST_PTX:
        raise ValueError(f"unknown target {name!r}; the targets are {', '.join(FIRST_PTX)}")
    digits = name.removeprefix("sm_").rstrip("af")
    return Target(int(digits), name.removeprefix("sm_")[len(digits) :])


@dataclass(frozen=True, slots=True)
class Availability:
    """The first PTX version by target: any of `since` (target or None for every one, first PTX version)."""

    since: tuple[tuple[Target | None, Version], ...]

    def on(self, target: Target, version: Version) -> bool:
        """Tell whether a module of this target and version may use it."""
        return any((feature is None or target.provides(feature)) and version >= first for feature, first in self.since)

    def find_first_version(self, target: Target) -> Version | None:
        """Return the first PTX version that supports it on this target, or None."""
        fits = [first for feature, first in self.since if feature is None or target.provides(feature)]
        return min(fits, default=None)

    def __str__(self) -> str:
        return " or ".join(
            f"PTX {first[0]}.{first[1]}" + (f" on {feature}{'' if feature.suffix else ' and newer'}" if feature else "")
            for feature, first in self.since
        )


def parse_version(text: str) -> Version:
    """Return the PTX version that `text` ("8.6") spells."""
    major, _, minor = text.partition(".")
    return int(major), int(minor)


@cache
def parse_availability(ptx: Version | None, sm: str = "") -> Availability:
    """Return the availability that a row spells: `sm` lists targets separated by spaces or `|`, each with its own first
    version after a colon if it differs from `ptx` ("sm_100a sm_110f:9.0"). Without `ptx`, it is that of the oldest
    target that provides the feature."""
    since: list[tuple[Target | None, Version]] = []
    for word in sm.replace("|", " ").split():
        name, _, first = word.partition(":")
        since.append((find_target(name), parse_version(first) if first else ptx or find_oldest(name)))
    return Availability(tuple(since) or ((None, ptx or PTX_VERSIONS[0]),))


def find_oldest(name: str) -> Version:
    """Return the first version with a target that provides this one's features."""
    feature = find_target(name)
    return min(first for other, first in FIRST_PTX.items() if find_target(other).provides(feature))
