//! The live server of a stack file, and the tools for its devices.
//!
//! A checked stack becomes a cache with the decisions of its simulation, devices that are opened
//! and locked, and a loop that ends in order: `cachewrightd`, `cachewright serve`, `cachewright
//! live`.

mod changes;
mod checking;
mod devices;
mod division;
mod error;
pub mod explain;
mod history;
mod identity;
pub mod load;
pub mod machine;
mod memory;
pub mod monitor;
pub mod offline;
mod operator;
mod plan;
mod planned_server;
mod recordings;
pub mod rehearsal;
mod server;
mod status;
mod trial;

pub use checking::check_start;
pub use error::LiveError;
pub use history::Ahead;
pub use identity::Accepted;
pub use operator::ControlSignals;
pub use operator::{OperatorLine, Severity};
pub use plan::choose_scratch_folder;
pub use plan::{LivePlan, StackVolume};
pub use server::{Server, ServerCommand, Stopped};
