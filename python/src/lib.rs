//! PyO3 glue: no logic.
