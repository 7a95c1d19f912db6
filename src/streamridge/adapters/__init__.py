"""Interfaces of other libraries, one file each; see docs/adapters.md.

A file that needs another library imports it when it is imported itself, and names the package to
install if it is missing.
"""
