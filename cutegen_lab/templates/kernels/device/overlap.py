"""Programmatic dependent launch: a kernel that starts while the one before it ends."""

import cutlass


def overlapping():
    """Can a kernel start while the one before it ends (PTX ISA 9.7.13.12, griddepcontrol)? From sm_90 on."""
    return cutlass.cutlass_dsl.BaseDSL._get_dsl().get_arch_enum() >= cutlass.Arch.sm_90
