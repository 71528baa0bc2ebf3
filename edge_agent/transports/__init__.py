"""Transports: where messages go. A new one is a file here and a row in TRANSPORTS."""

TRANSPORTS = {
    "jsonl": "edge_agent.transports.jsonl:JsonlTransport",
    "mqtt": "edge_agent.transports.mqtt:MqttTransport",
}
