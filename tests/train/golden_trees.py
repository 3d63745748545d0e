"""Golden search trees, each with its whole configuration, and the signature of many searches.

python -m tests.train.golden_trees        # writes the trees anew and prints the signature

A change of behaviour shows as a difference of these files; look at it before you commit it.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from envs import VectorEnv
from tests.train.search_positions import MAIN_GAMES, TableEvaluator, random_positions, run_search
from train import search_kernels as kernels
from train.search import Search, SearchSettings

FOLDER = Path(__file__).parents[1] / "golden" / "search"
SHARPNESS = 2.0
DIGITS = 5
CASES: dict[str, dict[str, Any]] = {
    "gumbel_chess": {"variant": "chess", "plies": 12, "budget": 32, "noise_seed": 1, "settings": SearchSettings()},
    "gumbel_asylum": {
        "variant": "asylum", "plies": 20, "budget": 40, "noise_seed": None,
        "settings": SearchSettings(max_considered_actions=8, c_visit=20.0, c_scale=0.5),
    },
    "puct_chess": {
        "variant": "chess", "plies": 12, "budget": 32, "noise_seed": 1, "settings": SearchSettings(policy="puct"),
    },
    "puct_palace": {
        "variant": "palace_ninja_guards", "plies": 30, "budget": 40, "noise_seed": None,
        "settings": SearchSettings(policy="puct", c_puct=2.5, fpu_reduction=0.0),
    },
}  # fmt: skip


def grow(case: dict[str, Any]) -> dict[str, Any]:
    """Search one position and return its configuration and tree as plain data."""
    env = random_positions(case["variant"], 1, case["plies"], seed=7)
    search, (found,) = run_search(
        env, [0], budgets=[case["budget"]], evaluator=TableEvaluator(SHARPNESS), noise_seed=case["noise_seed"],
        settings=case["settings"],
    )  # fmt: skip
    return {
        **case,
        "settings": asdict(case["settings"]),
        "evaluator": f"TableEvaluator({SHARPNESS})",
        "fen": env.fen(0),
        "move": env.action_to_move(0, found.action),
        "value": round(found.value, DIGITS),
        "raw_value": round(found.raw_value, DIGITS),
        "tree": _below(search, env, kernels.ROOT),
    }


def _below(search: Search, env: VectorEnv, node: int) -> dict[str, Any]:
    """Return the visited moves of a node, their visits, values, priors and what lies below them."""
    tree, first = search._tree, int(search._tree[kernels.FIRST_EDGE][node])
    found = {}
    for edge in range(first, first + int(tree[kernels.NUM_EDGES][node])):
        visits = int(tree[kernels.EDGE_VISITS][edge])
        if not visits:
            continue
        action = int((tree[kernels.EDGE_MOVE][edge] >> np.uint64(16)) & np.uint64(0xFFFF))
        move = env.action_to_move(0, action)
        found[move] = {
            "visits": visits,
            "value": round(float(tree[kernels.EDGE_VALUE][edge]) / visits, DIGITS),
            "prior": round(float(tree[kernels.EDGE_PRIOR][edge]), DIGITS),
        }
        env.to_play[0] ^= 1
        child = int(tree[kernels.EDGE_CHILD][edge])
        below = {} if tree[kernels.OVER][child] else _below(search, env, child)
        env.to_play[0] ^= 1
        if below:
            found[move]["moves"] = below
    return found


def signature() -> str:
    """Hash the visits and moves of fixed searches: every main game, both policies, with noise and without."""
    digest = hashlib.sha256()
    for name in MAIN_GAMES:
        env = random_positions(name, 8, 40, seed=11)
        for policy in ("gumbel", "puct"):
            for noise_seed in (None, 3):
                _, results = run_search(
                    env, range(8), budgets=[16, 32, 64, 100] * 2, evaluator=TableEvaluator(SHARPNESS),
                    noise_seed=noise_seed, settings=SearchSettings(policy=policy),
                )  # fmt: skip
                for found in results:
                    digest.update(found.visit_counts.tobytes() + found.action.to_bytes(4, "little"))
    return digest.hexdigest()[:16]


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name, case in CASES.items():
        (FOLDER / f"{name}.json").write_text(json.dumps(grow(case), indent=1) + "\n", encoding="utf-8")
    print(signature())
