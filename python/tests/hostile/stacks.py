"""Bad stack files: every table with a key that is unknown, of another kind, or out of range."""

from __future__ import annotations

from collections.abc import Iterator

from hostile.case import Case, text

TRACE = "".join(f"1,{'RW'[at % 2]},{at % 50 * 4096},4096,{at * 1000}\n" for at in range(200))
BASE = '[cache]\ncapacity = "1MiB"\n[[tenant]]\nname = "t"\ntrace = "t.csv"\n'
DEVICES = '[device.cache]\nmodel = "ram"\n[device.backing]\nmodel = "hdd-7200-2tb"\n'
SSD = (
    BASE.replace("[cache]\n", '[cache]\nblock = "8KiB"\n')
    + '[machine]\nsystem = "ssd"\n[device.ssd]\nmodel = "icache-modern"\n'
)

# What is wrong: the whole file and what the error must name.
WHOLE = {
    "empty": ("", "cache"),
    "not TOML": ("[cache\ncapacity = 1", "line"),
    "no tenant": ('[cache]\ncapacity = "1MiB"\n', "tenant"),
    "no cache": ('[[tenant]]\nname = "t"\ntrace = "t.csv"\n', "cache"),
    "no capacity": ('[cache]\n[[tenant]]\nname = "t"\ntrace = "t.csv"\n', "capacity"),
    "an unknown table": (BASE + "[cash]\nx = 1\n", "cash"),
    "an unknown key": (BASE.replace("capacity", "capasity"), "capasity"),
    "a table as a number": ("cache = 3\n" + BASE[BASE.index("[[") :], "cache"),
    "a tenant as a number": ('tenant = 3\n[cache]\ncapacity = "1MiB"\n', "tenant"),
    "a key twice": (BASE + 'trace = "u.csv"\n', "line 6"),
    "two tenants of one name": (BASE + '[[tenant]]\nname = "t"\ntrace = "t.csv"\n', "`t`"),
    "a tenant called all": (BASE.replace('"t"', '"all"'), "all"),
    "a control character in a name": (BASE.replace('"t"', '"a\\u0007b"'), "tenant[1].name"),
    "a line break in a name": (BASE.replace('"t"', '"a\\nb"'), "tenant[1].name"),
    "an empty name": (BASE.replace('"t"', '""'), "tenant[1].name"),
    "a name that leaves its folder": ('name = "../../etc/x"\n' + BASE, "name"),
    "an absolute path as name": ('name = "/etc/x"\n' + BASE, "name"),
    "a name of dots": ('name = ".."\n' + BASE, "name"),
    "a trace that is absent": (BASE.replace("t.csv", "u.csv"), "u.csv"),
    "a trace that is the stack": (BASE.replace("t.csv", "s.toml"), "s.toml"),
    "deep arrays": ("x = " + "[" * 2000 + "]" * 2000 + "\n" + BASE, "s.toml"),
}

