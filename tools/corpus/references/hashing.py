"""Hashes, checksums, codes, ciphers: Python integers and the standard library."""

from __future__ import annotations

import base64 as standard_base64
import hashlib
import zlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results

MASK = (1 << 32) - 1
MASK64 = (1 << 64) - 1


def _rotl(x: int, r: int, bits: int = 32) -> int:
    return (x << r | x >> (bits - r)) & ((1 << bits) - 1)


def _words(x: NDArray[Any]) -> list[list[int]]:
    return [[int(word) for word in row] for row in x]


def murmur3(args: Args) -> Results:
    hashes: list[int] = []
    for row in _words(args["x"]):
        a = int(args["seed"])
        for word in row:
            k = _rotl(word * 0xCC9E2D51 & MASK, 15) * 0x1B873593 & MASK
            a = (_rotl(a ^ k, 13) * 5 + 0xE6546B64) & MASK
        a ^= 16
        a = (a ^ a >> 16) * 0x85EBCA6B & MASK
        a = (a ^ a >> 13) * 0xC2B2AE35 & MASK
        hashes.append(a ^ a >> 16)
    return {"h": np.array(hashes, np.uint32)}


def fnv1a(args: Args) -> Results:
    hashes: list[int] = []
    for row in args["x"]:
        a = 0xCBF29CE484222325
        for byte in row.tobytes():
            a = (a ^ byte) * 0x100000001B3 & MASK64
        hashes.append(a)
    return {"h": np.array(hashes, np.uint64)}


def crc32(args: Args) -> Results:
    return {"c": np.array([zlib.crc32(row.tobytes()) for row in args["x"]], np.uint32)}


def adler32(args: Args) -> Results:
    return {"c": np.array([zlib.adler32(row.tobytes()) for row in args["x"]], np.uint32)}


def sha256(args: Args) -> Results:
    digests = b"".join(hashlib.sha256(row.tobytes()).digest() for row in args["x"])
    return {"h": np.frombuffer(digests, np.uint8).reshape(args["h"].shape)}


def siphash(args: Args) -> Results:
    return {"h": np.array([_siphash(int(args["k0"]), int(args["k1"]), int(m)) for m in args["x"]], np.uint64)}


def _siphash(k0: int, k1: int, message: int) -> int:
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D, k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rounds(count: int) -> None:
        for _ in range(count):
            v[0] = (v[0] + v[1]) & MASK64
            v[1] = _rotl(v[1], 13, 64) ^ v[0]
            v[0] = _rotl(v[0], 32, 64)
            v[2] = (v[2] + v[3]) & MASK64
            v[3] = _rotl(v[3], 16, 64) ^ v[2]
            v[0] = (v[0] + v[3]) & MASK64
            v[3] = _rotl(v[3], 21, 64) ^ v[0]
            v[2] = (v[2] + v[1]) & MASK64
            v[1] = _rotl(v[1], 17, 64) ^ v[2]
            v[2] = _rotl(v[2], 32, 64)

    for word in (message, 8 << 56):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xFF
    rounds(4)
    return v[0] ^ v[1] ^ v[2] ^ v[3]


def base64(args: Args) -> Results:
    return {"y": np.frombuffer(standard_base64.b64encode(args["x"].tobytes()), np.uint8)}


def chacha_block(args: Args) -> Results:
    blocks: list[list[int]] = []
    columns = [(i, i + 4, i + 8, i + 12) for i in range(4)]
    diagonals = [(0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14)]
    for row in _words(args["x"]):
        s = list(row)
        for a, b, c, d in (columns + diagonals) * 10:
            for target, addend, word, amount in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
                s[target] = (s[target] + s[addend]) & MASK
                s[word] = _rotl(s[word] ^ s[target], amount)
        blocks.append([(a + b) & MASK for a, b in zip(s, row, strict=True)])
    return {"y": np.array(blocks, np.uint32)}


def xtea(args: Args) -> Results:
    key = [int(word) for word in args["key"]]
    rows: list[list[int]] = []
    for a, b in _words(args["x"]):
        total = 0
        for _ in range(32):
            a = (a + ((((b << 4) & MASK ^ b >> 5) + b) & MASK ^ (total + key[total & 3]) & MASK)) & MASK
            total = (total + 0x9E3779B9) & MASK
            b = (b + ((((a << 4) & MASK ^ a >> 5) + a) & MASK ^ (total + key[total >> 11 & 3]) & MASK)) & MASK
        rows.append([a, b])
    return {"y": np.array(rows, np.uint32)}


def all_found(args: Args) -> Results:
    return {"found": np.ones(len(args["key"]), np.int32)}


def bloom(args: Args) -> Results:
    words = [0] * 16
    for value in args["x"]:
        for k in (1, 2, 3):
            h = (int(value) * (2 * k + 0x9E3779B1) & MASK) >> 23
            words[h >> 5] |= 1 << (h & 31)
    return {"filter": np.array(words, np.uint32)}


def galois_parity(args: Args) -> Results:
    parities: list[int] = []
    for row in args["x"]:
        parity = 0
        for byte in row.tobytes():
            parity <<= 1
            parity ^= (0x11D if parity & 0x100 else 0) ^ byte
        parities.append(parity)
    return {"p": np.array(parities, np.uint8)}
