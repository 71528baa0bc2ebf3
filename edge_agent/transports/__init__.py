"""Transports: where messages go. A new one is a file here and a row in TRANSPORTS.

Each class is made by its `from_config(config, device_id, will, birth)`.
"""

TRANSPORTS = {
    "jsonl": "edge_agent.transports.jsonl:JsonlTransport",
    "mqtt": "edge_agent.transports.mqtt:MqttTransport",
}
