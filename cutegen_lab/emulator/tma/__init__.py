"""Bulk and tensor copies (PTX ISA 9.7.9.25): tensor maps, boxes, and when their bytes land."""
