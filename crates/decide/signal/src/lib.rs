//! Signals: what partitioners are told of tenants besides counts and curves.
//!
//! For: numbers per step or interval that cost O(1) per access to keep. Must never know: caches,
//! devices, models, who reads them. Units are in the names.

pub mod prices;
pub mod step;

pub use prices::{Price, Prices};
pub use step::{FEATURES, Step};
