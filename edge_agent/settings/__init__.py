"""Settings: what config.yaml may say, how its text becomes values, and every mistake a line with a cure.

A section a file, named like its key (cameras with roi and trigger, pipeline, outbox, ...), made of section and scalars;
expected is a rule, date_rule the comparison in one, sources what a camera's source may be. edge_agent.config joins all.
strict_yaml (text to plain values; strict_json the same) -> environment (overrides) -> validation (pydantic's errors
as plain lines); keys and problems are what they speak in. yaml_file is the short way for models and recipes.
"""
