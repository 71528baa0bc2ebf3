"""Config: what an operator may set, every bound with its unit; `config.yaml` documents each key in place.

Values are frozen; unknown keys are refused. `load(path)` reads a file, `patched` applies a change from afar.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

# One topic level: no MQTT wildcard, separator or control character can be in it (field case MQ-9).
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]{1,64}$")]
Port = Annotated[int, Field(ge=1, le=65535)]
Share = Annotated[float, Field(ge=0.0, le=1.0)]
Seconds = Annotated[float, Field(gt=0, le=86_400)]


class Section(BaseModel):
    """Base of every block: frozen, strict types, unknown keys refused, input values never echoed."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, hide_input_in_errors=True, allow_inf_nan=False)


class CameraConfig(Section):
    """One source of frames."""

    kind: Literal["csi", "folder", "rtsp", "v4l2", "video"]
    source: Annotated[str, Field(min_length=1, max_length=2048)]
    enabled: bool = True
    width_px: Annotated[int, Field(ge=16, le=16_384)] | None = None
    height_px: Annotated[int, Field(ge=16, le=16_384)] | None = None
    max_fps: Annotated[float, Field(gt=0, le=1000)] | None = None
    pace: Literal["live", "every_frame"] = "live"
    loop: bool = False
    password_file: Path | None = None
    open_timeout_s: Seconds = 5.0
    read_timeout_s: Seconds = 5.0
    stalled_after_s: Seconds = 5.0
    reconnect_min_s: Seconds = 0.5
    reconnect_max_s: Seconds = 30.0
    max_pixels: Annotated[int, Field(ge=1)] = 50_000_000
    # v4l2: four characters such as MJPG, YUYV, GREY, Y16
    pixel_format: Annotated[str, StringConstraints(pattern=r"^[A-Z0-9 ]{3,4}$")] | None = None
    # significant bits in 16-bit samples (10, 12, 14 for most sensors); None: all 16
    bit_depth: Annotated[int, Field(ge=8, le=16)] | None = None
    # rtsp: what decodes the stream; auto takes FFmpeg where this OpenCV has it, gstreamer is the Jetson's hardware
    decoder: Literal["auto", "ffmpeg", "gstreamer"] = "auto"


class BackendConfig(Section):
    """What runs the models."""

    kind: Literal["auto", "onnxruntime", "tensorrt"] = "auto"
    threads: Annotated[int, Field(ge=0, le=256)] = 0


class PipelineConfig(Section):
    """How a frame becomes a reading."""

    detector: Name = "ppocrv6-small-det"
    recogniser: Name = "ppocrv6-small-rec"
    encoder: Name | None = "minilm-l6-v2"
    languages: tuple[Annotated[str, StringConstraints(pattern=r"^[a-z]{2,3}$")], ...] = ("en", "de", "fr", "es", "it")
    characters: Literal["auto", "latin", "full"] = "auto"
    detector_min_side_px: Annotated[int, Field(ge=32, le=4096)] = 736
    detector_max_side_px: Annotated[int, Field(ge=32, le=8192)] = 2000
    pixel_threshold: Share = 0.3
    box_threshold: Share = 0.5
    unclip_ratio: Annotated[float, Field(ge=0.5, le=5.0)] = 1.6
    max_boxes: Annotated[int, Field(ge=1, le=5000)] = 1000
    min_confidence: Share = 0.5


class FieldsConfig(Section):
    """What lines mean."""

    date_order: Literal["DMY", "MDY", "YMD"] = "DMY"


class MqttConfig(Section):
    """The broker and how to reach it."""

    host: Annotated[str, Field(min_length=1, max_length=253)] = "127.0.0.1"
    port: Port = 1883
    base_topic: Name = "edge"
    client_id: Name | None = None
    username: str | None = None
    password_file: Path | None = None
    tls: bool = False
    ca_file: Path | None = None
    cert_file: Path | None = None
    key_file: Path | None = None
    keepalive_s: Annotated[int, Field(ge=5, le=3600)] = 30
    reconnect_min_s: Seconds = 1.0
    reconnect_max_s: Seconds = 60.0
    max_inflight: Annotated[int, Field(ge=1, le=1000)] = 20
    max_payload_bytes: Annotated[int, Field(ge=1024, le=268_435_455)] = 262_144


class OutboxConfig(Section):
    """What waits for the broker."""

    max_bytes: Annotated[int, Field(ge=65_536)] = 67_108_864
    max_age_s: Annotated[float, Field(gt=0)] = 604_800.0


class TelemetryConfig(Section):
    """How the device reports on itself."""

    interval_s: Annotated[float, Field(ge=0.5, le=3600)] = 10.0


class Config(Section):
    """Everything; the top of config.yaml."""

    device_id: Name | None = None
    transport: Literal["mqtt", "jsonl"] = "mqtt"
    models_dir: Path = Path("engines")
    cameras: dict[Name, CameraConfig] = {}
    backend: BackendConfig = BackendConfig()
    pipeline: PipelineConfig = PipelineConfig()
    fields: FieldsConfig = FieldsConfig()
    mqtt: MqttConfig = MqttConfig()
    outbox: OutboxConfig = OutboxConfig()
    telemetry: TelemetryConfig = TelemetryConfig()
