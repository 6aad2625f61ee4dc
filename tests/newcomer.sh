#!/usr/bin/env bash
# The README and the tutorials, walked by a newcomer in an empty folder with bundled traces.
#
# For: what a first hour looks like: no traceback, no non-zero exit, no file overwritten. Must never
# know: how anything works. `tests/newcomer.sh` from the repository, after `make develop`.
set -uo pipefail
repository="$(cd "$(dirname "$0")/.." && pwd)"
command="$repository/.venv/bin/cachewright"
if ! [ -x "$command" ]; then
  echo "newcomer: found no $command, expected it after \`make develop\`"
  exit 2
fi
here="$(mktemp -d)"
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 2
cp "$repository/data/web.csv.zst" volume.csv.zst
cp "$repository/data/mail.csv.zst" mail.csv.zst
export NO_COLOR=1
steps=0 failures=0

# Fingerprints of all files, to see what a step changed.
prints() { find . -type f -print0 | sort -z | xargs -0 sha256sum; }

fail() { failures=$((failures + 1)); printf 'FAILED: %s\n' "$*"; }

# step EXPECTED-STATUS WORDS...: one command line; files that were there must stay as they are.
step() {
  local expected="$1" before after status
  shift
  steps=$((steps + 1))
  before="$(prints)"
  "$command" "$@" > out.log 2> err.log < /dev/null
  status=$?
  printf '%3d  cachewright %s\n' "$status" "$*"
  if [ "$status" != "$expected" ]; then
    fail "exit status $status, expected $expected"
    tail -n 5 err.log
  fi
  if grep -q 'Traceback' out.log err.log; then fail 'a traceback'; tail -n 5 err.log; fi
  [ "$expected" = 0 ] || grep -q '^error: ' err.log || fail 'no sentence that begins with error:'
  rm -f out.log err.log
  after="$(prints)"
  # Every line of before must stand in after; result folders may be extended.
  while read -r line; do
    case "$line" in *"  ./results/"*|*"  ./r/"*) continue ;; esac
    grep -qxF -- "$line" <<< "$after" || fail "a file changed: ${line##* }"
  done <<< "$before"
}

cat > stack.toml <<'TOML'
[cache]
capacity = "128MiB"
policy = "s3-fifo"
partition = "hull"

[[tenant]]
name = "mail"
trace = "mail.csv.zst"
goal_hit_ratio = 0.5

[[tenant]]
name = "web"
trace = "volume.csv.zst"
TOML

step 0 --version
step 0 --help
for name in run compare mrc plan wa train reproduce check characterize list trace import report \
  view; do
  step 0 "$name" --help
done
for name in policies partitions layouts separations reclaims devices formats; do
  step 0 list "$name"
done

# The README, in its order.
step 0 trace info volume.csv.zst
step 0 trace head volume.csv.zst
step 0 mrc volume.csv.zst
step 0 check stack.toml
step 0 compare volume.csv.zst --policy lru,arc --capacity 16MiB,10%wss
step 0 compare stack.toml --vary policy=lru,arc,s3-fifo --vary capacity=64MiB,10%wss --report
step 0 compare stack.toml --vary policy=lru,arc,s3-fifo --vary capacity=64MiB,10%wss --report
step 0 run stack.toml --out r
step 0 run volume.csv.zst --policy sieve
step 0 report r
step 0 report r results/stack --out both
step 0 wa volume.csv.zst --op 28% --separation none,sepbit
step 0 plan stack.toml
step 0 characterize volume.csv.zst
step 0 trace convert volume.csv.zst volume.parquet
step 0 trace slice volume.csv.zst part.csv --from 1s --to 5s
step 0 trace merge volume.csv.zst mail.csv.zst --out both.parquet
step 0 run both.parquet

# What must be refused, with nothing lost.
step 2 trace convert volume.csv.zst volume.csv.zst
step 2 trace convert mail.csv.zst volume.parquet
step 2 trace slice volume.csv.zst part.csv
step 2 trace merge volume.csv.zst mail.csv.zst --out mail.csv.zst
step 2 trace merge volume.csv.zst mail.csv.zst
step 2 run absent.toml
step 2 run stack.toml --set cache.capasity=1MiB
step 2 compare stack.toml --vary policy=lrx

printf '%d steps, %d failures\n' "$steps" "$failures"
[ "$failures" = 0 ]
