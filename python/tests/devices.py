"""Tables of devices that stacks of several tests have.

For: tests whose answers are worked by hand. Must never know: tenants, caches.
"""

FIXED_DEVICES = """\
[device.cache]
model = "fixed-latency"
read = "100us"
write = "100us"
[device.backing]
model = "fixed-latency"
read = "5ms"
write = "5ms"
"""
