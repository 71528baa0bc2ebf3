"""Stands in for `edge-agent run`: connects as the config says and publishes readings until SIGTERM.

python scripted_agent.py BEHAVIOUR [--until-end] --config FILE
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from pathlib import Path

import paho.mqtt.client as mqtt
import yaml
from paho.mqtt.enums import CallbackAPIVersion

behaviour, config_path = sys.argv[1], sys.argv[-1]
asked_to_end = threading.Event()
signal.signal(signal.SIGTERM, lambda *_: asked_to_end.set())
config = yaml.safe_load(Path(config_path).read_text(encoding="utf-8"))
cameras = [f"{name}={camera['kind']}:{camera['source']}" for name, camera in config["cameras"].items()]
print("scripted agent", *sys.argv[2:-2], "reads", *cameras, flush=True)
if behaviour == "dies":
    print("edge-agent: model ppocrv6-small-det is missing; run `edge-agent models fetch`", flush=True)
    sys.exit(78)

client = mqtt.Client(CallbackAPIVersion.VERSION2)
client.connect(config["mqtt"]["host"], config["mqtt"]["port"])
client.loop_start()
prefix = f"{config['mqtt']['base_topic']}/{config['device_id']}"


def publish(topic: str, body: dict[str, object]) -> None:
    client.publish(f"{prefix}/{topic}", json.dumps(body), qos=1).wait_for_publish(5)


publish("health", {"pipeline": "starting", "reason": None})
publish("health", {"pipeline": "running", "reason": None})
publish("line1/status", {"state": "offline", "reason": "no such device"})
for seq in range(100_000 if behaviour == "reads" else 3):
    fields = [
        {"name": "lot", "value": "A7K2093", "text": "A7K2093", "confidence": 0.9, "flags": []},
        {"name": "expiry_date", "value": "2000-01-01", "text": "2000-01-01", "confidence": 0.9, "flags": []},
    ]
    line = {"text": "LOT A7K2093", "confidence": 0.98}
    timings = {"detect": 80.0, "total": 120.0}
    body = {"camera": "line1", "seq": seq, "lines": [line], "fields": fields, "reason": None, "timings_ms": timings}
    publish("line1/result", body)
    if asked_to_end.wait(0.02):
        print("scripted agent ended in order", flush=True)
        sys.exit(0)
sys.exit(0 if behaviour == "comes-to-its-end" else 70)
