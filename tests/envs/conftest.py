"""One test, both engines: the kernels' `Position` and the slow rules behind the same interface."""

import pytest

from envs import Position
from tests.envs.rules_position import AnyPosition, RulesPosition, SetUp


@pytest.fixture(params=[Position, RulesPosition], ids=["kernels", "rules"])
def set_up(request: pytest.FixtureRequest) -> SetUp:
    """Return a function that sets up a position of a game and pushes moves; options are keywords."""
    engine = request.param

    def build(variant: str, fen: str | None = None, *moves: str, **options: bool) -> AnyPosition:
        position: AnyPosition = engine(variant, fen=fen, options=options)
        for move in moves:
            position.push(move)
        return position

    return build
