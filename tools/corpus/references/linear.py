"""Matrix products, factorizations, solvers, sparse products."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tools.corpus.references import Args, Results


def matmul(args: Args) -> Results:
    product = args["a"].astype(float) @ args["b"].astype(float)
    return {"c": product.astype(args["c"].dtype)}


def matmul_transposed(args: Args) -> Results:
    kind = args["c"].dtype
    wide = float if kind.kind != "i" else np.int64
    return {"c": (args["a"].astype(wide) @ args["bt"].astype(wide).T).astype(kind)}


def matmul_bias_relu(args: Args) -> Results:
    return {"c": np.maximum(args["a"].astype(float) @ args["b"] + args["bias"], 0).astype(np.float32)}


def gram_lower(args: Args) -> Results:
    a = args["a"].astype(float)
    return {"c": np.tril(a @ a.T).astype(np.float32)}


def matvec(args: Args) -> Results:
    return {"y": (args["a"].astype(float) @ args["x"]).astype(np.float32)}


def transpose(args: Args) -> Results:
    return {"b": args["a"].T.copy()}


def lu(args: Args) -> Results:
    a = args["a"].copy()
    for k in range(len(a) - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= np.outer(a[k + 1 :, k], a[k, k + 1 :])
    return {"a": a}


def cholesky(args: Args) -> Results:
    a: NDArray[np.float64] = args["a"].astype(float)
    return {"a": np.linalg.cholesky(a).astype(np.float32)}


def lower_solve(args: Args) -> Results:
    lower: NDArray[np.float64] = np.tril(args["l"].astype(float))
    b: NDArray[np.float64] = args["b"].astype(float)
    return {"x": np.linalg.solve(lower, b).astype(np.float32)}


def solve(args: Args) -> Results:
    return {"x": np.linalg.solve(args["a"], args["b"])}


def orthonormal_rows(args: Args) -> Results:
    q, r = np.linalg.qr(args["q"].astype(float).T)
    return {"q": (q * np.sign(np.diag(r))).T.astype(np.float32)}


def power_iteration(args: Args) -> Results:
    v, norm = args["v"], 1.0
    for _ in range(20):
        v = args["a"] @ v
        norm = np.linalg.norm(v)
        v = v / norm
    return {"v": v, "value": np.array([norm])}


def tridiagonal(args: Args) -> Results:
    b: NDArray[np.float64] = args["b"]
    order = b.shape[1]
    matrix = 4 * np.eye(order) - np.eye(order, k=1) - np.eye(order, k=-1)
    return {"x": np.linalg.solve(matrix, b.T).T.copy()}


def spmv_csr(args: Args) -> Results:
    start, y = args["start"], np.zeros(len(args["y"]))
    for row in range(len(y)):
        part = slice(start[row], start[row + 1])
        y[row] = args["value"][part].astype(float) @ args["x"][args["column"][part]]
    return {"y": y.astype(args["y"].dtype)}


def spmv_coo(args: Args) -> Results:
    y = np.zeros(len(args["y"]))
    np.add.at(y, args["row"], args["value"].astype(float) * args["x"][args["column"]])
    return {"y": y.astype(np.float32)}


def spmm_ell(args: Args) -> Results:
    rows = args["b"].astype(float)[args["column"]]
    return {"c": (args["value"][:, :, None] * rows).sum(1).astype(np.float32)}


def symmetric_2x2(args: Args) -> Results:
    p, q, r = args["a"].astype(float).T
    mean, radius = (p + r) / 2, np.hypot((p - r) / 2, q)
    return {"e": np.stack([mean + radius, mean - radius], axis=1).astype(np.float32)}
