"""Many traces as one thing: files found anywhere, a manifest of their volumes, native parts.

For: `dataset index`, `dataset convert`, and commands that take a dataset. Must never know: any
format, what a dataset is used for.
"""
