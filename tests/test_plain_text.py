"""Plain text: nothing of it steers a terminal, and all that can be printed stays."""

from __future__ import annotations

from edge_agent.plain_text import printable


def test_what_steers_a_terminal_becomes_a_space_and_all_else_stays() -> None:
    assert printable("EXP\x1b[31m 08/27\n\u202e有效期 \ud83d é") == "EXP [31m 08/27  有效期   é"
