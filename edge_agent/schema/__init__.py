"""Schema: what every payload holds, as models, and the documents made from them (docs/mqtt/, `edge-agent schema`).

A new message is a model in payloads.py and a row in channels.py.
"""
