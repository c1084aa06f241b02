"""Hostile requests: bodies, values, jobs and programs that somebody made on purpose."""

from __future__ import annotations

import msgspec
import numpy as np
from http_raw import DOUBLE, MB, Response, changed, program, sha
from mplang_http.wire.requests import Public
from mplang_http.wire.values import frame_head, join_frame, pack

import mplang_core as mp
from mplang_core.ir.compressed_text import pack as pack_code

GROWTH = 192 * MB  # bytes; far less than the size of each attack
DEEP = 10_000
CONNECTIONS = 24
LIMITS = {
    "items": 200_000,
    "program": 8 * MB,
    "programs": 16 * MB,
    "value": 32 * MB,
    "bodies": 48 * MB,
    "values": 50,
    "held": 40 * MB,
    "sessions": 20,
    "jobs": 100,
    "connections": CONNECTIONS,
}


def routes(session: str) -> list[tuple[str, str]]:
    """Return all routes whose requests have a body."""
    return [
        ("PUT", f"/v1/sessions/{session}/programs/{sha(b'')}"),
        ("PUT", "/v1/sessions/another"),
        ("POST", f"/v1/sessions/{session}/release"),
        ("POST", f"/v1/sessions/{session}/jobs?run={session}-1"),
        ("PUT", f"/v1/sessions/{session}/values/x"),
    ]


def refused(answer: Response) -> bool:
    told = set(answer.json["error"])
    return 400 <= answer.status < 500 and {"code", "text"} <= told <= {"code", "text", "explain"}


def framed(head: bytes, body: bytes = b"") -> bytes:
    return frame_head(head) + body


def value(x) -> bytes:
    return join_frame(*pack(x))


def job(session: str, **fields) -> bytes:
    request = {"run": f"{session}-1", "program": sha(DOUBLE), "generation": 0}
    request |= {"inputs": [Public(value(np.int64(4)))], "parties": [0]}
    return msgspec.msgpack.encode(request | fields)


STABLEHLO = """module @main {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    BODY
  }
}
"""
CALLBACK = (
    "%0 = stablehlo.custom_call @xla_python_cpu_callback(%arg0) "
    ": (tensor<f32>) -> tensor<f32>\n    return %0 : tensor<f32>"
)


def stablehlo(body: str) -> bytes:
    return pack_code(STABLEHLO.replace("BODY", body))


def jax_program(code: bytes) -> bytes:
    """Return a program whose JAX code is replaced by other code."""
    harmless, kind = stablehlo("return %arg0 : tensor<f32>"), mp.TensorType("f32")
    attrs = {"code": harmless, "x64": False, "jax": "0.8.0", "stablehlo": "1.9.0"}
    pfunc = mp.PFunction("jax.run", (kind,), (kind,), attrs)
    data = program(lambda x: mp.peval(pfunc, [x])[0], np.float32(0))

    def change(envelope):
        envelope[6][envelope[6].index(harmless)] = code

    return changed(data, change)
