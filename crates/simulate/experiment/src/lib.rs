//! Stack files in, comparable results out.
//!
//! Reads and checks a stack file, runs every combination asked for, measures curves, and tells what
//! a trace holds. Determinism: the same file, traces and version give the same bytes on any number
//! of threads.

pub mod answers;
pub mod case;
pub mod characterize;
pub mod commands;
mod continued;
pub mod error;
pub mod folder;
pub mod foreign;
pub mod info;
pub mod job;
pub mod json;
mod models;
pub mod mrc;
pub mod needs;
pub mod observe;
pub mod oracle;
pub mod planner;
pub mod profiles;
pub mod progress;
pub mod record;
pub mod run;
pub mod segments;
pub mod spec;
pub mod timed;
pub mod wa;
pub mod workload;

pub use characterize::{CharacterizeOptions, TraceChoice, VolumeRows, characterize};
pub use commands::{COMMANDS, DeclaredCommand};
pub use error::ExperimentError;
pub use foreign::{ForeignLoader, ForeignPolicies};
pub use info::{InfoOptions, info};
pub use mrc::{CurveOptions, MrcOptions, mrc};
pub use needs::{Choice, choices};
pub use observe::{Observation, ObserveOptions, ObservedSource, Observer};
pub use oracle::{LabelOptions, Labels, labels};
pub use planner::{PlanOptions, SizeOptions, plan};
pub use progress::{OnProgress, Progress};
pub use run::{RunOptions, check, run};
pub use segments::{SegmentOptions, StackSegments, TenantSegments, segments};
pub use spec::Spec;
pub use spec::device::{devices, setting};
pub use wa::{DriveOptions, TrainOptions, Trained, TrainerFactory, WaOptions, train, wa};

/// The version written into results.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
