"""What can go wrong, as a tree; the type alone decides what happens next.

    EdgeAgentError
    ├── ConfigError      a setting is wrong            ends start-up, exit 78; from afar: refused and reported
    │   └── ModelError   a model file is missing,      ends start-up, exit 78; `models fetch` mends it
    │                    damaged or not what its
    │                    model.yaml says
    ├── CameraError      a source gives no frames      retried in the camera's own thread, with back-off
    ├── FrameError       one frame cannot be read      counted, the frame is dropped, the loop goes on
    ├── EngineError      inference failed              ends the process, exit 70, after the outbox is safe
    ├── CalibrationRefused  not enough to go by, or    ends the calibration, exit 1; what runs stays in use
    │                       worse than what runs
    ├── TransportError   a message was not delivered   the publisher backs off while data waits
    └── SensorError      a sensor gives no value       sent as null with the reason, warned of once

Every message says what came, what was expected and what to do.
"""

from __future__ import annotations

EXIT_OK = 0
EXIT_SOFTWARE = 70  # EX_SOFTWARE of sysexits.h: the process must start afresh
EXIT_CONFIG = 78  # EX_CONFIG of sysexits.h: starting again will not help (RestartPreventExitStatus)


def in_one_line(error: object, most_chars: int = 300) -> str:
    """What a library's error says, as one line that fits a message."""
    text = " ".join(str(error).split())
    return text if len(text) <= most_chars else f"{text[:most_chars]}..."


class EdgeAgentError(Exception):
    """Root of every error this program raises on purpose."""

    exit_code = EXIT_SOFTWARE


class ConfigError(EdgeAgentError):
    """A setting is wrong; the message names the file, the line or key, and the cure."""

    exit_code = EXIT_CONFIG


class ModelError(ConfigError):
    """A model's file is missing, damaged or different from what its model.yaml declares."""


class CameraError(EdgeAgentError):
    """A camera cannot be opened or gives no frames now; trying again later may help."""


class FrameError(EdgeAgentError):
    """One frame cannot be processed; the next one may."""


class EngineError(EdgeAgentError):
    """An engine failed or returned nonsense; its process must end and start afresh."""


class CalibrationRefused(EdgeAgentError):
    """A calibration cannot be trusted: too few frames, ranges from nothing, a broken gate; what runs stays in use."""

    exit_code = 1


class TransportError(EdgeAgentError):
    """A message could not be handed over; it is kept and offered again."""


class SensorError(EdgeAgentError):
    """A sensor gives no value now; its value is null, with this as the reason."""
