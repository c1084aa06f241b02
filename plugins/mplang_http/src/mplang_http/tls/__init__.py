"""Identities: certificates, the authorities behind them, and credentials of sessions."""
