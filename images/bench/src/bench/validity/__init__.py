"""Judges whether a measurement is valid. Every bound is a constant here, with its reason or source."""

from bench.validity.inputs import ValidityInputs
from bench.validity.judgement import judge_tenant, judge_tenants, judge_validity

__all__ = ["ValidityInputs", "judge_tenant", "judge_tenants", "judge_validity"]
