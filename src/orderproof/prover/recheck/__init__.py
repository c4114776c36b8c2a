"""Replaying certificates, by code that shares nothing with the prover: `checker`, on `operators`, on `forms`."""

from orderproof.prover.recheck.checker import BOUNDED, Checked, recheck

__all__ = ["BOUNDED", "Checked", "recheck"]
