"""Validation of whole folders of environments that others wrote: what is broken, and how to see it again."""

from __future__ import annotations

from synthgym.audit.engine import audit
from synthgym.audit.page import write_page
from synthgym.audit.places import count_sources
from synthgym.audit.row_file import default_out, read_rows
from synthgym.audit.rows import Row, Status
from synthgym.audit.settings import AuditSettings
from synthgym.audit.summary import Summary, Tally

__all__ = [
    "AuditSettings",
    "Row",
    "Status",
    "Summary",
    "Tally",
    "audit",
    "count_sources",
    "default_out",
    "read_rows",
    "write_page",
]
