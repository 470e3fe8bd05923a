"""A running Python that makes the simulator Triton's driver: a kernel that is right, and one that a race
stops; then, as another GPU, one that it does not stop."""

import torch
import triton
import triton.language as tl

import pyptx.driver.triton
from tools.corpus.python_producers.triton_kernels.pointwise import vector_add


@triton.jit
def count(out):
    """Add to one number without an atomic operation."""
    tl.store(out, tl.load(out) + 1)


pyptx.driver.triton.activate("b200", stop=True)
x, y = torch.rand(5000), torch.rand(5000)
out = torch.empty_like(x)
vector_add[(5,)](x, y, out, 5000, BLOCK=1024)
torch.testing.assert_close(out, x + y, rtol=0, atol=0)
has_failed = False
try:
    count[(4,)](torch.zeros(1))
except RuntimeError as why:
    has_failed = "launch failed" in str(why)
assert has_failed
pyptx.driver.triton.activate("h100")
assert triton.runtime.driver.active.get_current_target().arch == 90
vector_add[(5,)](x, y, out.zero_(), 5000, BLOCK=1024)
torch.testing.assert_close(out, x + y, rtol=0, atol=0)
count[(4,)](torch.zeros(1))
