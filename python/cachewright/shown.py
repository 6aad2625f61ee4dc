"""What answers are in a notebook: a cell that ends with one shows its tables, not its fields."""

from __future__ import annotations


class Shown:
    """An answer that a notebook shows as HTML."""

    def _repr_html_(self) -> str:
        from cachewright.report import notebook

        return notebook.of_answer(self)
