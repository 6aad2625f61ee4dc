"""Plans for many hosts: which volume goes on which host, so that all goals are kept.

For: `plan --fleet`. `fleet_file` reads what is wanted, `demand` reads needs off curves, `problem`
says what fits, `search` packs, `moves` repairs, `host_files` writes, `judged` replays. Must never
know: how curves are measured, how a cache works. Units: blocks, bytes, nanoseconds.
"""
