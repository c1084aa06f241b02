"""Extension interface: names for packages that show what was analyzed, or act on it.

Commands, gates, storages and the conformance kit are such packages. What authors of ops and
reports need is in :mod:`mplang_analysis`.
"""

from mplang_analysis import svg as svg
from mplang_analysis.html_page import ALERT as ALERT, fragment as fragment, page as page
from mplang_analysis.html_text import isolated as isolated
from mplang_analysis.interval_analysis import Numbers as Numbers
from mplang_analysis.line_costs import LineTotal as LineTotal, costs_by_line as costs_by_line
from mplang_analysis.line_texts import (
    MAX_TEXT as MAX_TEXT,
    in_curly_quotes as in_curly_quotes,
    texts_by_line as texts_by_line,
)
from mplang_analysis.party_names import (
    LONGEST_NAME as LONGEST_NAME,
    in_quotes as in_quotes,
    is_plain as is_plain,
    quoted as quoted,
    quoted_line as quoted_line,
)
from mplang_analysis.phrases import Worded as Worded, in_seconds as in_seconds
from mplang_analysis.range_inputs import Given as Given, of_type as of_type
from mplang_analysis.readers import ReadInside as ReadInside
from mplang_analysis.report import Drawing as Drawing, Part as Part, sections as sections
from mplang_analysis.shortening import MAX_SHORTENED as MAX_SHORTENED, shortened as shortened
from mplang_analysis.shown_runs import (
    ShownHost as ShownHost,
    watched_by_a_person as watched_by_a_person,
)
from mplang_analysis.source_names import (
    is_source_name as is_source_name,
    kinds_of_names as kinds_of_names,
)
from mplang_analysis.storage import Action as Action, use_of as use_of
from mplang_analysis.text_cells import (
    cut_end as cut_end,
    pad as pad,
    width as width,
    wrap as wrap,
    wrap_most as wrap_most,
)
from mplang_analysis.turns import turn_of as turn_of
from mplang_analysis.type_size import payload as payload
from mplang_analysis.vouched import guarding_of as guarding_of, lineage_of as lineage_of
from mplang_analysis.words import (
    BETWEEN_CONDITIONS as BETWEEN_CONDITIONS,
    GROUP_OF_WORDS as GROUP_OF_WORDS,
    declared_times as declared_times,
    guard_families as guard_families,
    guard_functions as guard_functions,
    is_condition as is_condition,
    may_have_guards as may_have_guards,
    unloaded_words as unloaded_words,
    words_of as words_of,
)
