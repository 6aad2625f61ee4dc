"""The command line `cachewright`: commands, errors and exit status.

For: reading arguments, calling the API, showing what comes back. Must never know: how a simulation
works. Exit status: 0 done, 1 the run failed, 2 the command or file was wrong. Nothing heavy is
imported before a command needs it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cyclopts import App, CycloptsError, UnusedCliTokensError

from cachewright import _native, words
from cachewright.cli import (
    characterize,
    check,
    importing,
    listing,
    mrc,
    output,
    plan,
    reproduce,
    run,
    trace,
    train,
    wa,
)

DONE, FAILED, WRONG = 0, 1, 2

app = App(
    name="cachewright",
    help="Design, simulate and run multi-tenant flash caches.",
    version=_native.__version__,
    help_format="markdown",
    suppress_keyboard_interrupt=False,
)
app.command(run.run)
app.command(run.compare)
app.command(mrc.mrc)
app.command(plan.plan)
app.command(wa.wa)
app.command(train.app)
app.command(reproduce.reproduce)
app.command(check.check)
app.command(characterize.characterize)
app.command(listing.app)
app.command(trace.app)
app.command(importing.app)
app.command(run.report)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command line and exit with its status."""
    sys.exit(status_of(sys.argv[1:] if arguments is None else arguments))


def status_of(arguments: Sequence[str]) -> int:
    """Run a command line and return its exit status; every error becomes one sentence."""
    try:
        app(list(arguments), exit_on_error=False, print_error=False, result_action="return_value")
        sys.stdout.flush()
    except CycloptsError as error:
        output.error(usage_sentence(error))
        return WRONG
    except (_native.RunError, _native.PolicyError) as error:
        output.error(str(error))
        return FAILED
    except _native.Error as error:
        output.error(str(error))
        return WRONG
    except KeyboardInterrupt:
        output.error("interrupted")
        return FAILED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except OSError as error:
        name = f"{error.filename}: " if error.filename else ""
        output.error(f"{name}{words.reason(error)}")
        return FAILED
    return DONE


def usage_sentence(error: CycloptsError) -> str:
    """Return what was wrong with the command as one sentence in lower case."""
    chain = " ".join(error.command_chain or ())
    where = f"see `cachewright {chain} --help`" if chain else "see `cachewright --help`"
    if isinstance(error, UnusedCliTokensError):
        return f"found `{' '.join(error.unused_tokens or ())}`, expected nothing more; {where}"
    text = " ".join(str(error).split()).rstrip(".").replace('"', "`")
    return f"{text[:1].lower()}{text[1:]}; {where}"
