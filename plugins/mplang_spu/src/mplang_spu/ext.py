"""Extension interface: names for packages that use other libraries of libspu's wheel."""

from mplang_spu.channel import MPLangChannel as MPLangChannel
from mplang_spu.libspu import libspu as libspu
