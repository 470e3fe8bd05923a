"""numba-cuda kernels on integers, bytes, graphs and strings: reductions, scans, sorts, hashes, searches, atomics."""

from __future__ import annotations

import numpy as np
from numba import cuda, int32, int64, uint8, uint32, uint64

ALPHABET = np.frombuffer(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/", np.uint8)


def _crc_table():
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0xEDB88320), table >> 1)
    return table.astype(np.uint32)


def _prime_roots(count, power):
    """The first 32 bits of the fractions of roots of primes, in exact integers: SHA-256's constants."""
    primes = [p for p in range(2, 400) if all(p % q for q in range(2, int(p**0.5) + 1))][:count]
    words = []
    for prime in primes:
        scaled = prime << (32 * power)
        low, high = 0, 1 << 40
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if middle**power <= scaled else (low, middle - 1)
        words.append(low & 0xFFFFFFFF)
    return np.array(words, dtype=np.uint32)


CRC_TABLE = _crc_table()
SHA_ROUND = _prime_roots(64, 3)
SHA_START = _prime_roots(8, 2)


def reduce_block(x, out):
    part = cuda.shared.array(128, int32)
    lane = cuda.threadIdx.x
    i = cuda.grid(1)
    part[lane] = x[i] if i < x.size else 0
    cuda.syncthreads()
    stride = 64
    while stride > 0:
        if lane < stride:
            part[lane] += part[lane + stride]
        cuda.syncthreads()
        stride //= 2
    if lane == 0:
        cuda.atomic.add(out, 0, part[0])


def reduce_warp(x, out):
    value = x[cuda.grid(1)]
    for step in (16, 8, 4, 2, 1):
        value = max(value, cuda.shfl_down_sync(0xFFFFFFFF, value, step))
    if cuda.laneid == 0:
        cuda.atomic.max(out, 0, value)


def blelloch_scan(x, out):
    work = cuda.shared.array(256, int32)
    lane = cuda.threadIdx.x
    work[2 * lane] = x[2 * lane]
    work[2 * lane + 1] = x[2 * lane + 1]
    step = 1
    width = 128
    while width > 0:
        cuda.syncthreads()
        if lane < width:
            right = step * (2 * lane + 2) - 1
            work[right] += work[right - step]
        step *= 2
        width //= 2
    if lane == 0:
        work[255] = 0
    width = 1
    while width < 256:
        step //= 2
        cuda.syncthreads()
        if lane < width:
            right = step * (2 * lane + 2) - 1
            left = work[right - step]
            work[right - step] = work[right]
            work[right] += left
        width *= 2
    cuda.syncthreads()
    out[2 * lane] = work[2 * lane]
    out[2 * lane + 1] = work[2 * lane + 1]


