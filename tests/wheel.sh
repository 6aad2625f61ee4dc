#!/usr/bin/env bash
# The wheels of this machine in an empty environment without Rust: they install, and commands run.
#
# For: what `pip install cachewright` gives. Must never know: how a wheel is built. `tests/wheel.sh
# [WHEEL]` from the repository, after `make wheels` or `make wheel`.
set -euo pipefail
repository="$(cd "$(dirname "$0")/.." && pwd)"
wheel="${1:-}"
if [ -z "$wheel" ] && [ -d "$repository/dist" ]; then
  wheel="$(find "$repository/dist" -name "cachewright-*_$(uname -m).whl" | sort | tail -n 1)"
fi
laboratory=''
if [ -d "$repository/dist" ]; then
  laboratory="$(find "$repository/dist" -name 'cachewright_lab-*.whl' | sort | tail -n 1)"
fi
if [ -z "$wheel" ]; then
  echo 'wheel: found no wheel of this machine in dist, expected it after `make wheels`'
  exit 2
fi
here="$(mktemp -d)"
trap 'rm -rf "$here"' EXIT
"${PYTHON:-python3}" -m venv "$here/venv"
# No Rust on the path: what needs a compiler fails here.
export PATH="$here/venv/bin:/usr/bin:/bin" NO_COLOR=1
if command -v cargo rustc > /dev/null; then
  echo 'wheel: found Rust in /usr/bin, expected none there'
  exit 2
fi
python -m pip install --quiet --disable-pip-version-check "$wheel"
cp -r "$repository/data" "$repository/specs" "$here"
cd "$here"
cachewright --version
cachewright trace info data/mail.csv.zst > /dev/null
cachewright compare specs/demo.toml --vary policy=lru,s3-fifo --vary partition=shared,hull \
  --vary capacity=64MiB --report --out demo > /dev/null
test -s demo/report.html
cachewright mrc data/mail.csv.zst --policy lru --out curves > /dev/null
cachewright report demo curves --figures pdf --width column --out both > /dev/null
# Without the extra `lab`, `reproduce` says what installs it.
if cachewright reproduce soft-qos fig3 --quick --out fig3 > /dev/null 2> refused; then
  echo 'wheel: `reproduce` ran without the extra `lab`, expected it to say what is missing'
  exit 1
fi
grep -q "cachewright\[lab\]" refused
if [ -n "$laboratory" ]; then
  python -m pip install --quiet --disable-pip-version-check --no-index "$laboratory"
  python -m pip install --quiet --disable-pip-version-check --no-index "cachewright[lab]"
  cachewright reproduce soft-qos fig3 --quick --out fig3 > /dev/null
  test -s fig3/index.html
fi
python -c 'import cachewright; print(len(cachewright.list("policies")), "policies")'
echo "installed and run: $(basename "$wheel")"
