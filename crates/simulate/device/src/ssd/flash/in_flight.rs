//! What all parts of the back-end work on: transactions, time and counters.
//!
//! For: one argument where a part needs them. Must never know: what any part does. Units:
//! nanoseconds, pages.

use super::calendar::Calendar;
use super::counters::Counters;
use super::work::TransactionTable;

/// Transactions under way, the calendar and the counters.
#[derive(Clone, Debug, Default)]
pub struct FlashInFlight {
    /// Transactions that are not done.
    pub work: TransactionTable,
    /// The time, and events to come.
    pub calendar: Calendar,
    /// Operations counted.
    pub counters: Counters,
}
