"""What is said of the traces that were read, before any table.

For: `run`, `compare`, `mrc` and `wa` alike. Must never know: what was measured.
"""

from __future__ import annotations

from collections.abc import Sequence

from cachewright import words
from cachewright.answers import DriveTenantFacts, TenantFacts
from cachewright.cli import output

EXAMPLES_SHOWN = 3


def of_tenants(tenants: Sequence[TenantFacts | DriveTenantFacts]) -> None:
    """Print which records were left out, and what the traces show that was not asked for."""
    for tenant in tenants:
        if tenant.skipped_bad:
            bad = words.counted(tenant.skipped_bad, "malformed record")
            output.note(f"{tenant.name}: {bad} skipped")
            for example in tenant.skipped_examples[:EXAMPLES_SHOWN]:
                output.note(f"  {example}")
        if tenant.volumes > 1:
            volumes = words.counted(tenant.volumes, "volume")
            output.note(
                f"{tenant.name}: {volumes} in one tenant; --by-volume (`by_volume = true` in a "
                "stack) makes each a tenant, --volume (`volume`) picks some"
            )
        for sentence in tenant.notes:
            output.note(f"{tenant.name}: {sentence}")
