"""The laboratory of Cachewright: papers reproduced, their claims judged, our own schemes judged.

The product, `cachewright`, imports this package in one place, the command `reproduce`.
"""
