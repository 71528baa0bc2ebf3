"""Telemetry: how the device is. A new group of sensors is a file here and a row in SENSORS.

Each entry is a function that looks once for what this machine has and returns its sensors; a sensor is a row with a
function (telemetry/base.py). Names carry their unit; a dot nests (`temp_c.cpu`).
"""

SENSORS = {
    "host": "edge_agent.telemetry.host:sensors",
}
