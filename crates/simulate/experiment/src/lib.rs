//! Stack files in, comparable results out.
//!
//! For: reading and checking a stack file, running every combination asked for, curves, trace
//! facts, and the result directory. Must never know: how results are drawn. Determinism: the same
//! file, traces and version give the same bytes on any number of threads.

pub mod case;
mod case_code;
pub mod characterize;
pub mod choices;
pub mod commands;
mod curves;
pub mod error;
mod folder;
pub mod foreign;
pub mod history;
pub mod info;
pub mod job;
pub mod json;
mod models;
pub mod mrc;
mod needs;
pub mod oracle;
mod pace;
mod part;
pub mod planner;
pub mod profiles;
pub mod progress;
pub mod record;
mod recorded;
pub mod result;
pub mod run;
pub mod scan;
pub mod segments;
pub mod series;
pub mod spec;
pub mod store;
pub mod stream;
mod throughput;
pub mod timed;
pub mod wa;
pub mod workload;

pub use characterize::{CharacterizeOptions, TraceChoice, VolumeRows, characterize};
pub use choices::{Choice, choices};
pub use commands::{COMMANDS, DeclaredCommand};
pub use error::ExperimentError;
pub use foreign::{ForeignLoader, ForeignPolicies};
pub use info::{InfoOptions, info};
pub use mrc::{CurveOptions, MrcOptions, mrc};
pub use oracle::{LabelOptions, Labels, labels};
pub use planner::{PlanOptions, SizeOptions, plan};
pub use progress::{OnProgress, Progress};
pub use run::{RunOptions, check, run};
pub use segments::{SegmentOptions, StackSegments, TenantSegments, segments};
pub use spec::Spec;
pub use stream::BlockStream;
pub use timed::{devices, setting};
pub use wa::{DriveOptions, TrainOptions, Trained, TrainerFactory, WaOptions, train, wa};

/// The version written into results.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
