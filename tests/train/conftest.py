"""Runs of one architecture share its export, which takes seconds: weights are published into it in any case."""

from collections.abc import Callable

import pytest

import models.evaluator
from models.network import PolicyValueNetwork

_graphs: dict[object, bytes] = {}


@pytest.fixture(autouse=True)
def _one_export_for_each_architecture(monkeypatch: pytest.MonkeyPatch) -> None:
    export: Callable[[PolicyValueNetwork], bytes] = models.evaluator.export_graph

    def export_once(network: PolicyValueNetwork) -> bytes:
        key = type(network), network.cfg, network.spec.rules_hash
        if key not in _graphs:
            _graphs[key] = export(network)
        return _graphs[key]

    monkeypatch.setattr("train.loop.export_graph", export_once)
