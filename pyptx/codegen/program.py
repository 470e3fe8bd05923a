"""main"""
from __future__ import annotations


def main(module, original):
    print(module.ptx(), end="")
    return 0
