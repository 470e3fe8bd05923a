"""Modifier sets that several rows use. Each is the manual's set, named after its nouns."""

from __future__ import annotations

RND = "rn rz rm rp"
"""Rounding of f32 and f64 arithmetic."""

CMP_INT = "eq ne lt le gt ge lo ls hi hs"
CMP_FLOAT = "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"
BOOL = "and or xor"

SCOPE = "cta gpu sys cluster@7.8,sm_90"
"""Scopes of the memory consistency model."""

VEC = "v2 v4"
INT16_64 = "u16 u32 u64 s16 s32 s64"
BITS16_64 = "b16 b32 b64"
HINT = "L2::cache_hint@7.4,sm_80"
"""A cache-policy operand follows."""
