"""The generated pages of the docs are up to date."""

from pathlib import Path

import pytest

from train.reference import config_page, metrics_page

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.mark.parametrize(("name", "page"), [("config.md", config_page), ("metrics.md", metrics_page)])
def test_the_reference_pages_are_what_the_code_generates(name, page):
    assert (FOLDER / name).read_text(encoding="utf-8") == page(), "run: python scripts/reference.py"
