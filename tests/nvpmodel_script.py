"""A little nvpmodel: a shell script that keeps the mode in a file; mode 2 wants a reboot, which it asks for."""

from __future__ import annotations

from pathlib import Path

SCRIPT = """\
#!/bin/sh
# as the real one: -q tells, -m sets; a mode that needs a reboot asks, and is not set when that is declined
state='{state}'
case "$1" in
  -q)
    id=$(cat "$state")
    case "$id" in 0) name=15W ;; 1) name=7W ;; *) name=MAXN_SUPER ;; esac
    echo "NV Power Mode: $name"
    echo "$id" ;;
  -m)
    echo "$2" >> "$state.log"
    if [ "$2" = 2 ]; then
      echo "NVPM WARN: Reboot required for changing to this power mode: 2"
      echo "NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:"
      read answer
      [ "$answer" = YES ] || exit 1
    fi
    [ -e "$state.locked" ] && {{ echo "NVPM ERROR: must be run as root"; exit 1; }}
    echo "$2" > "$state" ;;
esac
"""


def make(folder: Path, mode_id: int) -> tuple[Path, Path]:
    """The script, and the file with the mode in force; `<file>.log` has the modes asked for, with `<file>.locked` none
    is set."""
    state = folder / "nvpmodel.state"
    state.write_text(f"{mode_id}\n")
    tool = folder / "nvpmodel"
    tool.write_text(SCRIPT.format(state=state))
    tool.chmod(0o755)
    return tool, state
