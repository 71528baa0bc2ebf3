"""What `make` installs, as pyproject.toml declares it: it must come from a plain package index onto any machine."""

from __future__ import annotations

import re

import pytest

from tests.conftest import ROOT


def declared(extra: str) -> list[str]:
    """The requirement lines of an extra, or of the base install for ''; tomllib came with Python 3.11 only."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    found = re.search(rf"^{extra or 'dependencies'} = \[(.*?)\]$", text, re.MULTILINE | re.DOTALL)
    assert found is not None, f"pyproject.toml declares no {extra or 'dependencies'}"
    return re.findall(r'"([^"]+)"', found[1].replace("edge-agent[cpu,demo]", ""))


@pytest.mark.parametrize("extra", ["", "cpu", "demo", "dev"])
def test_what_make_installs_asks_for_nothing_of_nvidias(extra: str) -> None:
    lines = declared(extra)

    assert lines
    assert [line for line in lines if re.match(r"(tensorrt|nvidia|pycuda|cuda)", line, re.IGNORECASE)] == []


@pytest.mark.parametrize("extra", ["", "demo", "jetson"])
def test_opencv_comes_with_the_cpu_extra_alone(extra: str) -> None:
    assert [line for line in declared(extra) if "opencv" in line.lower()] == []
