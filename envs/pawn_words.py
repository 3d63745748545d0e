"""The moves of pawns in words."""

from __future__ import annotations

from envs.betza import Ray
from envs.game_words import capitalised, listed, own_royal, rank_names, spelled, square_names, with_article
from envs.move_words import directions, motion, own_capture_sentence, ray_groups
from envs.notation import SIDE_NAMES
from envs.paths import may_promote, must_promote
from envs.variant import BLACK, WHITE, Pawns, Variant

STRAIGHT_ON = ((0, 1),)


def pawn_sentences(variant: Variant) -> list[str]:
    """Return everything that a pawn may do."""
    pawns = variant.pawns
    assert pawns is not None
    sentences = [*_quiet(variant, pawns), *_captures(pawns)]
    if variant.piece_types[pawns.piece].captures_own:
        sentences.append(own_capture_sentence(own_royal(variant)))
    if pawns.first_steps > 1 and pawns.forward:
        sentences.append(_en_passant(pawns))
    return [*sentences, *_promotion(variant, pawns)]


# --- Moves --------------------------------------------------------------------------------------


def _quiet(variant: Variant, pawns: Pawns) -> list[str]:
    repeats = pawns.first_steps > 1 and bool(pawns.forward)
    inline = repeats and pawns.forward == STRAIGHT_ON
    sentences = []
    for group in ray_groups(Ray(step, 1, capture=False) for step in pawns.quiet):
        if group.is_leap:
            sentences.append(f"Without capturing: {motion(group)}.")
            continue
        text = f"One step {directions(group)} onto an empty square"
        if inline:
            which = "steps over" if group.steps == {*STRAIGHT_ON} else "steps forward over"
            text += f"; {_from(variant, pawns)} up to {spelled(pawns.first_steps)} {which} empty squares"
        sentences.append(f"{text}.")
    if repeats and not inline:
        leads = "a move of these" if pawns.forward == pawns.quiet else "a move of these that leads forward"
        sentences.append(
            f"{capitalised(_from(variant, pawns))} it may make {leads} up to {_times(pawns.first_steps)} in the same "
            "direction, each time onto an empty square."
        )
    if repeats and _run_may_promote(variant, pawns):
        where = "where it must promote" if pawns.must_promote else "on the first promotion rank that it lands on"
        sentences.append(f"Several steps in one move end {where}.")
    return sentences


def _times(count: int) -> str:
    return "twice" if count == 2 else f"{spelled(count)} times"


def _from(variant: Variant, pawns: Pawns) -> str:
    """Say where the first steps hold."""
    white, black = (rank_names(variant, ranks) for ranks in pawns.start_ranks)
    return "from any rank" if starts_everywhere(variant, pawns) else f"from rank {white} (White) or {black} (Black)"


def starts_everywhere(variant: Variant, pawns: Pawns) -> bool:
    """Return whether the first steps hold on every rank from which a pawn could make them."""
    ranks = {y for square, (_, y) in enumerate(variant.board.squares) if not must_promote(variant, WHITE, square)}
    return ranks - {variant.board.ranks - 1} <= {*pawns.start_ranks[WHITE]}


def _run_may_promote(variant: Variant, pawns: Pawns) -> bool:
    """Return whether the first steps can meet a promotion rank before they are used up."""
    ranks = pawns.promotion_ranks[WHITE]
    landings = {
        y + step[1] * count
        for y in pawns.start_ranks[WHITE]
        for step in pawns.forward
        for count in range(1, pawns.first_steps)
    }
    on_board = {y for y in landings if y < variant.board.ranks - 1}
    return any(y >= min(ranks) if pawns.must_promote else y in ranks for y in on_board)


def _captures(pawns: Pawns) -> list[str]:
    groups = ray_groups(Ray(step, 1, quiet=False) for step in pawns.captures)
    return [f"To capture: {motion(group)}." if group.is_leap else f"Captures {motion(group)}." for group in groups] or [
        "It never captures."
    ]


def _en_passant(pawns: Pawns) -> str:
    if all(max(abs(x), abs(y)) == 1 for x, y in pawns.forward):
        steps, passed = ("two steps", "the square") if pawns.first_steps == 2 else ("more than one step", "any square")
        return (
            f"En passant: when it has moved {steps}, an enemy pawn may capture it on the very next move, by a "
            f"capturing move to {passed} it passed."
        )
    return (
        "En passant: when it has moved more than once in a turn, an enemy pawn may capture it on the very next move, "
        "by a capturing move to a square where it touched down on the way."
    )


# --- Promotion ----------------------------------------------------------------------------------


def _promotion(variant: Variant, pawns: Pawns) -> list[str]:
    choices = [_choice(variant, targets) for targets in pawns.promotes_to]
    is_shared = choices[WHITE] == choices[BLACK]
    change = f"become {choices[WHITE]}" if is_shared else "promote"
    sentences = _when_promoting(variant, pawns, change)
    if not is_shared:
        sentences += [f"{name}'s pawn becomes {choice}." for name, choice in zip(SIDE_NAMES, choices)]
    return sentences


def _when_promoting(variant: Variant, pawns: Pawns, change: str) -> list[str]:
    white, black = pawns.promotion_ranks
    if pawns.must_promote:
        first = f"{rank_names(variant, [min(white)])} (White) or {rank_names(variant, [max(black)])} (Black)"
        return [f"On reaching rank {first}{', or a rank beyond,' if _may_skip_a_rank(pawns) else ''} it must {change}."]
    ranks = f"{rank_names(variant, white)} (White) or {rank_names(variant, black)} (Black)"
    sentences = [f"When its move ends on rank {ranks}, it may stay a pawn or {change}."]
    forced = [[square for square, must in promotion_squares(variant, side).items() if must] for side in (WHITE, BLACK)]
    if all(forced):
        stuck_white, stuck_black = (square_names(variant, squares) for squares in forced)
        sentences.append(f"On {stuck_white} (White) or {stuck_black} (Black) it must, as it could never move again.")
    return sentences


def _choice(variant: Variant, targets: tuple[int, ...]) -> str:
    if len(targets) == 1:
        piece = variant.piece_types[targets[0]]
        return f"{with_article(piece.name)} ({piece.letter})"
    names = (f"{variant.piece_types[target].name} ({variant.piece_types[target].letter})" for target in targets)
    return f"one of: {listed(names, 'or')}"


def _may_skip_a_rank(pawns: Pawns) -> bool:
    return any(step[1] > 1 for step in (*pawns.quiet, *pawns.captures))


def promotion_squares(variant: Variant, side: int) -> dict[int, bool]:
    """Return the squares on which a pawn of a side may promote, and for each whether it must."""
    if variant.pawns is None:
        return {}
    squares = (square for square in range(variant.num_squares) if may_promote(variant, side, square))
    return {square: must_promote(variant, side, square) for square in squares}
