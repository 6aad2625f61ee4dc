"""`python -m cachewright`: the command line.

For: running without the installed script. Must never know: any command.
"""

from cachewright.cli import main

if __name__ == "__main__":
    main()
