"""Static analysis of programs: disclosure, costs, number ranges and drawings.

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

from mplang_analysis.admission import AdmissionCheck, Submission, admission_checks, admit
from mplang_analysis.analyses import Analysis, analyses, analysis_of, analyze
from mplang_analysis.at_source import staying_reads
from mplang_analysis.changes import ChangeRule, Changes, HasChanges, changes_of
from mplang_analysis.constants import Constant, ConstantsRule, HasConstants, constants
from mplang_analysis.cost_model import Costs, LinkCost, LoopRounds, OpCount, UnknownCost, costs
from mplang_analysis.data_question import AsksData, DataQuestion, QuestionRule, TableRead
from mplang_analysis.data_questions import data_questions
from mplang_analysis.data_reads import data_reads
from mplang_analysis.diagram import Mark
from mplang_analysis.disclosure_row import DisclosureRow
from mplang_analysis.disclosure_table import Disclosure, disclosure
from mplang_analysis.effort import MAX_EFFORT
from mplang_analysis.engine_rules import EngineRule, HasEngines, engine_refusals_of
from mplang_analysis.follow import Followed, follow
from mplang_analysis.graph_builder import graph
from mplang_analysis.graph_parts import Edge, Node, Region
from mplang_analysis.graph_view import GraphView
from mplang_analysis.guarding import (
    DELTA,
    EPSILON,
    WHOLE,
    Declassifies,
    Guarding,
    GuardRule,
    GuardsShares,
    Matches,
    Prepared,
    PrepareRule,
    Prepares,
    ShareGuard,
    ShareGuardRule,
    Spend,
    SplitRule,
    Splits,
)
from mplang_analysis.holdings import Holding
from mplang_analysis.interval import UNKNOWN, Interval, hull
from mplang_analysis.labels import (
    DATA_SET,
    MAX_NAME,
    MAX_PARTIES,
    PUBLIC,
    SEVERAL,
    Label,
    Piece,
    Source,
    own,
)
from mplang_analysis.line_texts import LineText, line_text, line_texts, texts_digest
from mplang_analysis.lineage import (
    Cell,
    Guard,
    HasLineage,
    Lineage,
    LineageRule,
    Origin,
    Selection,
    selected,
)
from mplang_analysis.lines_digest import lines_digest
from mplang_analysis.matrix import Matrix
from mplang_analysis.memory import Memory, labels_of, remember
from mplang_analysis.mismatch_table import differences
from mplang_analysis.network import Link, Network, network_named, network_of
from mplang_analysis.op_costs import CostRule, HasCosts, OpCosts, StepCost
from mplang_analysis.op_ranges import HasRanges, NumberStatus, OpRanges, RangeRule, StepRange
from mplang_analysis.ops_among import ops_among
from mplang_analysis.parameters import parameter_names
from mplang_analysis.paths import path_to
from mplang_analysis.picture import Picture
from mplang_analysis.plan import QueryPlan
from mplang_analysis.plan_chart import PlanStep
from mplang_analysis.precision_losses import HasPrecision, PrecisionRule, precision_losses
from mplang_analysis.protocol_costs import LineCost
from mplang_analysis.query_table import Queries, QueryRow, queries
from mplang_analysis.range_table import RangeRow, Ranges, ranges
from mplang_analysis.report import Paragraphs, Report, TextTable
from mplang_analysis.rows import Rows
from mplang_analysis.run_request import ProgramRequest, PublicInput, RunRequest
from mplang_analysis.sampled import (
    DATA,
    TRIALS,
    USUAL_DATA,
    Sampled,
    kinds_of,
    sample_of_data,
    sample_within,
)
from mplang_analysis.side_channels import (
    HasSideChannels,
    SideChannelRule,
    SideChannels,
    side_channels_of,
)
from mplang_analysis.source_names import PUT
from mplang_analysis.storage import StorageUse, Stored, UsesStorage, storage_of, stored_forms
from mplang_analysis.synthetic import USUAL, Draw, numbers_within
from mplang_analysis.words import Function, Role, What, When, Words, WorkerMode, any_type

__all__ = [
    "DATA",
    "DATA_SET",
    "DELTA",
    "EPSILON",
    "MAX_EFFORT",
    "MAX_NAME",
    "MAX_PARTIES",
    "PUBLIC",
    "PUT",
    "SEVERAL",
    "TRIALS",
    "UNKNOWN",
    "USUAL",
    "USUAL_DATA",
    "WHOLE",
    "AdmissionCheck",
    "Analysis",
    "AsksData",
    "Cell",
    "ChangeRule",
    "Changes",
    "Constant",
    "ConstantsRule",
    "CostRule",
    "Costs",
    "DataQuestion",
    "Declassifies",
    "Disclosure",
    "DisclosureRow",
    "Draw",
    "Edge",
    "EngineRule",
    "Followed",
    "Function",
    "GraphView",
    "Guard",
    "GuardRule",
    "Guarding",
    "GuardsShares",
    "HasChanges",
    "HasConstants",
    "HasCosts",
    "HasEngines",
    "HasLineage",
    "HasPrecision",
    "HasRanges",
    "HasSideChannels",
    "Holding",
    "Interval",
    "Label",
    "LineCost",
    "LineText",
    "Lineage",
    "LineageRule",
    "Link",
    "LinkCost",
    "LoopRounds",
    "Mark",
    "Matches",
    "Matrix",
    "Memory",
    "Network",
    "Node",
    "NumberStatus",
    "OpCosts",
    "OpCount",
    "OpRanges",
    "Origin",
    "Paragraphs",
    "Picture",
    "Piece",
    "PlanStep",
    "PrecisionRule",
    "PrepareRule",
    "Prepared",
    "Prepares",
    "ProgramRequest",
    "PublicInput",
    "Queries",
    "QueryPlan",
    "QueryRow",
    "QuestionRule",
    "RangeRow",
    "RangeRule",
    "Ranges",
    "Region",
    "Report",
    "Role",
    "Rows",
    "RunRequest",
    "Sampled",
    "Selection",
    "ShareGuard",
    "ShareGuardRule",
    "SideChannelRule",
    "SideChannels",
    "Source",
    "Spend",
    "SplitRule",
    "Splits",
    "StepCost",
    "StepRange",
    "StorageUse",
    "Stored",
    "Submission",
    "TableRead",
    "TextTable",
    "UnknownCost",
    "UsesStorage",
    "What",
    "When",
    "Words",
    "WorkerMode",
    "admission_checks",
    "admit",
    "analyses",
    "analysis_of",
    "analyze",
    "any_type",
    "changes_of",
    "constants",
    "costs",
    "data_questions",
    "data_reads",
    "differences",
    "disclosure",
    "engine_refusals_of",
    "follow",
    "graph",
    "hull",
    "kinds_of",
    "labels_of",
    "line_text",
    "line_texts",
    "lines_digest",
    "network_named",
    "network_of",
    "numbers_within",
    "ops_among",
    "own",
    "parameter_names",
    "path_to",
    "precision_losses",
    "queries",
    "ranges",
    "remember",
    "sample_of_data",
    "sample_within",
    "selected",
    "side_channels_of",
    "staying_reads",
    "storage_of",
    "stored_forms",
    "texts_digest",
]


def __dir__() -> list[str]:
    """Return the names that are for users."""
    return sorted(__all__)
