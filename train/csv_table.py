"""Rows as CSV, the same text for the same rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from typing import Any


def csv_text(headings: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return rows below their headings as CSV; None is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(headings)
    writer.writerows(rows)
    return text.getvalue()
