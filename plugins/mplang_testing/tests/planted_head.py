"""Imports of the test files with planted faults."""

from __future__ import annotations

HEAD = """
import itertools
import threading

import numpy as np
from hypothesis import strategies as st

import mplang_core as mp
from mplang_core import TensorType
from mplang_core.errors import CommError
from mplang_core.feop import meta_of
from mplang_core.simp import HostVar
from mplang_simulator import Simulator, ThreadCommunicator
from mplang_testing import *
from mplang_testing import dialect

X = np.arange(3)
"""
