"""Pages, tables and charts of reproduced papers."""
