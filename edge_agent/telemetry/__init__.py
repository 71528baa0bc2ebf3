"""Telemetry: how the device is. A new group of sensors is a file here and a row in SENSORS.

Each entry is a function that takes the folder in which `sys`, `proc`, `etc` and `var` are, and returns a probe: what
looks for the sensors that are there now (telemetry/base.py). Names carry their unit; a dot nests (`temp_c.cpu`).
"""

SENSORS = {
    "host": "edge_agent.telemetry.host:probe",
    "rails": "edge_agent.telemetry.rails:probe",
    "over_current": "edge_agent.telemetry.over_current:probe",
    "thermal": "edge_agent.telemetry.thermal:probe",
    "gpu": "edge_agent.telemetry.gpu:probe",
    "gpu_memory": "edge_agent.telemetry.gpu_memory:probe",
    "nvml": "edge_agent.telemetry.nvml:probe",
    "fan": "edge_agent.telemetry.fan:probe",
}