# A key and a value that it must refuse; the error names the key.
KEYS = {
    "cache.capacity": [
        "0",
        "-1",
        "3",
        "1.5",
        "true",
        '"1"',
        '"-1MiB"',
        '"0B"',
        '"1e30GiB"',
        '"NaN"',
        '"101%wsx"',
        '"99999999999999999999MiB"',
        '"-5%wss"',
        '"0%wss"',
        '"16EiB"',
        "[1]",
        '""',
    ],
    "cache.block": ['"0B"', '"3KiB"', '"1EiB"', "4096", '"512"', "false"],
    "cache.policy": [
        '"lrx"',
        "3",
        '{ name = "lru", x = 1 }',
        '{ name = "s3-fifo", small_share = 2.0 }',
        '{ name = "s3-fifo", small_share = nan }',
        "{ size = 3 }",
        '""',
        '"rc-rnn"',
    ],
    "cache.partition": ['"shard"', '"icache"', '{ name = "hull", x = 1 }', "[]", '"costpii"'],
    "cache.write": ['"write-bach"', "1"],
    "cache.trim": ['"maybe"', "1"],
    "replay.interval": ['"1"', '"-1s"', "5", '"1e400s"', '"forever"'],
    "replay.windows": ["-1", "100000000000", '"3"', "1.5"],
    "replay.warmup": ['"-1s"', '"soon"', "3"],
    "replay.loop": ['"ajar"', "1"],
    "replay.queue_depth": ["0", "-1", "100000000000", '"x"'],
    "replay.profile_share": ["1.5", "nan", "-1.0", '"x"'],
    "replay.no_such_key": ["1"],
    "seed": ["-1", '"x"', "1.5", "true"],
    "tenant.weight": ["-1.0", "nan", "inf", '"x"'],
    "tenant.goal_hit_ratio": ["1.5", "-0.1", "nan", '"x"'],
    "tenant.time_scale": ["0.0", "-1.0", "1e300", "nan", "inf", '"x"'],
    "tenant.start": ['"-1s"', '"x"', "3"],
    "tenant.sample": ['"0%"', '"101%"', '"-1%"', "2.0", '"x"'],
    "tenant.format": ['"alibabba"', "3"],
    "tenant.on_bad_record": ['"ignore"', "1"],
    "tenant.volume": ['"nine"', "3"],
    "tenant.no_such_key": ["1"],
    "device.cache.model": ['"floppy"', "1"],
    "device.cache.count": ["0", "-1", "100000000000"],
    "device.backing.read": ['"fast"'],
    "machine.system": ['"abacus"', "1"],
    "machine.spare_blocks": ["-1", '"x"'],
    "machine.no_such_key": ["1"],
    "device.ssd.channels": ["0", "-1", "100000000", '"x"'],
    "device.ssd.page": ['"0B"', '"3KiB"', '"1EiB"'],
    "device.ssd.over_provisioning": ["-0.1", "nan", "1e9"],
    "device.ssd.read_time": ['"-1us"', '"x"', "3"],
    "flash.op": ['"-1%"', '"x"', "nan"],
    "flash.separation": ['"nine"', "3"],
}


def cases() -> Iterator[Case]:
    """Give every bad stack file."""
    for what, (content, word) in WHOLE.items():
        yield _case(f"stack: {what}", text(content), word)
    yield _case("stack: not UTF-8", b"\xff\xfe[cache]", "UTF-8")
    yield Case("stack: absent", {}, ("run", "absent.toml"), ("absent.toml",))
    yield Case("stack: a folder", {}, ("run", "d.toml"), ("d.toml",), folders=("d.toml",))
    for key, values in KEYS.items():
        for value in values:
            yield _case(f"{key} = {value}", text(_with(key, value)), key.split(".")[-1])


def _case(name: str, content: bytes, word: str) -> Case:
    files = {"s.toml": content, "t.csv": text(TRACE)}
    return Case(name, files, ("run", "{}"), (word,))


def _with(key: str, value: str) -> str:
    """Return a stack that is right but for one key."""
    table, _, name = key.rpartition(".")
    if not table:
        return f"{name} = {value}\n" + BASE
    if table == "tenant":
        return BASE + f"{name} = {value}\n"
    if table == "cache":
        return BASE.replace("[cache]\n", f"[cache]\n{name} = {value}\n").replace(
            'capacity = "1MiB"\n', "" if name == "capacity" else 'capacity = "1MiB"\n'
        )
    if table == "replay":
        return BASE + f"[replay]\n{name} = {value}\n"
    if table == "flash":
        return BASE + f"[flash]\n{name} = {value}\n"
    if table == "machine" or table.startswith("device.ssd"):
        stack = SSD if table == "device.ssd" or name == "no_such_key" else BASE + DEVICES
        if table == "machine":
            stack = stack.replace('[machine]\nsystem = "ssd"\n', "") if name == "system" else stack
            stack = stack if "[machine]" in stack else stack + "[machine]\n"
            return stack.replace("[machine]\n", f"[machine]\n{name} = {value}\n")
        return stack + f"{name} = {value}\n"
    own = f"[{table}]\n"
    stack = BASE + DEVICES
    if name == "model":
        return stack.replace('model = "ram"\n', "").replace(own, f"{own}{name} = {value}\n")
    return stack.replace(own, f"{own}{name} = {value}\n")
