"""Are the models of the settings there, each as it was made?"""

from __future__ import annotations

from collections.abc import Iterator

from edge_agent.config import Config
from edge_agent.doctor.base import Patient, Row
from edge_agent.errors import ModelError
from edge_agent.models.spec import FETCH_ADVICE, ModelSpec, require_files


def check(patient: Patient) -> Iterator[Row]:
    if patient.models_dir is None:
        yield Row("models", "fail", "there is no folder of models", "name one with models_dir")
        return
    for name in models_in_use(patient.config):
        try:
            spec = ModelSpec.load(patient.models_dir, name)
            for variant in spec.variants:
                require_files(spec, patient.models_dir, variant)
        except ModelError as exc:
            yield Row("models", "fail", str(exc), f"{FETCH_ADVICE} {name}")
        else:
            yield Row("models", "ok", f"{name}: as it was made, by its sha256")


def models_in_use(config: Config | None) -> list[str]:
    """Their names; those of the defaults where the settings are wrong."""
    pipeline = (config or Config()).pipeline
    names = (pipeline.detector, pipeline.recogniser, pipeline.encoder, pipeline.tagger)
    return [name for name in names if name is not None]
