"""The judge: owns seeds, inputs, expected outputs and the choice of workloads; runs no candidate host code."""

from cutegen_lab.judge.judge import StandardJudge
from cutegen_lab.judge.workload_choice import select_workloads

__all__ = ["StandardJudge", "select_workloads"]
