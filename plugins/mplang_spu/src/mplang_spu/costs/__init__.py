"""Costs of SPU's programs before they run: messages, bytes and seconds, by the user's lines.

Each op of libspu's code is run once on made-up numbers, by members in one process whose channels
count; see :mod:`mplang_spu.costs.op_counter`. That runs in a process of its own, see
:mod:`mplang_spu.costs.apart`, and what was counted is kept.
"""
