"""Rules out the problem's own workload by ``constraints()``.

class: skips work on large inputs
defence: a config that rules out a main workload is refused
verdicts: contract
behind the gate: contract
"""


def constraints(config, workload, device):
    return workload.name != "main"
