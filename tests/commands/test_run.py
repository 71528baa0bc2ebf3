"""`edge-agent run`: a wish to stop is heard from the first moment on."""

from __future__ import annotations

import subprocess
import sys

from tests.conftest import ROOT


def test_signals_are_heard_before_the_slow_imports() -> None:
    code = (
        "import sys\n"
        "from edge_agent import service\n"
        "from edge_agent.__main__ import main\n"
        "def watched(stop):\n"
        "    sys.exit('too late' if {'cv2', 'edge_agent.agent'} & set(sys.modules) else 0)\n"
        "service.stop_on_signals = watched\n"
        "main(['run', '--config', 'nowhere.yaml'])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")
