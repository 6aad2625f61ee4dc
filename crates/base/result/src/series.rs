//! Rows of time series that stand in a document.
//!
//! For: `series_rows`. Must never know: Parquet files, which hold the same columns.

/// A row of the time series. Columns: case, window, end of the window in nanoseconds, tenant
/// (4294967295 for all), accesses, hits, blocks held, quota in blocks, state.
///
/// States are 0 (none), 1 (supply), 2 (demand) and 3 (stable).
pub type SeriesRow = (u32, u32, u64, u32, u64, u64, u64, u64, u8);
