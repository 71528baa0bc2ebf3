"""Camera: the seam to the outside world of light; and the thread that keeps one camera going."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt


class Camera(Protocol):
    """One source. Every method may block up to its configured time-out; a camera knows no threads."""

    def open(self) -> None:
        """Opens the source; raises CameraError (message without secrets) when it cannot be opened."""
        ...

    def read(self) -> npt.NDArray[Any] | None:
        """The next picture, uint8 (H, W, 3) BGR, owned by the caller; None at the end of a source that ends.

        Raises CameraError when no picture came within the read time-out.
        """
        ...

    def close(self) -> None:
        """Releases the source; calling it again does nothing."""
        ...


Image = npt.NDArray[np.uint8]
