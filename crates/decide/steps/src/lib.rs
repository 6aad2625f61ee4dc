//! Steps: a plan becomes commands that wait for each other.
//!
//! For: carrying out the plans of a cache in the same order in simulation and in service. What a
//! plan decides becomes steps that depend on each other: reads, writes, fills, write-backs, trims.
//! A step may fail, and what needs it is told. Must never know: devices, time, files, how a step is
//! carried out. Units: bytes, blocks. A [`Placement`] chooses where blocks lie; a note goes along
//! the steps of each request (the simulator's parts of a response time, nothing in service).

mod backings;
mod commands;
pub mod failure;
pub mod ids;
mod items;
mod leaving;
mod open_requests;
pub mod pins;
pub mod placement;
mod plan_to_steps;
mod purpose;
mod resident_names;
pub mod resident_table;
pub mod rules;
mod state;
pub mod step;
pub mod step_graph;
mod steps;
mod work_table;
mod write_backs;

pub use failure::{Damage, FailedBlock, Failure};
pub use ids::{DeviceId, ResidentId, SlotId, StepId};
pub use open_requests::RequestAnswer;
pub use pins::Pins;
pub use placement::Placement;
pub use resident_table::{ResidentRef, ResidentTable};
pub use rules::{Decision, Fill, Rules};
pub use state::{Graph, StepState};
pub use step::{Action, Step};
pub use step_graph::{Outcome, StepGraph, StepRef};
pub use steps::{DirtyBlock, Ready, Steps};
pub use work_table::ResidentSteps;
