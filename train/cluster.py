"""Whether a Ray cluster may be joined: it answers, it asks for a token, and ours is the right one.

Asked from processes of their own, through Ray's command line: a driver that tries with the wrong token waits and
retries, and a process that has started with one way of authentication keeps it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys

from train.config_errors import ConfigError

CONNECT_TIMEOUT_S = 5.0
ANSWER_TIMEOUT_S = 60.0
LAST_LINES = 3
TOKEN_HELP = "set RAY_AUTH_TOKEN, or RAY_AUTH_TOKEN_PATH to a file that holds it (docs/cluster.md)"


def check_cluster(address: str, *, allow_unauthenticated: bool) -> None:
    """Refuse a cluster that cannot be joined, or that anybody can join; then Ray's mode of authentication is set.

    Args:
        address: HOST:PORT of its head.
        allow_unauthenticated: Take one that asks for no token.

    Raises:
        ConfigError: Nothing answers there; it asks for no token and that is not allowed; our token is not its own.
    """
    _check_answers(address)
    if _refusal(address, mode="disabled") is None:
        if not allow_unauthenticated:
            raise ConfigError(
                f"ray.address {address}: this cluster asks for no token, so whoever reaches its ports can run code "
                "on it; start its nodes with RAY_AUTH_MODE=token, or set ray.allow_unauthenticated=true"
            )
        os.environ["RAY_AUTH_MODE"] = "disabled"
        return
    refusal = _refusal(address, mode="token")
    if refusal is not None:
        is_token = "Authentication" in refusal or "token" in refusal
        reason = f"it refuses our token, or there is none: {TOKEN_HELP}" if is_token else "it cannot be joined"
        raise ConfigError(f"ray.address {address}: {reason}\n{refusal}")
    os.environ["RAY_AUTH_MODE"] = "token"


def _check_answers(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise ConfigError(f"ray.address {address}: no Ray cluster answers there: {error}") from None


def _refusal(address: str, *, mode: str) -> str | None:
    """Return the end of what Ray says when it is refused, or None if it is let in."""
    program = [sys.executable, "-m", "ray.scripts.scripts", "health-check", "--address", address]
    environment = {**os.environ, "RAY_AUTH_MODE": mode}
    try:
        found = subprocess.run(
            program, env=environment, capture_output=True, text=True, timeout=ANSWER_TIMEOUT_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {ANSWER_TIMEOUT_S:.0f} s"
    lines = (found.stderr or found.stdout).strip().splitlines()
    return "\n".join(lines[-LAST_LINES:]) if found.returncode else None
