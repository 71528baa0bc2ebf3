"""Remote: what may be changed and asked for from afar, over the transport's inbound messages.

desired (the text that came) -> allowed, addresses (what it may touch) -> config_store (kept whole on disk) -> trial (is
it as good as before?); commands and seen_ids (each id runs once); control puts them together at the main loop's edge.
"""
