"""Judges whether a measurement is valid. Every bound is a constant here, with its reason or source."""

from bench.verdicts.checks import ValidityInputs
from bench.verdicts.judge import judge_tenant, judge_tenants, judge_validity

__all__ = ["ValidityInputs", "judge_tenant", "judge_tenants", "judge_validity"]
