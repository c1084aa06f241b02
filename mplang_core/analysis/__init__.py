"""What a program discloses, costs, computes with and looks like, before anything runs.

Example:
    >>> import mplang_core as mp
    >>> from mplang_core import analysis
    >>> program = mp.parse('''
    ... program "mistake" on {0, 1} (%0: f32[3]@{0}) {
    ...   %1 = simp.shuffle_static(%0) {routing = [[1, 0]]} : f32[3]@{1} at "demo.py:7"
    ...   return
    ... }''')
    >>> for row in analysis.disclosure(program).rows:
    ...     print(row.what, row.sender, row.receiver, row.form, row.discloses, row.line)
    move 0 1 plain (0,) demo.py:7
"""

from mplang_core.analysis.costing import Costs, LinkCost, LoopRounds, OpCount, costs
from mplang_core.analysis.disclosing import Disclosure, DisclosureRow, disclosure
from mplang_core.analysis.drawing import graph
from mplang_core.analysis.ranging import RangeRow, Ranges, ranges
from mplang_core.analysis.shapes import Edge, Group, Node
from mplang_core.analysis.view import GraphView

__all__ = [
    "Costs",
    "Disclosure",
    "DisclosureRow",
    "Edge",
    "GraphView",
    "Group",
    "LinkCost",
    "LoopRounds",
    "Node",
    "OpCount",
    "RangeRow",
    "Ranges",
    "costs",
    "disclosure",
    "graph",
    "ranges",
]
