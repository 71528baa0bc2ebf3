"""Verify: what an item must say (an expectation of rules), and what becomes of it: PASS, FAIL or NO_READ.

Everything here is pure: the agent, the page's rehearsal and `edge-agent replay` judge by the same functions.
"""
