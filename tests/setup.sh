# Set-up shared by tests/run and bench/run; sourced, from the repository's root.
#
# `set_up` leaves in $python an interpreter that has torch and tcgemm, built from this tree:
#   - the active Python, when it has a fitting torch (>= 2.10, CUDA 13) and pip may install into it,
#   - else .venv (.venv-VERSION with TCGEMM_TORCH=VERSION), filled from constraints.txt.
# What an earlier run installed or compiled is reused.
# shellcheck shell=bash

python=${PYTHON:-python3}

say() { printf '== %s\n' "$*"; }
die() {
  printf 'tcgemm: %s\n' "$*" >&2
  exit 1
}

# at_least 3.25 3.25.1
at_least() { [ "$(printf '%s\n' "$1" "$2" | sort -V | head -n 1)" = "$1" ]; }

wants_cuda() { [ "${TCGEMM_BUILD_CUDA:-1}" != 0 ]; }

find_compilers() {
  command -v "$python" >/dev/null || die "Python 3.10 or newer is missing (Debian, Ubuntu: apt-get install python3 python3-venv)."
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    die "$("$python" --version) is too old: Python 3.10 or newer is needed (PYTHON=python3.12 $0 takes another)."
  command -v "${CXX:-g++}" >/dev/null || die "a C++20 compiler is missing (Debian, Ubuntu: apt-get install g++)."
  wants_cuda || return 0
  local home version
  for home in "${CUDA_HOME:-}" "${CUDA_PATH:-}" /usr/local/cuda; do
    if [ -n "$home" ] && [ -x "$home/bin/nvcc" ]; then
      PATH=$home/bin:$PATH
      break
    fi
  done
  command -v nvcc >/dev/null ||
    die "nvcc is missing: install the CUDA 13 toolkit (or set CUDA_HOME), or set TCGEMM_BUILD_CUDA=0 to build and test the CPU part alone."
  version=$(nvcc --version | sed -n 's/.*release \([0-9.]*\),.*/\1/p')
  at_least 13.0 "$version" ||
    die "nvcc $version is too old: CUDA 13 is needed (or set TCGEMM_BUILD_CUDA=0 to build and test the CPU part alone)."
}

# The version of $python's torch, if tcgemm can use it. Nothing is imported: that takes seconds.
fitting_torch() {
  "$python" - <<'EOF'
import importlib.metadata, importlib.util, os, pathlib, re, runpy, sys

try:
    version = importlib.metadata.version("torch")
    spec = importlib.util.find_spec("torch")
    facts = runpy.run_path(str(pathlib.Path(spec.origin).with_name("version.py")))
except Exception:
    sys.exit(1)
release = tuple(int(x) for x in re.findall(r"\d+", version)[:2])
cuda = os.environ.get("TCGEMM_BUILD_CUDA", "1") != "0"
if release < (2, 10) or (cuda and not (facts.get("cuda") or "").startswith("13.")):
    sys.exit(1)
print(version)
EOF
}

# Debian's and Ubuntu's own Python refuses pip (PEP 668).
pip_may_install() {
  "$python" - <<'EOF'
import pathlib, sys, sysconfig

in_venv = sys.prefix != sys.base_prefix
sys.exit(not in_venv and (pathlib.Path(sysconfig.get_path("stdlib")) / "EXTERNALLY-MANAGED").exists())
EOF
}

make_venv() {  # make_venv DIRECTORY [option of venv]
  if ! [ -x "$1/bin/python" ]; then
    say "making the virtual environment ${1#"$PWD"/}"
    "$python" -m venv "${@:2}" "$1" || {
      rm -rf "$1"
      die "$("$python" --version) cannot make a virtual environment (Debian, Ubuntu: apt-get install python3-venv)."
    }
  fi
  python=$1/bin/python
  PATH=$1/bin:$PATH
}

choose_python() {
  local version
  if [ -z "${TCGEMM_TORCH:-}" ] && version=$(fitting_torch); then
    pip_may_install || make_venv "$PWD/.venv" --system-site-packages
    packages=lacking
    say "using torch $version of $(command -v "$python")"
  else
    make_venv "$PWD/.venv${TCGEMM_TORCH:+-$TCGEMM_TORCH}"
    packages=pinned
  fi
}

# constraints.txt, less what the system already offers.
pins() {
  local cmake
  cmake=$(cmake --version 2>/dev/null | sed -n 's/cmake version //p')
  sed -e '/^#/d' ${TCGEMM_TORCH:+-e "s/^torch==.*/torch==$TCGEMM_TORCH/"} constraints.txt |
    if at_least 3.25 "${cmake:-0}"; then grep -v '^cmake=='; else cat; fi |
    if command -v ninja >/dev/null; then grep -v '^ninja=='; else cat; fi
}

# Those lines of pins whose package $python lacks, whatever its version.
lacking() {
  pins | "$python" -c '
import importlib.metadata, sys
from pip._vendor.packaging.requirements import Requirement
for line in sys.stdin:
    package = Requirement(line.strip())
    if package.marker and not package.marker.evaluate():
        continue
    try:
        importlib.metadata.version(package.name)
    except importlib.metadata.PackageNotFoundError:
        print(line, end="")
'
}

install_packages() {
  local wanted
  mkdir -p build
  wanted=build/requirements.txt
  if [ "$packages" = lacking ]; then lacking >"$wanted"; else pins >"$wanted"; fi
  [ -s "$wanted" ] || return 0
  if [ "$packages" = pinned ] && ! "$python" -c 'import importlib.metadata as m; m.version("torch")' 2>/dev/null; then
    say "installing $(grep '^torch==' "$wanted") and what it needs: about 5 GB, minutes"
  fi
  "$python" -m pip install --quiet --disable-pip-version-check -r "$wanted" || {
    # With a torch at hand, a missing plotting library is no reason to test nothing: what needs it will say so.
    [ "$packages" = lacking ] || die "pip could not install $(tr '\n' ' ' <"$wanted")"
    say "pip could not install $(sed 's/==.*//' "$wanted" | sort -u | tr '\n' ' '); going on without"
  }
}

# How far ninja is, by its log, until this script ends: on a terminal in place, else a line a minute.
show_progress() {  # show_progress LOG
  local now last=''
  while kill -0 $$ 2>/dev/null; do
    if [ -t 1 ]; then sleep 1; else sleep 60; fi
    now=$(grep -ao '^ *\[[0-9]*/[0-9]*\]' "$1" | tail -n 1)
    [ "$now" = "$last" ] && continue
    last=$now
    if [ -t 1 ]; then printf '\r  %s ' "$now"; else printf '  %s\n' "$now"; fi
  done
}

build() {
  local log=build/install.log started=$SECONDS
  say "building tcgemm (log: $log)"
  local poller status=0
  : >"$log"
  show_progress "$log" &
  poller=$!
  "$python" -m pip install -v --disable-pip-version-check --no-build-isolation --no-deps -e . >"$log" 2>&1 || status=$?
  kill "$poller"
  [ -t 1 ] && printf '\r\033[K'
  [ "$status" = 0 ] || {
    grep -aE 'error|Error|FAILED' "$log" | head -n 20 >&2 || true
    tail -n 30 "$log" >&2
    die "the build failed: $log has all of it."
  }
  say "built in $((SECONDS - started)) s"
}

set_up() {
  find_compilers
  choose_python
  install_packages
  build
}

has_gpu() { "$python" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2>/dev/null; }
