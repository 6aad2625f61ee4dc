//! What an SSD is made of: its parameters, their checks, and what the parts make of them.
//!
//! For: the one table from which stack files, errors and docs come ([`SsdParams`]), the refusal of
//! impossible drives, and the settings of the flash back-end. Must never know: stack files. Units:
//! bytes, nanoseconds, counts.

mod check;
mod flash;
mod kinds;
mod priorities;
mod table;

pub use crate::ssd::flash::CellKind;
pub use cachewright_types::declare::{Declared, Scheme};
pub use kinds::{
    AddressableBytes, Arbitration, ChannelGroups, ChannelTiming, FillMethod, Interface,
    MapLocation, MapSharing, PlaneLetters, Suspend, UnwrittenReads,
};
pub use priorities::Priorities;
pub use table::SsdParams;
