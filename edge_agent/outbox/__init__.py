"""Outbox: what waits for the broker, in order, bounded, at least once; on disk or in memory.

Start in `base` (the contract), `opening` (which one a configuration gets) and `soundness` (what is done about a damaged
file).
"""
