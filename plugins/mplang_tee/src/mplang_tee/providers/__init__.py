"""Providers of attestation."""