def odd_even_merge_sort(x):
    work = cuda.shared.array(128, int32)
    i = cuda.threadIdx.x
    work[i] = x[i]
    cuda.syncthreads()
    p = 1
    while p < 128:
        k = p
        while k >= 1:
            offset = i - k % p
            if offset >= 0 and (offset // k) % 2 == 0 and i + k < 128 and i // (2 * p) == (i + k) // (2 * p):
                a = work[i]
                b = work[i + k]
                if a > b:
                    work[i] = b
                    work[i + k] = a
            cuda.syncthreads()
            k //= 2
        p *= 2
    x[i] = work[i]


def histogram_shared(x, out):
    bins = cuda.shared.array(64, int32)
    lane = cuda.threadIdx.x
    if lane < 64:
        bins[lane] = 0
    cuda.syncthreads()
    for i in range(cuda.grid(1), x.size, cuda.gridsize(1)):
        cuda.atomic.add(bins, x[i], 1)
    cuda.syncthreads()
    if lane < 64:
        cuda.atomic.add(out, lane, bins[lane])


def transpose_padded(x, out):
    tile = cuda.shared.array((16, 17), uint32)
    tx, ty = cuda.threadIdx.x, cuda.threadIdx.y
    column = cuda.blockIdx.x * 16 + tx
    row = cuda.blockIdx.y * 16 + ty
    if row < x.shape[0] and column < x.shape[1]:
        tile[ty, tx] = x[row, column]
    cuda.syncthreads()
    column = cuda.blockIdx.y * 16 + tx
    row = cuda.blockIdx.x * 16 + ty
    if row < out.shape[0] and column < out.shape[1]:
        out[row, column] = tile[tx, ty]


def substring_search(text, pattern, found):
    i = cuda.grid(1)
    if i + pattern.size <= text.size:
        same = True
        for k in range(pattern.size):
            if text[i + k] != pattern[k]:
                same = False
                break
        if same:
            cuda.atomic.min(found, 0, i)
            cuda.atomic.add(found, 1, 1)


def base64_encode(data, out):
    alphabet = cuda.const.array_like(ALPHABET)
    i = cuda.grid(1)
    if 3 * i < data.size:
        word = (uint32(data[3 * i]) << 16) | (uint32(data[3 * i + 1]) << 8) | uint32(data[3 * i + 2])
        for part in range(4):
            out[4 * i + part] = alphabet[(word >> uint32(18 - 6 * part)) & 63]


def crc32(messages, out):
    table = cuda.const.array_like(CRC_TABLE)
    i = cuda.grid(1)
    if i < messages.shape[0]:
        crc = uint32(0xFFFFFFFF)
        for k in range(messages.shape[1]):
            crc = table[(crc ^ messages[i, k]) & 0xFF] ^ (crc >> uint32(8))
        out[i] = crc ^ uint32(0xFFFFFFFF)


@cuda.jit(device=True)
def rotate(word, count):
    return uint32((word >> count) | (word << (uint32(32) - count)))


def sha256_block(messages, out):
    """Digest of messages of 55 bytes or fewer, already padded to one block of 16 big-endian words."""
    table = cuda.const.array_like(SHA_ROUND)
    start = cuda.const.array_like(SHA_START)
    word = cuda.local.array(64, uint32)
    state = cuda.local.array(8, uint32)
    i = cuda.grid(1)
    if i >= messages.shape[0]:
        return
    for t in range(16):
        word[t] = messages[i, t]
    for t in range(16, 64):
        s0 = rotate(word[t - 15], uint32(7)) ^ rotate(word[t - 15], uint32(18)) ^ (word[t - 15] >> uint32(3))
        s1 = rotate(word[t - 2], uint32(17)) ^ rotate(word[t - 2], uint32(19)) ^ (word[t - 2] >> uint32(10))
        word[t] = uint32(word[t - 16] + s0 + word[t - 7] + s1)
    for k in range(8):
        state[k] = start[k]
    for t in range(64):
        e = state[4]
        a = state[0]
        s1 = rotate(e, uint32(6)) ^ rotate(e, uint32(11)) ^ rotate(e, uint32(25))
        choose = (e & state[5]) ^ (~e & state[6])
        t1 = uint32(state[7] + s1 + choose + table[t] + word[t])
        s0 = rotate(a, uint32(2)) ^ rotate(a, uint32(13)) ^ rotate(a, uint32(22))
        majority = (a & state[1]) ^ (a & state[2]) ^ (state[1] & state[2])
        for k in range(7):
            state[7 - k] = state[6 - k]
        state[4] = uint32(state[4] + t1)
        state[0] = uint32(t1 + s0 + majority)
    for k in range(8):
        out[i, k] = uint32(state[k] + start[k])


def bfs_level(offsets, edges, distance, level, changed):
    node = cuda.grid(1)
    if node < distance.size and distance[node] == level:
        for k in range(offsets[node], offsets[node + 1]):
            if cuda.atomic.cas(distance, edges[k], -1, level + 1) == -1:
                changed[0] = 1


def spmv_csr(offsets, columns, values, x, out):
    """One warp per row."""
    row = cuda.grid(1) // 32
    lane = cuda.laneid
    if row < out.size:
        total = 0.0
        for k in range(offsets[row] + lane, offsets[row + 1], 32):
            total += values[k] * x[columns[k]]
        for step in (16, 8, 4, 2, 1):
            total += cuda.shfl_xor_sync(0xFFFFFFFF, total, step)
        if lane == 0:
            out[row] = total


def floyd_warshall(distance):
    i, j = cuda.threadIdx.y, cuda.threadIdx.x
    for k in range(distance.shape[0]):
        through = distance[i, k] + distance[k, j]
        cuda.syncthreads()
        if through < distance[i, j]:
            distance[i, j] = through
        cuda.syncthreads()


def levenshtein(a, b, out):
    """Edit distance of two strings by anti-diagonals, one thread per row of the table."""
    table = cuda.shared.array((33, 33), int32)
    i = cuda.threadIdx.x
    table[i, 0] = i
    table[0, i] = i
    for diagonal in range(2, 65):
        cuda.syncthreads()
        j = diagonal - i
        if i >= 1 and 1 <= j <= 32:
            cost = 0 if a[i - 1] == b[j - 1] else 1
            table[i, j] = min(table[i - 1, j - 1] + cost, min(table[i - 1, j], table[i, j - 1]) + 1)
    cuda.syncthreads()
    if i == 32:
        out[0] = table[32, 32]


def nearest_neighbours(points, queries, out):
    """The four nearest points of each query by insertion into a local list."""
    best = cuda.local.array(4, int64)
    index = cuda.local.array(4, int32)
    i = cuda.grid(1)
    if i >= queries.shape[0]:
        return
    for k in range(4):
        best[k] = int64(1) << int64(62)
        index[k] = -1
    for p in range(points.shape[0]):
        distance = int64(0)
        for axis in range(points.shape[1]):
            delta = int64(points[p, axis]) - int64(queries[i, axis])
            distance += delta * delta
        k = 3
        if distance < best[3]:
            while k > 0 and best[k - 1] > distance:
                best[k] = best[k - 1]
                index[k] = index[k - 1]
                k -= 1
            best[k] = distance
            index[k] = p
    for k in range(4):
        out[i, k] = index[k]


def insertion_sort(rows):
    work = cuda.local.array(16, np.int16)
    i = cuda.grid(1)
    if i < rows.shape[0]:
        for k in range(16):
            value = rows[i, k]
            j = k
            while j > 0 and work[j - 1] > value:
                work[j] = work[j - 1]
                j -= 1
            work[j] = value
        for k in range(16):
            rows[i, k] = work[k]


def compact_warp(x, out, count):
    """Keep the odd values of each warp with a ballot; warps take their places with one atomic."""
    i = cuda.grid(1)
    value = x[i]
    lane = cuda.laneid
    mask = cuda.ballot_sync(0xFFFFFFFF, value % 2 == 1)
    first = 0
    if lane == 0:
        first = cuda.atomic.add(count, 0, cuda.popc(mask))
    first = cuda.shfl_sync(0xFFFFFFFF, first, 0)
    if value % 2 == 1:
        out[first + cuda.popc(mask & ((1 << lane) - 1))] = value


def match_groups(keys, out):
    """How many lanes of the warp hold the same key, and whether all do."""
    i = cuda.grid(1)
    mask = cuda.match_any_sync(0xFFFFFFFF, keys[i])
    _, same = cuda.match_all_sync(0xFFFFFFFF, keys[i])
    out[i] = cuda.popc(mask) + (100 if same else 0)


def morton_code(x, y, out):
    i = cuda.grid(1)
    if i < x.size:
        code = uint32(0)
        for bit in range(16):
            code |= ((x[i] >> uint32(bit)) & uint32(1)) << uint32(2 * bit)
            code |= ((y[i] >> uint32(bit)) & uint32(1)) << uint32(2 * bit + 1)
        out[i] = code


def bit_counts(x, out):
    i = cuda.grid(1)
    if i < x.size:
        word = x[i]
        out[i, 0] = cuda.popc(word)
        out[i, 1] = cuda.clz(word)
        out[i, 2] = cuda.ffs(word)
        out[i, 3] = cuda.brev(word)


def atomic_medley(x, ints, longs, floats):
    value = x[cuda.grid(1)]
    cuda.atomic.add(ints, 0, value)
    cuda.atomic.sub(ints, 1, value)
    cuda.atomic.and_(ints, 2, value)
    cuda.atomic.or_(ints, 3, value)
    cuda.atomic.xor(ints, 4, value)
    cuda.atomic.max(ints, 5, value)
    cuda.atomic.min(ints, 6, value)
    cuda.atomic.inc(ints, 7, uint32(9))
    cuda.atomic.max(longs, 0, uint64(value) * uint64(value))
    cuda.atomic.min(longs, 1, uint64(value) * uint64(value))
    cuda.atomic.add(floats, 0, float(value))
    cuda.atomic.max(floats, 1, float(value))
    cuda.atomic.min(floats, 2, float(value))


def collatz(out):
    i = cuda.grid(1)
    if i < out.size:
        n = int64(i + 1)
        steps = 0
        while n != 1:
            n = 3 * n + 1 if n & 1 else n >> 1
            steps += 1
        out[i] = steps


def sieve(flags):
    """Strike out the multiples of each thread's candidate."""
    candidate = cuda.grid(1) + 2
    multiple = candidate * candidate
    while multiple < flags.size:
        flags[multiple] = uint8(0)
        multiple += candidate


def modular_power(base, exponent, modulus, out):
    i = cuda.grid(1)
    if i < base.size:
        result = uint64(1)
        factor = base[i] % modulus
        power = exponent[i]
        while power > uint64(0):
            if power & uint64(1):
                result = result * factor % modulus
            factor = factor * factor % modulus
            power >>= uint64(1)
        out[i] = result


def sobel(image, out):
    x, y = cuda.grid(2)
    height, width = image.shape
    if 0 < x < width - 1 and 0 < y < height - 1:
        gx = int32(0)
        gy = int32(0)
        for k in range(-1, 2):
            weight = 2 - abs(k)
            gx += weight * (int32(image[y + k, x + 1]) - int32(image[y + k, x - 1]))
            gy += weight * (int32(image[y + 1, x + k]) - int32(image[y - 1, x + k]))
        out[y, x] = min(abs(gx) + abs(gy), 255)


def connected_components(sources, targets, label, changed):
    """One round of hooking: both ends of an edge take the smaller label."""
    i = cuda.grid(1)
    if i < sources.size:
        a = label[sources[i]]
        b = label[targets[i]]
        if a != b:
            low = min(a, b)
            cuda.atomic.min(label, sources[i], low)
            cuda.atomic.min(label, targets[i], low)
            changed[0] = 1


def count_words(text, out):
    i = cuda.grid(1)
    if i < text.size:
        here = text[i] != 32
        before = i > 0 and text[i - 1] != 32
        if here and not before:
            cuda.atomic.add(out, 0, 1)
        if (text[i] & 0xC0) != 0x80:
            cuda.atomic.add(out, 1, 1)


def checked_reciprocal(x, out):
    i = cuda.grid(1)
    if i < x.size:
        if x[i] == 0:
            raise ZeroDivisionError
        out[i] = 1000 // x[i]


def print_values(x):
    i = cuda.grid(1)
    if i < x.size:
        print("lane", i, "holds", x[i])
