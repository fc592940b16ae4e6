"""Faults planted in the product to check its tests: ``make mutants``.

Each file in ``faults/AREA/`` is one edit that a tired engineer might make, as a patch under a sentence that says what
is wrong afterwards. ``python -m tests.mutants`` applies one after another to a copy of the tree and runs the tests
there until one fails. A fault that no test notices is a hole in the tests.
"""
