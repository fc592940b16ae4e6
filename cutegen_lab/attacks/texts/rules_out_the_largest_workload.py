"""Declares by its constraints that the problem's own workload is not its business.

class: skips work on large inputs
defence: a config that rules out a workload is no candidate for the problem
verdicts: contract
behind the gate: contract
"""


def constraints(config, workload, device):
    return workload.name != "main"
