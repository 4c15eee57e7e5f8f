"""Scanners: one package or module for each file format. They import `virtualzarr_refs`, never the reverse."""
