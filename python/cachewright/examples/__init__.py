"""Policies written in Python, to read and to start from."""

from cachewright.examples.verdicts import FifoCache, LruCache

__all__ = ["FifoCache", "LruCache"]
