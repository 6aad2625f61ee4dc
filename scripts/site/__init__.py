"""The documents as a site: which pages, what is generated for it, and how it is built.

For: `make docs` and the tests of the site. Must never know: the text of any page.
"""
