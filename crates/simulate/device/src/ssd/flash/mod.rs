//! The flash of a drive: channels, chips, dies and planes under simulated time.
//!
//! [`Backend`] takes page-sized transactions and gives completions. It consists of three parts. The
//! [`translator`] finds where pages lie. The [`cleaner`] carries out the translation layer's other
//! decisions. Both give reads, programs and erases to the [`executor`]. Its [`scheduler`] chooses
//! what units do next, and the [`hardware`] does it. No part knows those before it.
//!
//! Invariants (audited): each transaction completes exactly once. A page is read where its newest
//! copy is or was when the read began. Nothing is programmed to a block before its erase. A block
//! is erased only when no read of it is left. Units: pages, nanoseconds. Source: MQSim (FAST'18)
//! for the model; its defects are not copied.

mod address_space;
mod backend;
mod cleaner;
mod executor;
mod geometry;
mod hardware;
mod page_map;
pub mod params;
mod scheduler;
pub mod stats;
mod translator;
mod work;

pub use backend::Backend;
pub use geometry::{FlashShape, PlaneOrder};
pub use hardware::Bus;
pub use params::{
    Cell, CellKind, Collect, FlashError, FlashParams, FlashSchedule, InitialFill, Joules, MapCache,
    PlaneLayout, Priority, Unwritten,
};
pub use scheduler::{QueueClass, UnitStage};
pub use stats::{BusyTimes, Counters, FlashStats, Waits};
pub use work::{DoneTransaction, PageOp, Transaction};
