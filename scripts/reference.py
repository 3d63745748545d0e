"""Write the generated pages of docs/reference/.

python scripts/reference.py
"""

import sys
from pathlib import Path
from typing import Annotated

sys.path[0] = str(Path(__file__).resolve().parents[1])

import typer

from envs.games_reference import games_page
from envs.reference import actions_page, observation_page
from envs.schema_reference import schema_page
from scripts.command_line import new_app, with_exit_codes
from train.reference import config_page, metrics_page

PAGES = {
    "actions.md": actions_page,
    "config.md": config_page,
    "games.md": games_page,
    "metrics.md": metrics_page,
    "observation.md": observation_page,
    "schema.md": schema_page,
}
FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference"

app = new_app()


@app.command()
@with_exit_codes
def reference(
    out: Annotated[Path, typer.Option(help="folder to write into", show_default="docs/reference")] = FOLDER,
) -> None:
    """Write the reference pages from the code and the built-in games."""
    out.mkdir(parents=True, exist_ok=True)
    for name, page in PAGES.items():
        (out / name).write_text(page(), encoding="utf-8")
        print(out / name)


if __name__ == "__main__":
    app()
