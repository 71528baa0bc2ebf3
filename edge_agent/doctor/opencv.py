"""Which OpenCV is this, and has it what the cameras need? (field case CAM-6)"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata

from edge_agent.doctor.base import Patient, Row

BUILDS = ("opencv-python", "opencv-python-headless", "opencv-contrib-python", "opencv-contrib-python-headless")


def check(patient: Patient) -> Iterator[Row]:
    import cv2

    from edge_agent.cameras.native import gstreamer_missing, opencv_has_gstreamer

    has = "with" if opencv_has_gstreamer() else "without"
    yield Row("opencv", "ok", f"OpenCV {cv2.__version__} {has} GStreamer ({cv2.__file__})")
    builds = [name for name in BUILDS if installed(name)]
    if len(builds) > 1:
        cure = f"pip uninstall {' '.join(builds[1:])}, then install {builds[0]} again"
        yield Row("opencv", "warn", f"pip has brought {len(builds)} of them: {', '.join(builds)}", cure)
    for name, camera in ({} if patient.config is None else patient.config.cameras).items():
        if camera.enabled and (camera.kind == "csi" or camera.decoder == "gstreamer"):
            problem = gstreamer_missing(f"cameras.{name}")
            if problem is not None:
                what, _, cure = problem.partition(". On a Jetson: ")
                yield Row("opencv", "fail", what, cure)


def installed(package: str) -> bool:
    """Whether pip has it."""
    try:
        metadata.version(package)
    except metadata.PackageNotFoundError:
        return False
    return True
