"""The command `completion`: what a shell needs to complete commands and options.

For: bash, zsh and fish. Must never know: any command; the application lists them.
"""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from cachewright.cli import output

PROGRAM = "cachewright"
Shell = Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell.")]


def completion(shell: Shell, /) -> None:
    """Print a shell's completion of commands and options.

    In bash, `source <(cachewright completion bash)` enables it. In zsh and fish the text belongs in
    a file of the shell's folder of completions.
    """
    from cachewright.cli.app import app_for

    app = app_for(())
    output.say(app.generate_completion(prog_name=PROGRAM, shell=shell).rstrip())
