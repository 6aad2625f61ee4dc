//! The live server of a stack file, and the tools for its devices.
//!
//! For: `cachewrightd`, `cachewright serve` and `cachewright live`: a checked stack becomes a cache
//! with the decisions of its simulation, devices that are opened and locked, and a loop that ends
//! in order. Must never know: the simulator, how requests are carried out. Units: bytes, blocks.

mod abandoned;
mod changes;
mod checking;
mod control_signals;
mod curves;
mod devices;
mod division;
mod error;
mod failures;
mod goals;
mod history;
mod holding;
mod honoured;
mod hour;
mod identity;
mod ids;
mod layout;
mod lines;
mod listeners;
pub mod load;
mod manager;
mod memory;
mod models;
pub mod monitor;
pub mod offline;
mod plan;
mod present;
mod reading;
mod recording;
mod recordings;
mod scratch;
mod secure;
mod server;
mod status;
mod volumes;
mod watch;

pub use checking::check_start;
pub use control_signals::ControlSignals;
pub use error::LiveError;
pub use history::Ahead;
pub use identity::Accepted;
pub use lines::{OperatorLine, Severity};
pub use plan::{LivePlan, StackVolume};
pub use scratch::choose_scratch_folder;
pub use server::{Server, ServerWish, Stopped};
