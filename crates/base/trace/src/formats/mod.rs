//! One module per format, and the table of them.

