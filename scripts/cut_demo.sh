#!/usr/bin/env bash
# Cuts the demo traces under data/ out of the full captures: the first 40 seconds of the run phase
# of each volume. Needs zstd and the reference data (CACHEWRIGHT_SHARED, else ../shared); the same
# input gives the same bytes. See data/README.md.
set -euo pipefail
cd "$(dirname "$0")/.."

captured="${CACHEWRIGHT_SHARED:-../shared}/traces/captured"
seconds=40
tenants=(oltp mail web lu)

if [ ! -d "$captured" ]; then
  echo "skipped: needs the reference data (set CACHEWRIGHT_SHARED)"
  exit 0
fi
for tenant in "${tenants[@]}"; do
  # Column 5 is the time in microseconds since the start of the phase, never decreasing.
  zstd -dcq "$captured/$tenant.csv.zst" |
    awk -F, -v end="$((seconds * 1000000))" '$5 < end' |
    zstd -19 --ultra -qf -o "data/$tenant.csv.zst"
  printf '%-6s %8d requests %9d bytes\n' "$tenant" \
    "$(zstd -dcq "data/$tenant.csv.zst" | wc -l)" "$(wc -c < "data/$tenant.csv.zst")"
done
