"""Search policies: the knobs of the built-in ones, and the seam for policies written in plain NumPy.

A policy decides which move a simulation follows, which move is played, and what the policy head is taught. The built-in
ones, `gumbel` and `puct`, are compiled (`search_kernels.py`); a user's own is called from Python at every node that a
simulation passes, and shares the tree, the rules, the batches, the cache and the training loop with them.

Dims: M legal moves of a node. Everything belongs to the player to move at the node.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from train.config_sections import SearchConfig

GUMBEL, PUCT = "gumbel", "puct"
BUILT_IN = (GUMBEL, PUCT)
LARGEST_KNOB = 1e9
"""More would overflow where knobs are multiplied in single precision."""


@dataclass(frozen=True)
class SearchSettings:
    """The knobs of the search.

    Attributes:
        policy: "gumbel", "puct", or the name of a registered policy.
        max_considered_actions: Gumbel: root actions that sequential halving starts from (m in the paper).
        c_visit: Gumbel: visits added to the most visited edge's in the weight of completed Q-values.
        c_scale: Gumbel: scale of that weight; Q-values are mapped to [0, 1].
        c_puct: PUCT: weight of the priors against the values, which lie in [-1, 1].
        c_puct_base: PUCT: visits over which that weight grows.
        fpu_reduction: PUCT: how much worse than its node's an unvisited move's value is taken to be, when all others
            have been visited (first-play urgency).
        noise_share: PUCT: share of the noise in the root's priors.
        noise_total: PUCT: sum of the concentrations of the Dirichlet noise, spread evenly over the legal moves.
        cache_positions: Evaluations remembered at most; 0 remembers none.
    """

    policy: str = GUMBEL
    max_considered_actions: int = 16
    c_visit: float = 50.0
    c_scale: float = 1.0
    c_puct: float = 1.25
    c_puct_base: float = 19652.0
    fpu_reduction: float = 0.2
    noise_share: float = 0.25
    noise_total: float = 10.0
    cache_positions: int = 0

    def __post_init__(self) -> None:
        """Refuse what makes no search.

        Raises:
            ValueError: A knob is out of range.
        """
        least = {"max_considered_actions": 1, "c_visit": 0, "c_puct": 0, "fpu_reduction": 0, "cache_positions": 0}
        for name, minimum in least.items():
            if not minimum <= getattr(self, name) <= LARGEST_KNOB:
                raise ValueError(f"{name}: expected {minimum} to {LARGEST_KNOB:g}, got {getattr(self, name)}")
        for name in ("c_scale", "c_puct_base", "noise_total"):
            if not 0 < getattr(self, name) <= LARGEST_KNOB:
                raise ValueError(f"{name}: expected above 0 to {LARGEST_KNOB:g}, got {getattr(self, name)}")
        if not 0 <= self.noise_share <= 1:
            raise ValueError(f"noise_share: expected 0 to 1, got {self.noise_share}")

    @classmethod
    def of(cls, cfg: SearchConfig) -> Self:
        """Read the knobs off the section of a config, whose keys have the same names."""
        return cls(**{knob.name: getattr(cfg, knob.name) for knob in fields(cls)})


def halving_visits(num_considered: int, num_simulations: int) -> list[int]:
    """List, for each simulation, how many visits the root edge that it takes must have had so far.

    Sequential halving: `num_considered` edges are visited equally, then the better half of them, down to two.
    """
    if num_considered <= 1:
        return list(range(num_simulations))
    phases = math.ceil(math.log2(num_considered))
    visits = [0] * num_considered
    wanted: list[int] = []
    while len(wanted) < num_simulations:
        for _ in range(max(1, num_simulations // (phases * num_considered))):
            wanted += visits[:num_considered]
            visits[:num_considered] = [count + 1 for count in visits[:num_considered]]
        num_considered = max(2, num_considered // 2)
    return wanted[:num_simulations]


@dataclass(frozen=True, eq=False)
class Node:
    """What a policy sees of a node; the arrays are copies, in the order of the legal moves.

    Attributes:
        is_root: Whether the search begins here.
        legal_actions: int32 [M].
        prior_logits: float32 [M], logarithms of `prior`.
        prior: float32 [M], the network's policy, without noise.
        visit_counts: int32 [M].
        qvalues: float32 [M], mean values in [-1, 1], 0 where unvisited.
        raw_value: What the network said of the node.
        noise: float32 [M], what `root_noise` drew; 0 but at the root, or where the search is without noise.
        simulation: Simulations done so far in this search.
        budget: Simulations that it has.
    """

    is_root: bool
    legal_actions: npt.NDArray[np.int32]
    prior_logits: npt.NDArray[np.float32]
    prior: npt.NDArray[np.float32]
    visit_counts: npt.NDArray[np.int32]
    qvalues: npt.NDArray[np.float32]
    raw_value: float
    noise: npt.NDArray[np.float32]
    simulation: int
    budget: int


class SearchPolicy(Protocol):
    """A policy in plain NumPy; one object serves all searches of a process, so it keeps nothing of any."""

    def root_noise(self, num_moves: int, rng: np.random.Generator) -> npt.NDArray[np.float32]:
        """Draw the root's noise, float32 [M]; called once a search that has noise, before the root is evaluated."""
        ...

    def select(self, node: Node) -> int:
        """Return the number of the move, 0 to M - 1, that a simulation follows from a node."""
        ...

    def conclude(self, root: Node) -> tuple[int, npt.NDArray[np.float32]]:
        """Return the number of the move to play, and the policy target [M], at least 0 with sum 1."""
        ...


