"""The commands of `cachewright`, each imported when it is used.

For: one list of commands with the sentence that `--help` shows. Must never know: what a command
does. A test keeps each sentence equal to the first of the command's own help.
"""

from __future__ import annotations

from collections.abc import Sequence

from cyclopts import App

from cachewright import _native

HELP = """Design, simulate and run multi-tenant flash caches.

A first look at a trace, then the best policy for it, then the whole stack in a file:

    cachewright trace info TRACE
    cachewright compare TRACE --policy lru,arc,s3-fifo --capacity 1GiB,10%wss
    cachewright run stack.toml --report

A stack is a TOML file: the cache, its tenants and their traces, and devices if times matter.
"""

# In the order in which a newcomer needs them.
COMMANDS = {
    "trace": ("trace:app", "Look at block traces and make new ones."),
    "list": ("listing:app", "List what a stack file can use, such as policies and devices."),
    "check": ("check:check", "Validate a stack file and print its settings with every default."),
    "run": ("run:run", "Replay traces, or the tenants of a stack file, through a cache."),
    "compare": ("run:compare", "Run all combinations of settings and show the best."),
    "report": (
        "report:report",
        "Write the HTML report of a result folder, or of several results side by side.",
    ),
    "view": (
        "view:view",
        "Browse the results below a folder in a browser, until interrupted.",
    ),
    "mrc": ("mrc:mrc", "Show miss-ratio curves of a stack's tenants or of one trace."),
    "plan": (
        "plan:plan",
        "Find the smallest cache that meets the tenants' goals, and how to split it.",
    ),
    "wa": ("wa:wa", "Show the write amplification of separations on a trace or a stack."),
    "train": ("train:app", "Train the models of schemes that learn."),
    "dataset": ("dataset:app", "Index and convert many traces at once."),
    "fleet": ("fleet:app", "Study many volumes together."),
    "reproduce": (
        "reproduce:reproduce",
        "Run the figures of a paper, set our numbers beside its own and judge its claims.",
    ),
    "characterize": (
        "characterize:characterize",
        "Show how a trace's requests change over time, and what kind of workload they are.",
    ),
    "observe": (
        "observe:observe",
        "Watch a volume that has no cache yet, from a stream of its requests, and recommend one.",
    ),
    "serve": (
        "serve:serve",
        "Serve the tenants' volumes over the network block device protocol (NBD) until stopped.",
    ),
    "top": (
        "top:top",
        "Show the activity of a live server by tenant, until interrupted.",
    ),
    "advise": (
        "advise:advise",
        "Report what other policies, partitioners and sizes would have achieved.",
    ),
    "explain": (
        "explain:explain",
        "Report what became of one block of a served volume: admitted, hit, evicted, and why.",
    ),
    "live": (
        "live:app",
        "Format, check, list, time, write back and repair a server's devices; reload and load it.",
    ),
    "import": ("importing:app", "Make stack files from other simulators' configurations."),
    "completion": (
        "completion:completion",
        "Print a shell's completion of commands, options and their values.",
    ),
}


def app_for(arguments: Sequence[str]) -> App:
    """Return the application; only the command that `arguments` begin with shows its own help."""
    app = App(
        name="cachewright",
        help=HELP,
        version=_native.__version__,
        help_format="markdown",
        suppress_keyboard_interrupt=False,
    )
    for place, (name, (path, text)) in enumerate(COMMANDS.items()):
        used = name in arguments[:1]
        shown = None if used else text
        app.command(f"cachewright.cli.{path}", name=name, help=shown, sort_key=place)
    return app
