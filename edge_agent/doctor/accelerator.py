"""What will run the models, and is it what was meant? (field case ENG-8)"""

from __future__ import annotations

from collections.abc import Iterator

from edge_agent.backends.choose import choose_backend, look
from edge_agent.doctor.base import Patient, Row
from edge_agent.errors import ConfigError


def check(patient: Patient) -> Iterator[Row]:
    findings = look(patient.root, patient.environ)
    kind = "auto" if patient.config is None else patient.config.backend.kind
    fallback = patient.config is not None and patient.config.backend.allow_cpu_fallback
    try:
        choice = choose_backend(kind, fallback, findings)
    except ConfigError as exc:
        what, _, cure = str(exc).partition(". Mend that")
        yield Row("accelerator", "fail", what, f"mend that{cure}")
        return
    if choice.fallback:
        yield Row("accelerator", "warn", str(choice), "mend what is named, or set backend.kind: onnxruntime")
    else:
        yield Row("accelerator", "ok", str(choice))
