//! The flash of a drive: channels, chips, dies and planes under simulated time.
//!
//! For: page-sized transactions in, completions out, with mapping, scheduling, cleaning and the
//! time of each. Must never know: the host's protocol, caches, files. Units: pages, nanoseconds.
//! Invariants (audited): each transaction completes exactly once. A page is read where its newest
//! copy is or was when the read began. Nothing is programmed to a block before its erase. A block
//! is erased only when no read of it is left. Source: MQSim (FAST'18) for the model; its defects
//! are not copied.
//!
//! [`Backend`] consists of three parts. The [`translator`] finds where pages lie. The [`cleaner`]
//! carries out the translation layer's other decisions. Both give reads, programs and erases to the
//! [`executor`]. Its [`scheduler`] chooses what units do next, and the [`hardware`] does it. No
//! part knows those before it.

mod address_space;
mod backend;
pub mod bus;
mod calendar;
mod channel;
mod check;
mod class;
mod cleaner;
pub mod counters;
pub mod error;
mod executor;
mod hardware;
mod ids;
mod in_flight;
mod jobs;
mod layer_maker;
mod load;
mod map_cache;
mod map_table;
pub mod order;
mod page_map;
pub mod params;
mod pending;
mod predictor;
pub mod priority;
mod queues;
mod request;
mod scheduler;
mod sectors;
mod shape;
pub mod stats;
mod timing;
mod translator;
mod unit;
mod watch;
mod work;
mod work_time;

pub use backend::Backend;
pub use bus::Bus;
pub use class::{QueueClass, UnitStage};
pub use counters::Counters;
pub use error::FlashError;
pub use order::PlaneOrder;
pub use params::{
    Cell, CellKind, Collect, FlashParams, FlashSchedule, InitialFill, Joules, MapCache,
    PlaneLayout, Unwritten,
};
pub use priority::Priority;
pub use request::{DoneTransaction, PageOp, Transaction};
pub use shape::FlashShape;
pub use stats::{BusyTimes, FlashStats, Waits};
