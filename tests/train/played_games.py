"""Random games of gardner as self-play would record them, made up policies and values included."""

import numpy as np

import envs
from train.shards import GameRecord

VARIANT = envs.load_variant("gardner")
GAME = envs.engine_for(VARIANT)
MAX_PLIES = 120


def play_game(seed: int, *, opening_plies: int = 2, max_plies: int = MAX_PLIES) -> GameRecord:
    """Play at random; every third ply after the opening has a policy over some of its legal actions."""
    rng = np.random.default_rng(seed)
    env = envs.VectorEnv(VARIANT, 1, max_plies=max_plies)
    start_fen = env.fen(0)
    actions, states, values, policies = [], [], [], []
    while not (env.terminated[0] or env.truncated[0]):
        legal = np.flatnonzero(env.legal_action_mask[0])
        ply = len(actions)
        listed = legal[: 1 + ply % 5] if ply >= opening_plies and ply % 3 == 0 else legal[:0]
        policies.append((listed, rng.dirichlet(np.ones(len(listed))) if len(listed) else np.zeros(0)))
        states.append(env.states[0].copy())
        actions.append(rng.choice(legal))
        values.append(rng.uniform(-1, 1))
        env.step(np.array([actions[-1]]))
    return GameRecord(
        start_fen=start_fen,
        actions=np.array(actions, dtype=np.int32),
        states=np.array(states, dtype=np.uint64),
        policy_index=np.cumsum([0] + [len(listed) for listed, _ in policies]).astype(np.int64),
        policy_actions=np.concatenate([listed for listed, _ in policies]).astype(np.int32),
        policy_probs=np.concatenate([probs for _, probs in policies]).astype(np.float32),
        root_values=np.array(values, dtype=np.float32),
        white_score=float(env.white_score[0]),
        termination=int(env.terminations[0]),
        model_version=3,
        seed=2**63 + seed,
        opening_plies=opening_plies,
        start_kind="array",
    )


def games_of_every_end() -> list[GameRecord]:
    """Return games of every result, some of them cut by the ply cap."""
    records = [play_game(seed) for seed in range(24)] + [play_game(99, max_plies=15)]
    assert {record.white_score for record in records if record.termination} == {0.0, 0.5, 1.0}
    assert any(record.termination == 0 for record in records)
    return records
