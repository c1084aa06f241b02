"""Hints that a clock may be wrong, for errors of certificates that are not valid now."""

from __future__ import annotations

import datetime
import ssl

NOT_VALID_NOW = frozenset({9, 10, 11, 12})
"""Errors of OpenSSL (X509_V_ERR_): a certificate or a list is not yet valid, or has expired."""

EXPIRED = "CERTIFICATE_EXPIRED"  # how the reason of OpenSSL ends, if the other side says so


def clock_hint(error: BaseException) -> str:
    """Return what to look at if a clock may be why a certificate is refused; else nothing.

    Args:
        error: why a connection failed.

    Example:
        >>> clock_hint(ConnectionResetError("reset"))
        ''
    """
    if isinstance(error, ssl.SSLCertVerificationError) and error.verify_code in NOT_VALID_NOW:
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
        return f"; or the clock of this machine is wrong, by which it is {now}"
    if isinstance(error, ssl.SSLError) and str(error.reason).endswith(EXPIRED):
        return "; the certificate of this coordinator has expired by the clock of the worker"
    return ""
