"""A Llama block in PyTorch whose heavy parts are kernels of these examples, forward and backward.

`python examples/models/llama_torch.py` trains it for a few steps beside the same block of PyTorch's operations in f32,
and prints both losses. It runs on an H100 or H200 if there is one, and on the simulator if not.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

from examples.models import kernels
from examples.models.kernels import Operation
from examples.models.parameters import EPSILON, Sizes, draw_batch, draw_parameters

torch: Any = import_module("torch")
functional: Any = import_module("torch.nn.functional")


def differentiate(operation: Operation) -> Callable[..., Any]:
    """Return an operation as a function that autograd differentiates."""

    class Function(torch.autograd.Function):
        @staticmethod
        def forward(context: Any, *inputs: Any) -> Any:
            """Run the kernels, and save what the gradient needs."""
            result, saved = operation.forward(*inputs)
            context.save_for_backward(*saved)
            return result

        @staticmethod
        def backward(context: Any, gradient: Any) -> tuple[Any, ...]:
            """Run the kernels of the gradient."""
            return operation.backward(*context.saved_tensors, gradient.contiguous())

    return Function.apply


normalize, rotate, attend, project = map(
    differentiate,
    (
        kernels.normalize, kernels.rotate, kernels.attend,
        kernels.make_projection(lambda matrix: matrix.T.contiguous()),
    ),
)  # fmt: skip


class Block(torch.nn.Module):
    """x + attention(norm(x)), then x + down(swiglu(gate(norm(x)), up(norm(x)))), for `x` (batch, length, hidden).

    It computes in bf16. The parameters may be f32, as an optimizer needs them: each use rounds them. The cosines and
    sines must be: convert parameters, not the whole module. For gradients, the number of tokens, batch * length, must
    be a multiple of 8.
    """

    def __init__(self, sizes: Sizes) -> None:
        torch.nn.Module.__init__(self)
        self.sizes = sizes
        for name, values in draw_parameters(sizes).items():
            self.register_parameter(name, torch.nn.Parameter(torch.from_numpy(values)))
        for name, table in zip(("cos", "sin"), kernels.make_tables(sizes.length, sizes.head), strict=True):
            self.register_buffer(name, torch.from_numpy(table), persistent=False)

    def forward(self, x: Any) -> Any:
        """Return the output of the block, by kernels."""
        batch, length, hidden = x.shape
        weights = {name: parameter.to(x.dtype) for name, parameter in self.named_parameters()}
        cos, sin = self.cos[:length], self.sin[:length]

        def split(rows: Any) -> Any:
            """Return rows of tokens as (heads of all sequences, length, head dimension)."""
            heads = rows.view(batch, length, self.sizes.heads, self.sizes.head).transpose(1, 2)
            return heads.reshape(batch * self.sizes.heads, length, self.sizes.head).contiguous()

        def join(heads: Any) -> Any:
            rows = heads.view(batch, self.sizes.heads, length, self.sizes.head).transpose(1, 2)
            return rows.reshape(batch * length, hidden).contiguous()

        x = x.contiguous().view(-1, hidden)
        y = normalize(x, weights["first_norm"])
        query, key, value = (split(project(y, weights[name])) for name in ("query", "key", "value"))
        heads = attend(rotate(query, cos, sin), rotate(key, cos, sin), value)
        x = x + project(join(heads), weights["out"])

        y = normalize(x, weights["second_norm"])
        inner = kernels.activate(project(y, weights["gate"]), project(y, weights["up"]))
        return (x + project(inner, weights["down"])).view(batch, length, hidden)


class PlainBlock(Block):
    """The same block of PyTorch's operations, in the type of its input."""

    def forward(self, x: Any) -> Any:
        """Return the output of the block, by PyTorch."""
        batch, length, hidden = x.shape
        weights = {name: parameter.to(x.dtype) for name, parameter in self.named_parameters()}

        def project(rows: Any, name: str) -> Any:
            return functional.linear(rows, weights[name])

        def split(rows: Any) -> Any:
            return rows.unflatten(-1, (self.sizes.heads, self.sizes.head)).transpose(1, 2)

        def rotate(heads: Any) -> Any:
            first, second = heads.chunk(2, dim=-1)
            cos, sin = (torch.cat([table[:length]] * 2, dim=-1) for table in (self.cos, self.sin))
            return (heads * cos + torch.cat([-second, first], dim=-1) * sin).to(x.dtype)

        y = functional.rms_norm(x, (hidden,), weights["first_norm"], EPSILON)
        query, key, value = (split(project(y, name)) for name in ("query", "key", "value"))
        heads = functional.scaled_dot_product_attention(rotate(query), rotate(key), value, is_causal=True)
        x = x + project(heads.transpose(1, 2).reshape(batch, length, hidden), "out")

        y = functional.rms_norm(x, (hidden,), weights["second_norm"], EPSILON)
        return x + project(functional.silu(project(y, "gate")) * project(y, "up"), "down")


def train(block: Any, call: Callable[[Any], Any], x: Any, target: Any, steps: int) -> list[float]:
    """Return the loss of each step; `call` is the block, maybe compiled."""
    optimizer = torch.optim.AdamW(block.parameters(), lr=1e-2)
    losses: list[float] = []
    for _ in range(steps):
        optimizer.zero_grad()
        loss = (call(x).float() - target).square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def find_device() -> str:
    """Return where the kernels run: a Hopper GPU if there is one, or the simulator in the CPU's memory."""
    is_hopper = torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0)
    return "cuda" if is_hopper else "cpu"


def train_both(steps: int, backend: str | None = None) -> list[tuple[float, float]]:
    """Return the losses of both blocks, trained from the same parameters; a backend compiles that of kernels."""
    device, sizes = find_device(), Sizes()
    block, plain = Block(sizes).to(device), PlainBlock(sizes).to(device)
    call = torch.compile(block, fullgraph=True, backend=backend) if backend else block
    x, target = (torch.from_numpy(values).to(device) for values in draw_batch(sizes))
    losses = train(block, call, x.bfloat16(), target, steps), train(plain, plain, x, target, steps)
    return [*zip(*losses, strict=True)]


def main() -> None:
    """Train both blocks, and print their losses."""
    print("step  kernels, bf16  PyTorch, f32")
    for step, (loss, expected) in enumerate(train_both(5)):
        print(f"{step:4}  {loss:13.5f}  {expected:12.5f}")


if __name__ == "__main__":
    main()
