"""Exceptions raised at the boundary of the rules packages. All are `ValueError`s: the caller's input was wrong."""


class InvalidVariant(ValueError):
    """A variant file that cannot be honoured; the message names the file, the line, the key and the reason."""


class InvalidFen(ValueError):
    """A FEN that is not a position of the variant; the message names the field, the place and the reason."""


class IllegalAction(ValueError):
    """A move or an action that is not legal in the position; nothing has been changed when it is raised."""
