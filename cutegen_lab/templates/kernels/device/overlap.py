"""Programmatic dependent launch: a kernel starts while the one before it ends (PTX ISA 9.7.13.12, griddepcontrol)."""

import cutlass
import cutlass.cute as cute

OVERLAP = False  # does every kernel of this module start early? A pipeline's module decides


def overlapping():
    """Can a kernel start while the one before it ends? From sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90


def start_next_and_wait():
    """Lets the next kernel start, and waits until what the one before wrote can be read."""
    cute.arch.griddepcontrol_launch_dependents()
    cute.arch.griddepcontrol_wait()
