"""Doctor: what is wrong with this machine and its settings, and the cure. A new check is a file and a row in CHECKS.

A check takes the Patient and gives Rows (doctor/base.py); it changes nothing on the machine, and tells no secret.
"""

CHECKS = {
    "settings": "edge_agent.doctor.settings:check",
    "secrets": "edge_agent.doctor.secret_files:check",
    "python": "edge_agent.doctor.packages:check",
    "opencv": "edge_agent.doctor.opencv:check",
    "accelerator": "edge_agent.doctor.accelerator:check",
    "models": "edge_agent.doctor.models:check",
    "catalogue": "edge_agent.doctor.catalogue:check",
    "plans": "edge_agent.doctor.plans:check",
    "camera": "edge_agent.doctor.cameras:check",
    "page": "edge_agent.doctor.page:check",
    "broker": "edge_agent.doctor.broker:check",
    "clock": "edge_agent.doctor.time_of_day:check",
    "disk": "edge_agent.doctor.disk:check",
    "power": "edge_agent.doctor.power:check",
    "sensors": "edge_agent.doctor.sensors:check",
    "service": "edge_agent.doctor.unit:check",
}
