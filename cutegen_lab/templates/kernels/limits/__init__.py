"""Limits of each kernel: plain functions of (config, sizes), which families call and modules carry."""
