"""Losses of power under the live server: devices that lose, a client, and what may be read after.

Used by `scripts/live_losses.py`. Nothing here is shared with the server, its client or its tests.
"""
