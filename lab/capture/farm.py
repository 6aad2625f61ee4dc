"""A build farm: gcc behind ccache, with make and git, several builds side by side.

For: one application. Must never know: how a trace is recorded. Projects are generated C with
headers of their own; a build clones a branch, compiles it and is removed. All builds share one
cache of objects, which is smaller than what they make. Units: MiB in settings.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from application import Application, Zipf

MAKEFILE = """OBJECTS := $(patsubst %.c,%.o,$(wildcard *.c))
all: program
program: $(OBJECTS)
\tgcc -o $@ $^
%.o: %.c
\tccache gcc -g3 -O0 -c -o $@ $<
"""
HEADER = """#pragma once
{lines}
static inline int h{number}(int x) {{ return x * {number} + {tag}; }}
"""
USED = 6


@dataclass
class Farm(Application):
    """Workers that build branches of projects; popular branches come back more often."""

    name = "farm"
    projects: int = 4
    branches: int = 6
    modules: int = 60
    headers: int = 40
    lines: int = 120
    altered: float = 0.12
    alpha: float = 0.8
    workers: int = 3
    cache_mib: int = 96

    def git(self, folder: Path, *arguments: str) -> None:
        """Run git with an identity of its own."""
        identity = ["-c", "user.name=farm", "-c", "user.email=farm@example.org"]
        subprocess.run(
            ["git", *identity, *arguments], check=True, cwd=folder, env=self.environment()
        )

    def environment(self) -> dict[str, str]:
        """Return the environment of git and of builds."""
        return os.environ | {
            "CCACHE_DIR": str(self.data / "ccache"),
            "CCACHE_MAXSIZE": f"{self.cache_mib}Mi",
            "CCACHE_NOCOMPRESS": "1",
            "CCACHE_COMPILERCHECK": "none",
            "CCACHE_BASEDIR": str(self.data),
            "CCACHE_NOHASHDIR": "1",
            "CCACHE_TEMPDIR": str(self.data / "temporary"),
            "GIT_CONFIG_GLOBAL": os.devnull,
            "HOME": str(self.place.scratch),
        }

    def module(self, number: int, rng: random.Random) -> str:
        """Return a C file that includes headers and calls what they define."""
        used = rng.sample(range(self.headers), USED)
        head = "".join(f'#include "h{one}.h"\n' for one in used)
        head += "#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n"
        steps = []
        for line in range(self.lines):
            call = f"h{rng.choice(used)}(x + {rng.randrange(999)})"
            steps.append(f"int m{number}_{line}(int x) {{ return {call}; }}")
        end = 'int main(void) { puts("done"); return 0; }\n' if number == 0 else ""
        return head + "\n".join(steps) + "\n" + end

    def header(self, number: int, rng: random.Random) -> str:
        """Return a header."""
        lines = [f"#define V{number}_{line} {rng.randrange(10**6)}" for line in range(self.lines)]
        return HEADER.format(lines="\n".join(lines), number=number, tag=rng.randrange(999))

    def write(self, folder: Path, share: float, rng: random.Random) -> None:
        """Write a share of a project's files."""
        for number in range(self.modules):
            if rng.random() < share:
                (folder / f"m{number}.c").write_text(self.module(number, rng))
        for number in range(self.headers):
            # A header that changes compiles what includes it again.
            if rng.random() < share * share:
                (folder / f"h{number}.h").write_text(self.header(number, rng))

    def prepare(self) -> None:
        """Make the projects' repositories and build each once."""
        rng = random.Random(self.place.seed)
        for name in ("repositories", "builds", "temporary"):
            (self.data / name).mkdir()
        for project in range(self.projects):
            folder = self.data / "repositories" / f"p{project}"
            folder.mkdir()
            self.git(folder, "init", "-q", "-b", "b0")
            (folder / "Makefile").write_text(MAKEFILE)
            for branch in range(self.branches):
                if branch:
                    self.git(folder, "checkout", "-q", "-b", f"b{branch}")
                self.write(folder, self.altered if branch else 1.0, rng)
                self.git(folder, "add", ".")
                self.git(folder, "commit", "-q", "--allow-empty", "-m", f"b{branch}")
            self.build(project, 0, "first")

    def run(self) -> None:
        """Let the workers build."""
        self.fork(self.workers, self.work)

    def work(self, number: int, rng: random.Random) -> None:
        """Build one branch after another."""
        popular = Zipf(self.projects * self.branches, self.alpha, self.place.seed)
        while self.left() > 0:
            project, branch = divmod(popular.draw(rng), self.branches)
            self.build(project, branch, f"w{number}")

    def build(self, project: int, branch: int, name: str) -> None:
        """Clone a branch, build it and throw the build away."""
        folder = self.data / "builds" / name
        source = self.data / "repositories" / f"p{project}"
        clone = ["clone", "-q", "--no-hardlinks", "-b", f"b{branch}", str(source), str(folder)]
        self.git(self.data, *clone)
        subprocess.run(
            ["make", "-s"],
            check=True,
            cwd=folder,
            env=self.environment(),
            stdout=subprocess.DEVNULL,
        )
        shutil.rmtree(folder)
