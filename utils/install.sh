#!/usr/bin/env bash
# Makes the environment .venv: TensorFlow, the program's requirements, and Horovod built against that very TensorFlow.
# The built wheel is kept under the user's cache folder, so that no other environment of the same versions builds it again.
# usage: utils/install.sh <python> [--rebuild]
set -euo pipefail
cd "$(dirname "$0")/.."
python=$1

fail() { echo "setup: error: $*" >&2; exit 1; }

version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || fail "$python does not run: give make PYTHON=/path/to/python3.11"
case $version in
  3.10 | 3.11 | 3.12) ;;
  *) fail "$python is Python $version; 3.10, 3.11 and 3.12 work: give make PYTHON=/path/to/python3.11" ;;
esac
tensorflow=$(sed -n 's/^tensorflow==//p' constraints.txt)
options=${HOROVOD_GPU_OPERATIONS:-cpu}${HOROVOD_WITH_MPI:+-mpi}
wheels=${XDG_CACHE_HOME:-${HOME:-/tmp}/.cache}/unet-horovod/tensorflow-$tensorflow-python-$version-$(uname -m)-$options
kept() { find "$wheels" -name 'horovod-*.whl' 2>/dev/null | head -n 1; }
build=$([ -n "$(kept)" ] && [ "${2:-}" != --rebuild ] && echo no || echo yes)
if [ "$build" = yes ] && ! command -v "${CXX:-g++}" >/dev/null; then
  fail "no C++ compiler (${CXX:-g++}), which Horovod's build needs: install one (Debian and Ubuntu: apt-get install g++)"
fi

[ -x .venv/bin/python ] || "$python" -m venv .venv || fail "no environment can be made in .venv (Debian and Ubuntu: install python$version-venv)"
pip() { .venv/bin/python -m pip --disable-pip-version-check --quiet "$@"; }
echo "setup: TensorFlow $tensorflow and requirements into .venv (Python $version)"
grep -v '^horovod' requirements-tensorflow.txt | pip install -c constraints.txt -r /dev/stdin -r requirements.txt -r requirements-test.txt

if [ "$build" = yes ]; then
  echo "setup: building Horovod for TensorFlow $tensorflow (about two minutes)"
  mkdir -p "$wheels"
  [ -n "${HOROVOD_WITH_MPI:-}" ] || export HOROVOD_WITHOUT_MPI=1
  PATH="$PWD/.venv/bin:$PATH" HOROVOD_WITH_TENSORFLOW=1 HOROVOD_WITHOUT_PYTORCH=1 HOROVOD_WITHOUT_MXNET=1 HOROVOD_WITH_GLOO=1 \
    pip wheel --no-build-isolation --no-deps --no-cache-dir -c constraints.txt -w "$wheels" horovod >"$wheels/build.log" 2>&1 ||
    fail "Horovod did not build; the compiler's words are in $wheels/build.log"
fi
pip install --no-deps --force-reinstall "$(kept)"
.venv/bin/python -c 'from utils.setup import hvd; hvd.init()' || fail "Horovod was installed but does not start"
echo "setup: ready; activate it with '. .venv/bin/activate'"
