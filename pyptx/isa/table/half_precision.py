"""Manual: Half Precision Floating-Point Instructions (f16, bf16 and their pairs)."""

from __future__ import annotations

from pyptx.isa.choices import RND
from pyptx.isa.notation import form

MEANING: dict[str, str] = {}
"""The instructions share their names, and so their meanings, with those of single precision."""

_SEE = "half-precision-floating-point-instructions-"
_F16 = "f16 f16x2"
_BF16 = "bf16 bf16x2"
_53 = "4.2,sm_53"
_80 = "7.0,sm_80"
_86 = "7.2,sm_86"
_BF16_ADD = "7.8,sm_90"
_OOB = "8.1,sm_90"

# ptxas accepts no immediate for these types.
FORMS = (
    form("add{.rnd}{.ftz}{.sat}.type  d, a:reg, b:reg",
         rnd="rn", ftz="ftz", sat="sat", type=_F16, since=_53, see=_SEE + "add"),
    form("add{.rnd}.type              d, a:reg, b:reg", rnd="rn", type=_BF16, since=_BF16_ADD, see=_SEE + "add"),
    form("sub{.rnd}{.ftz}{.sat}.type  d, a:reg, b:reg",
         rnd="rn", ftz="ftz", sat="sat", type=_F16, since=_53, see=_SEE + "sub"),
    form("sub{.rnd}.type              d, a:reg, b:reg", rnd="rn", type=_BF16, since=_BF16_ADD, see=_SEE + "sub"),
    form("mul{.rnd}{.ftz}{.sat}.type  d, a:reg, b:reg",
         rnd="rn", ftz="ftz", sat="sat", type=_F16, since=_53, see=_SEE + "mul"),
    form("mul{.rnd}.type              d, a:reg, b:reg", rnd="rn", type=_BF16, since=_BF16_ADD, see=_SEE + "mul"),
    form("fma.rn{.ftz}{.sat}.type     d, a:reg, b:reg, c:reg",
         ftz="ftz", sat="sat", type=_F16, since=_53, see=_SEE + "fma"),
    form("fma.rn{.ftz}.relu.type      d, a:reg, b:reg, c:reg", ftz="ftz", type=_F16, since=_80, see=_SEE + "fma"),
    # The manual has .rn alone for bf16; ptxas accepts every rounding.
    form("fma.rnd{.relu}.type         d, a:reg, b:reg, c:reg",
         rnd=RND, relu="relu", type=_BF16, since=_80, see=_SEE + "fma"),
    form("fma.rn.oob{.relu}.type      d, a:reg, b:reg, c:reg", relu="relu", type=_F16, since=_OOB, see=_SEE + "fma"),
    form("fma.rnd.oob{.relu}.type     d, a:reg, b:reg, c:reg",
         rnd=RND, relu="relu", type=_BF16, since=_OOB, see=_SEE + "fma"),
    # The manual says PTX 6.0; ptxas accepts it since 5.1.
    form("neg{.ftz}.type              d, a:reg", ftz="ftz", type=_F16, since="5.1,sm_53", see=_SEE + "neg"),
    form("neg.type                    d, a:reg", type=_BF16, since=_80, see=_SEE + "neg"),
    form("abs{.ftz}.type              d, a:reg", ftz="ftz", type=_F16, since="6.5,sm_53", see=_SEE + "abs"),
    form("abs.type                    d, a:reg", type=_BF16, since=_80, see=_SEE + "abs"),
    form("min{.ftz}{.NaN}.type        d, a:reg, b:reg", ftz="ftz", NaN="NaN", type=_F16, since=_80, see=_SEE + "min"),
    form("min{.ftz}{.NaN}.xorsign.abs.type d, a:reg, b:reg",
         ftz="ftz", NaN="NaN", type=_F16, since=_86, see=_SEE + "min"),
    form("min{.NaN}.type              d, a:reg, b:reg", NaN="NaN", type=_BF16, since=_80, see=_SEE + "min"),
    form("min{.NaN}.xorsign.abs.type  d, a:reg, b:reg", NaN="NaN", type=_BF16, since=_86, see=_SEE + "min"),
    form("max{.ftz}{.NaN}.type        d, a:reg, b:reg", ftz="ftz", NaN="NaN", type=_F16, since=_80, see=_SEE + "max"),
    form("max{.ftz}{.NaN}.xorsign.abs.type d, a:reg, b:reg",
         ftz="ftz", NaN="NaN", type=_F16, since=_86, see=_SEE + "max"),
    form("max{.NaN}.type              d, a:reg, b:reg", NaN="NaN", type=_BF16, since=_80, see=_SEE + "max"),
    form("max{.NaN}.xorsign.abs.type  d, a:reg, b:reg", NaN="NaN", type=_BF16, since=_86, see=_SEE + "max"),
    form("tanh.approx.type            d, a:reg",
         type="f16 f16x2 bf16@7.8,sm_90 bf16x2@7.8,sm_90", since="7.0,sm_75", see=_SEE + "tanh"),
    form("ex2.approx.type             d, a:reg", type=_F16, since="7.0,sm_75", see=_SEE + "ex2"),
    form("ex2.approx.ftz.type         d, a:reg", type=_BF16, since="7.8,sm_90", see=_SEE + "ex2"),
)  # fmt: skip
