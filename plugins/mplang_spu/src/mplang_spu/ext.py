"""Extension interface: names for packages that bring ops on shares, or use libspu's wheel."""

from mplang_spu.channel import MPLangChannel as MPLangChannel
from mplang_spu.kernels import run_function as run_function
from mplang_spu.libspu import libspu as libspu
