"""The first line from a GUI, answered before anything heavy is loaded: XBoard waits ten seconds for an answer."""

UCI, XBOARD = "uci", "xboard"
PROTOCOLS = (UCI, XBOARD)
WAIT = "feature done=0"
"""Tells XBoard that the features will come."""


def protocol_of(line: str, asked: str | None) -> str:
    """Return the protocol of a conversation.

    Args:
        line: The first line from the GUI.
        asked: The protocol that the user has asked for, if any.
    """
    said = line.strip()
    return asked or (said if said in PROTOCOLS else UCI)
