"""Programs that nobody may run are rejected with their code, and do no harm."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hostile_requests import CALLBACK, DEEP, STABLEHLO, jax_program, stablehlo
from http_raw import DOUBLE, MB, RawWorker, changed, open_at_all, program, sha
from mplang_testing import dialect

import mplang_core as mp
from mplang_core.ir.compressed_text import pack as pack_code
from mplang_core.ir.wire import to_bytes

pytestmark = pytest.mark.usefixtures("unharmed")


# -- forged requests


def test_a_mask_that_is_another(worker, session):
    """A program for parties that are not in the session."""
    for mask in (b"\x02", b"\x03", b"\xff" * 100):
        data = changed(DOUBLE, lambda p, mask=mask: p.__setitem__(3, mask))
        found = worker.put_program(data, session)
        if found.status == 200:
            found = worker.submit(session, data, np.int64(4))
        assert found.error in ((422, "forged"), (422, "VerifyError")), found
    for mask in (b"", b"\x01\x00", b"\1" * 9000):
        data = changed(DOUBLE, lambda p, mask=mask: p.__setitem__(3, mask))
        assert worker.put_program(data).error[0] == 422


def test_types_that_the_ops_do_not_give(worker):
    def types(envelope):
        envelope[4][0] = "i64[2]@{0}"

    def masks(envelope):
        envelope[4][0] = "i64[]@{0, 1}"

    def before(envelope):
        envelope[5][1][0][1] = [1, 1]

    def place(envelope):
        envelope[5][1][0][1] = [-1, 0]

    for change in (types, masks, before, place):
        found = worker.put_program(changed(DOUBLE, change))
        assert found.error[0] == 422, found
        assert found.error[1] in ("VerifyError", "WireError")


def test_a_value_that_is_used_before_its_definition(worker):
    chain = program(lambda x: mp.invoke(dialect.add, mp.invoke(dialect.add, x, x), x), np.int64(0))

    def swapped(envelope):
        envelope[5][1].reverse()

    found = worker.put_program(changed(chain, swapped))
    assert found.error[0] == 422, found


# -- programs


def with_op(opcode: str) -> bytes:
    """Return a program whose op of the kit is replaced by another."""

    def change(envelope):
        envelope[5][1][0][4][0][1][1][0][0] = opcode

    return changed(DOUBLE, change)


def test_an_op_that_nobody_knows(worker):
    found = worker.put_program(with_op("quantum.leap"))
    assert found.error == (403, "AdmissionError")  # quantum is not among the dialects here
    found = worker.put_program(with_op("kit.leap"))
    assert found.error == (422, "VerifyError")
    assert "unknown op 'kit.leap'" in found.text
    assert "install" in found.text


@pytest.mark.parametrize("opcode", ["simp.send", "simp.recv", "simp.nothing"])
def test_there_are_no_ops_that_send_by_themselves(worker, opcode):
    """What a party sends is said by an op that all parties have, so that it is in the table."""
    found = worker.put_program(with_op(opcode))
    assert found.error == (422, "VerifyError")
    assert f"unknown op '{opcode}'" in found.text


def test_an_op_that_is_not_allowed_here(worker):
    found = worker.put_program(with_op("ibis.run"))
    assert found.error == (403, "AdmissionError")
    assert found.json["error"]["explain"] == "A004"
    assert "ibis.run" in found.text
    assert "runs ops of kit, jax, spu only" in found.text


def test_a_place_in_the_source_that_is_a_book(worker, session):
    book = "x" * (2 * MB)

    def place(envelope):
        envelope[5][1][0][4][0][1][1][0][5] = [book, 1]

    data = changed(DOUBLE, place)
    assert worker.put_program(data, session).status == 200
    found = worker.submit(session, data, np.int64(1))
    assert found.json["state"] == "done"
    assert len(found.data) < 10_000
    found = worker.submit(session, data, None)
    assert found.json["state"] == "failed"
    assert len(found.data) < 10_000


def test_a_tensor_that_no_machine_holds(worker):
    def huge(envelope):
        envelope[4][:] = [kind.replace("i64[]", "i64[1099511627776]") for kind in envelope[4]]

    found = worker.put_program(changed(DOUBLE, huge))
    assert found.error == (403, "AdmissionError")
    assert "8796093022208" in found.text


def test_a_callback_to_python(worker):
    found = worker.run(jax_program(stablehlo(CALLBACK)), np.float32(1)).json
    assert found["state"] == "failed"
    assert found["error"]["kind"] == "AdmissionError"
    assert "XLA cannot run custom_call @xla_python_cpu_callback" in found["error"]["text"]


def test_code_that_is_none(worker):
    good = worker.run(jax_program(stablehlo("return %arg0 : tensor<f32>")), np.float32(1))
    assert good.json["state"] == "done"
    for text in ("", "module {", STABLEHLO.replace("BODY", "(" * DEEP), "\0" * 100):
        assert worker.put_program(jax_program(pack_code(text))).error == (422, "VerifyError")
    assert worker.put_program(jax_program(b"\x78\xdanothing")).error == (422, "VerifyError")


# -- SPU


def secure(protocol: str, code: bytes | None = None) -> bytes:
    """Return a program of two parties on SPU, perhaps with replaced code."""
    nodes = [{"name": "a"}, {"name": "b"}]
    devices = {f"P{i}": {"kind": "PPU", "members": [i]} for i in (0, 1)}
    spu = {"kind": "SPU", "members": [0, 1], "config": {"protocol": protocol}}
    cluster = mp.ClusterSpec.from_dict({"nodes": nodes, "devices": {**devices, "SP0": spu}})

    def fn():
        x = mp.put("P0", np.float32([1, 2, 3, 4]))
        return mp.reveal(mp.device("SP0")(lambda x: x)(x))

    data = to_bytes(mp.compile(fn, cluster_spec=cluster).trace(None).program)

    def change(envelope):
        codes = [i for i, found in enumerate(envelope[6]) if found[:1] == b"\x78"]
        assert len(codes) == 1
        envelope[6][codes[0]] = code

    return data if code is None else changed(data, change)


def together(worker, data: bytes) -> list[dict]:
    """Return the status of a run at both workers."""
    both = [RawWorker(worker.cluster, rank) for rank in (0, 1)]
    name = f"spu{sha(data)[:8]}"
    assert [each.status for each in open_at_all(both, name)] == [200, 200]
    assert [w.put_program(data, name).status for w in both] == [200, 200]
    with ThreadPoolExecutor(2) as pool:
        ran = [
            pool.submit(w.submit, name, data, run=f"{name}-1", wait=60, parties=[0, 1])
            for w in both
        ]
        found = [future.result().json for future in ran]
    for w in both:
        w.ask("DELETE", f"/v1/sessions/{name}")
    return found


def test_a_protocol_that_is_for_debugging(worker):
    found = together(worker, secure("SEMI2K"))
    assert [status["state"] for status in found] == ["failed", "failed"]
    assert any("SEMI2K trusts its first party" in status["error"]["text"] for status in found)


SPU_CODE = """module @main {
  func.func public @main(%arg0: tensor<4xf32>) -> tensor<4xf32> {
    BODY
  }
}
"""
RNG = """%c = stablehlo.constant dense<0> : tensor<2xui64>
    %o, %r = stablehlo.rng_bit_generator %c, algorithm = DEFAULT : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
    %0 = stablehlo.convert %r : (tensor<4xui32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>"""  # noqa: E501

PRINT = """%0 = stablehlo.custom_call @spu.dbg_print(%arg0) : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>"""


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (RNG, "rng_bit_generator"),
        (CALLBACK.replace("tensor<f32>", "tensor<4xf32>"), "xla_python_cpu_callback"),
        (PRINT, "spu.dbg_print"),
        (PRINT.replace(" @", "  @"), "spu.dbg_print"),
    ],
)
def test_code_that_spu_does_not_run(worker, body, text):
    """Rejected before libspu parses it, with the reason."""
    found = together(worker, secure("CHEETAH", pack_code(SPU_CODE.replace("BODY", body))))
    assert [status["state"] for status in found] == ["failed", "failed"]
    assert any(text in status["error"]["text"] for status in found), found
