"""The report of runs: one HTML page that needs no network, and PNG files."""

from streamridge.report.page import write_report

__all__ = ["write_report"]
