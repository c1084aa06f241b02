"""What providers of attestation promise: a quote is over one report, of one enclave, or refused."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from mplang_core.ext import ConfigError, StrictModel, plugin_manager
from mplang_testing.suite import Suite, complain

GROUP = "mplang.attestation"
REPORT = bytes(range(64))
CUTS = 64  # quotes that end too early


class AttestationSuite(Suite, kit=True):
    """A provider verifies quotes over what it is told, of the enclave that is expected.

    Attributes:
        provider: its name in the group ``mplang.attestation``.
        seconds: the time of the owner's clock.
        mutants: how many damaged quotes are tried.

    Example::

        class TestMine(AttestationSuite):
            provider = "mine"

            def quote(self, report):
                return sign(KEY, report)

            def expected(self):
                return {"key": "key.pem"}

            def others(self):
                return {"key": {"key": "another.pem"}}
    """

    provider: ClassVar[str]
    seconds: ClassVar[int] = 1_800_000_000
    mutants: ClassVar[int] = 500

    @abstractmethod
    def quote(self, report: bytes) -> bytes:
        """Return a quote over 64 bytes, of the enclave that is expected."""

    @abstractmethod
    def expected(self) -> Mapping[str, object]:
        """Return what an owner expects, as its configuration has it."""

    @abstractmethod
    def others(self) -> Mapping[str, Mapping[str, object]]:
        """Return expectations that differ in one field each, by what differs."""

    def signed(self, quote: bytes) -> range:
        """Return which bytes of a quote are signed, as they are; none by default."""
        return range(0)

    # --

    def test_it_is_described(self) -> None:
        """Check its name, its line on what it proves, and models of what is configured."""
        provider, wrong = self._installed, []
        if provider.name != self.provider:
            wrong.append("name is that of its entry point")
        if not provider.doc.strip() or "\n" in provider.doc:
            wrong.append("doc is one line: what it proves, and what it does not")
        models = [provider.expects, *([] if provider.makes is None else [provider.makes])]
        if not all(isinstance(each, type) and issubclass(each, StrictModel) for each in models):
            wrong.append("expects and makes are StrictModels, so that misspelt fields are refused")
        if wrong:
            complain(
                f"the provider {self.provider!r} is not described",
                expected="; ".join(wrong),
                got=provider,
                fix="correct the attributes of its class",
            )

    def test_what_is_misspelt_is_refused(self) -> None:
        """Check that a field of its configuration that it does not know is an error of ours."""
        try:
            self._installed.expects(**self.expected(), misspelt=1)
        except ConfigError:
            return
        complain(
            f"the provider {self.provider!r} takes a field that it does not know",
            expected="ConfigError",
            got="it is taken",
            fix="derive `expects` from mplang_tee.Expectations",
        )

    def test_a_quote_over_the_report_is_verified(self) -> None:
        """Check that it says in which state the enclave is, and what was measured."""
        evidence = self._verify(self.quote(REPORT))
        if not evidence.status or not all(
            isinstance(each, str) for each in (*evidence.registers, *evidence.registers.values())
        ):
            complain(
                f"the provider {self.provider!r} does not say what a quote proves",
                expected="AttestationEvidence with a status, and registers as texts",
                got=evidence,
                fix="correct verify",
            )

    def test_a_quote_over_another_report_is_refused(self) -> None:
        """Check that each bit of the report counts."""
        quote = self.quote(REPORT)
        for bit in range(8 * len(REPORT)):
            other = bytearray(REPORT)
            other[bit // 8] ^= 1 << bit % 8
            self._must_refuse(f"a quote over a report whose bit {bit} differs", quote, bytes(other))

    def test_each_bit_that_is_signed_counts(self) -> None:
        """Check that a quote with one bit of it changed is refused."""
        quote = self.quote(REPORT)
        for at in self.signed(quote):
            for bit in range(8):
                other = bytearray(quote)
                other[at] ^= 1 << bit
                self._must_refuse(f"a quote whose byte {at} differs in bit {bit}", bytes(other))

    def test_damaged_quotes_end_in_an_error_of_one_kind(self) -> None:
        """Check that what is cut or changed is refused, or says what it said before."""
        quote = self.quote(REPORT)
        before = self._verify(quote)
        for other in _damaged(quote, self.mutants):
            try:
                after = self._verify(other)
            except ValueError:
                continue
            except Exception as error:
                complain(
                    f"the provider {self.provider!r} ends a damaged quote in a wrong error",
                    expected="ValueError with what is wrong",
                    got=f"{type(error).__name__}: {error}",
                    fix="check sizes and fields before they are used",
                )
            if after != before:
                complain(
                    f"the provider {self.provider!r} takes a damaged quote",
                    expected=before,
                    got=after,
                    fix="verify the signature over all that evidence is read from",
                )

    def test_another_enclave_is_refused(self) -> None:
        """Check that each field of what is expected counts."""
        quote = self.quote(REPORT)
        for what, fields in self.others().items():
            self._must_refuse(f"a quote where {what} differs", quote, REPORT, fields)

    # --

    @property
    def _installed(self) -> Any:
        provider = plugin_manager.entry(GROUP, self.provider)
        if provider is None:
            complain(
                f"no provider {self.provider!r} is installed",
                expected=f"an entry point of {GROUP}",
                got=sorted(plugin_manager.names(GROUP)),
                fix="add it, and install the package again",
            )
        return provider

    def _verify(
        self, quote: bytes, report: bytes = REPORT, fields: Mapping[str, object] | None = None
    ) -> Any:
        expected = self._installed.expects(**(self.expected() if fields is None else fields))
        return self._installed.verify(expected, quote, report, self.seconds)

    def _must_refuse(
        self,
        what: str,
        quote: bytes,
        report: bytes = REPORT,
        fields: Mapping[str, object] | None = None,
    ) -> None:
        try:
            got: object = self._verify(quote, report, fields)
        except ValueError as error:
            if str(error).strip():
                return
            got = "an error without a text"
        complain(
            f"the provider {self.provider!r} takes {what}",
            expected="ValueError with what is wrong",
            got=got,
            fix="correct verify",
        )


def _damaged(quote: bytes, count: int) -> Iterator[bytes]:
    """Yield quotes that are cut, longer, or have other bytes."""
    draw = random.Random(7)
    yield from (quote[: len(quote) * i // CUTS] for i in range(CUTS))
    yield quote + b"\0"
    for _ in range(count):
        other = bytearray(quote)
        for _ in range(draw.choice((1, 1, 2, 8))):
            other[draw.randrange(len(other))] = draw.randrange(256)
        start = draw.randrange(len(other))
        if draw.random() < 0.2:
            del other[start : start + draw.randrange(16)]
        yield bytes(other)
