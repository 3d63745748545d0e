"""The games that an engine offers, by the names that GUIs give them.

A name is a built-in game's, with its options behind plus signs (`asylum+friendly_fire`); case, `_`, `-` and spaces do
not matter, so that `kingofthehill` is `king_of_the_hill`.
"""

from __future__ import annotations

import re
from difflib import get_close_matches

from envs import InvalidVariant, Variant, list_variants, load_variant
from train.players import describe

CHESS = "chess"
SHOWN = 60
OWN_RULES = {"grand": "free_grand", "courier": "old_courier"}
"""Games that GUIs know by these names with other rules, and what they are told instead."""
NO_CASTLING, ITS_SPELLING = "no_castling", "nocastle"
_IGNORED = re.compile(r"[_\s-]+")


def name_for_guis(name: str) -> str:
    """Return a name of `Games`, or another one where a GUI would expect other rules of it."""
    word, plus, options = name.partition("+")
    return f"{OWN_RULES.get(word, word)}{plus}{options}"


class Games:
    """What may be played.

    Attributes:
        names: In the order of the list of built-in games; a game of the user's own comes first.
        spellings: What a GUI is offered: the names, and those of several words as one word, as GUIs write them.
        first: The game that is set up before another is chosen.
    """

    def __init__(self, given: Variant | None, *, only: bool) -> None:
        """Make it.

        Args:
            given: The game asked for, or the one that the player knows; None for chess.
            only: Whether there is no other.

        Raises:
            ValueError: `only` without a game.
        """
        if only and given is None:
            raise ValueError("only: expected a game")
        self.first = given or load_variant(CHESS)
        own = describe(self.first)
        self.names = [own] if only else [*([] if own in list_variants() else [own]), *list_variants()]
        self.spellings = [spelling for name in self.names for spelling in _spellings(name)]
        self._by_key = {_key(name): name for name in self.names}
        self._loaded: dict[tuple[str, ...], Variant] = {}

    def find(self, text: str) -> Variant:
        """Return the game of a name.

        Raises:
            InvalidVariant: There is no such game or option.
        """
        word, *options = text.split("+")
        key = OTHER_NAMES.get(_key(word), _key(word))
        if _key("+".join([key, *options])) == _key(describe(self.first)):
            return self.first
        name = self._by_key.get(key)
        if name is None:
            near = get_close_matches(key, self._by_key, n=1)
            hint = f"did you mean '{self._by_key[near[0]]}'?" if near else f"there are {len(self.names)}"
            raise InvalidVariant(f"unknown game '{text[:SHOWN]}', {hint}")
        plain = self._load(name)
        known = {_key(option): option for option in plain.options}
        return self._load(name, *(known.get(_key(option), option) for option in options))

    def _load(self, *words: str) -> Variant:
        """Return a game with options, the same object every time."""
        if words not in self._loaded:
            self._loaded[words] = load_variant(words[0], dict.fromkeys(words[1:], True))
        return self._loaded[words]


def _key(name: str) -> str:
    return _IGNORED.sub("", name.lower())


def _spellings(name: str) -> list[str]:
    """Return how GUIs write the name of a game, the first as they are told it."""
    told = name_for_guis(name)
    one_word = told.replace("_", "") if told == name and "+" not in name else told
    return list(dict.fromkeys([told, one_word, *([ITS_SPELLING] if name == NO_CASTLING else [])]))


OTHER_NAMES = {
    "normal": CHESS,
    "standard": CHESS,
    ITS_SPELLING: _key(NO_CASTLING),
    **{_key(told): name for name, told in OWN_RULES.items()},
}
"""Keys of other names of games, with their keys."""
