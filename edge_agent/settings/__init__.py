"""Settings: how the text of config.yaml becomes the values of edge_agent.config, and every mistake a line with a cure.

strict_yaml (text to plain values) -> environment (overrides) -> validation (pydantic's errors as plain lines); keys and
problems are what they speak in, sources says what a camera's source may be.
"""