PolicyMaker = Callable[[SearchSettings], SearchPolicy]
SEARCH_POLICIES: dict[str, PolicyMaker] = {}
"""Registered policies by name; the built-in ones are not among them."""
_Maker = TypeVar("_Maker", bound=PolicyMaker)


def register_search_policy(name: str) -> Callable[[_Maker], _Maker]:
    """Register a policy under a name that `search.policy` may give; decorates a class or function of the settings.

    Raises:
        ValueError: The name is taken.
    """

    def register(maker: _Maker) -> _Maker:
        if name in policy_names():
            raise ValueError(f"search policy '{name}' exists already")
        SEARCH_POLICIES[name] = maker
        return maker

    return register


def policy_names() -> list[str]:
    """Return the names of all search policies."""
    return [*BUILT_IN, *SEARCH_POLICIES]


def own_policy(settings: SearchSettings) -> SearchPolicy | None:
    """Make the policy that settings name; None for the built-in ones.

    Raises:
        ValueError: Nothing has that name.
    """
    if settings.policy in BUILT_IN:
        return None
    if settings.policy not in SEARCH_POLICIES:
        near = get_close_matches(settings.policy, policy_names(), n=1)
        hint = f", did you mean '{near[0]}'?" if near else ""
        raise ValueError(f"search policy '{settings.policy}': expected one of {', '.join(policy_names())}{hint}")
    return SEARCH_POLICIES[settings.policy](settings)


def checked_move(move: object, num_moves: int, name: str) -> int:
    """Return the number of a move that a policy has chosen.

    Raises:
        ValueError: It is no integer from 0 to M - 1.
    """
    if not isinstance(move, int | np.integer) or isinstance(move, bool) or not 0 <= move < num_moves:
        raise ValueError(f"search policy '{name}': expected the number of a move, 0 to {num_moves - 1}, got {move!r}")
    return int(move)


def checked_noise(noise: npt.ArrayLike, num_moves: int, name: str) -> npt.NDArray[np.float32]:
    """Return the noise that a policy has drawn as float32 [M].

    Raises:
        ValueError: It has another shape, or is not finite.
    """
    drawn = np.asarray(noise, np.float32)
    if drawn.shape != (num_moves,) or not np.isfinite(drawn).all():
        raise ValueError(
            f"search policy '{name}': expected {num_moves} finite numbers as root noise, got {list(drawn.shape)}"
        )
    return drawn


def checked_policy(policy: npt.ArrayLike, num_moves: int, name: str) -> npt.NDArray[np.float32]:
    """Return a policy target as float32 [M].

    Raises:
        ValueError: It has another shape, or is no distribution.
    """
    target = np.asarray(policy, np.float32)
    if target.shape != (num_moves,) or not (target >= 0).all() or not abs(float(target.sum()) - 1) < 1e-3:
        raise ValueError(
            f"search policy '{name}': expected a policy target of {num_moves} probabilities with sum 1, "
            f"got {list(target.shape)} with sum {float(target.sum()):g}"
        )
    return target
