"""Records of `registry`, generated: see `cachewright.answers`."""

from __future__ import annotations

from cachewright.record import Record


class SchemeEntry(Record):
    """A policy, partitioner, layout, characterizer, separation or reclaim policy."""

    # Its name in a stack file.
    name: str
    # What it does, in one sentence.
    doc: str
    # Where it comes from.
    source: str
    # What it requires beside the requests.
    needs: tuple[str, ...]
    # Its settings.
    settings: tuple[SettingEntry, ...]


class SettingEntry(Record):
    """A setting of a scheme, device or machine, or an option of a trace format."""

    # Its key, in a stack file or among the options of a format.
    name: str
    # What it means, in one sentence.
    doc: str
    # Unit of the value; `bytes` and `time` are written with their own.
    unit: str
    # Value where the key is absent, as text of a stack file; empty where there is none.
    default: str
    # What is accepted, in words.
    accepted: str
    # Where the default or the meaning comes from.
    source: str


class NamedSchemeEntry(Record):
    """A scheme of a paper, or one of ours, and how a stack file asks for it."""

    # The name that people use.
    name: str
    # What it does, in one sentence.
    doc: str
    # The paper that describes it, or `ours`.
    source: str
    # Keys of a stack file and the value of each, as after `--set`.
    keys: dict[str, str]
    # The stack file that runs it; empty where there is none.
    spec: str


class FormatEntry(Record):
    """A trace format."""

    # Its name.
    name: str
    # Its records and their units, in one sentence.
    doc: str
    # Where it comes from.
    source: str
    # Always empty: a format requires nothing.
    needs: tuple[str, ...]
    # Options of reading.
    settings: tuple[SettingEntry, ...]
    # Whether files of the format can be written too.
    writes: bool
    # How the names of written files end.
    suffixes: tuple[str, ...]
    # Options of writing.
    write_settings: tuple[SettingEntry, ...]
