#!/usr/bin/env bash
# The test suite on 64-bit ARM: in a Debian of that architecture, whose programs qemu runs one instruction at a time.
#
#   make test-arm64                             everything; hours, for each instruction costs ten or more here
#   make test-arm64 TESTS='tests/outbox -q'     pytest's own words
#
# Needs root, and the packages debootstrap, debian-archive-keyring and qemu-user-static. What it makes lies in
# $ARM64_ROOT and is used again; `make clean-arm64` removes it. Mounts are of a namespace of their own, and gone with the
# run; that the kernel knows what to do with programs for aarch64 stays until the machine starts anew.
set -euo pipefail
cd "$(dirname "$0")/.."
root=${ARM64_ROOT:-/var/tmp/edge-agent-arm64}
suite=bookworm
python=3.11

die() { echo "test-arm64: $*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "needs root, for chroot and mounts: sudo make test-arm64"
for program in debootstrap qemu-aarch64-static unshare; do
  command -v "$program" >/dev/null \
    || die "$program is missing: apt install debootstrap debian-archive-keyring qemu-user-static util-linux"
done

if [ ! -e /proc/sys/fs/binfmt_misc/qemu-aarch64 ]; then
  echo "== having the kernel hand programs for aarch64 to qemu"
  [ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc none /proc/sys/fs/binfmt_misc
  cat /usr/lib/binfmt.d/qemu-aarch64.conf >/proc/sys/fs/binfmt_misc/register
fi

if [ ! -e "$root/.debian" ]; then
  echo "== Debian $suite for arm64 in $root (ten minutes)"
  unshare --mount debootstrap --arch=arm64 --variant=minbase \
    --include=ca-certificates,fonts-dejavu-core,jq,make,mosquitto,mosquitto-clients,openssl,python3,python3-venv,systemd \
    "$suite" "$root" >"$root.log" 2>&1 || die "debootstrap failed: see $root.log"
  touch "$root/.debian"
fi

wheels="$root/wheels"
if [ ! -e "$wheels/.complete" ] || [ pyproject.toml -nt "$wheels/.complete" ]; then
  echo "== wheels for aarch64 and Python $python"
  rm -rf "$wheels" "$root/venv/.complete"
  mkdir -p "$wheels"
  platforms=()
  for tag in 2014 _2_17 _2_24 _2_26 _2_27 _2_28 _2_31 _2_34; do
    platforms+=("--platform=manylinux${tag}_aarch64")
  done
  .venv/bin/python -m pip download --quiet --quiet --disable-pip-version-check --dest "$wheels" --only-binary=:all: \
    --python-version "$python" "${platforms[@]}" '.[cpu,demo,dev,metrics,nvml]'
  touch "$wheels/.complete"
fi
if [ ! -e "$root/venv/.complete" ]; then
  echo "== installing them there"
  unshare --mount --pid --fork --kill-child --mount-proc="$root/proc" chroot "$root" /bin/sh -ec '
    [ -x /venv/bin/pip ] || python3 -m venv /venv
    /venv/bin/pip install --quiet --no-index --find-links /wheels --no-deps /wheels/*.whl
    touch /venv/.complete'
fi

echo "== the working tree and the fetched models"
rm -rf "$root/src"; mkdir -p "$root/src"
{ git ls-files --cached --others --exclude-standard; ls engines/*/*.onnx engines/*/*.json; } \
  | tar --create --ignore-failed-read --files-from=- | tar --extract --directory="$root/src"

# qemu 7.2 keeps 0.3 MB of each thread that has ended, and decoders start some at each opening
set -- --deselect tests/cameras/test_native.py::test_six_hundred_opens_leave_no_memory_files_or_threads_behind "$@"

echo "== $(date --utc +%FT%H:%MZ): pytest $*"
exec unshare --mount --pid --fork --kill-child --propagation private /bin/sh -ec '
  root=$1; shift
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  mount -t tmpfs tmpfs "$root/tmp"
  exec chroot "$root" /usr/bin/env -i HOME=/root LANG=C.UTF-8 PATH=/venv/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONPATH=/src /bin/sh -ec "cd /src && exec python -m pytest -p no:cacheprovider \"\$@\"" pytest "$@"
' sh "$root" "$@"
