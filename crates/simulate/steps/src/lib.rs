//! Steps: a plan becomes commands that wait for each other, in the same order in simulation and in
//! service.
//!
//! What a plan decides becomes steps that depend on each other (`plan_to_steps.rs`): reads, writes,
//! fills, write-backs, trims. A step may fail, and what needs it is told. A [`Placement`] chooses
//! where blocks lie; a note goes along the steps of each request (the simulator's parts of a
//! response time, nothing in service). Units: bytes, blocks.

mod backings;
mod plan_to_steps;
mod residents;
mod step_graph;
mod steps;

pub use plan_to_steps::{Decision, Fill, Rules};
pub use residents::{Placement, ResidentRef, ResidentSteps, ResidentTable};
pub use step_graph::{
    Action, DeviceId, Outcome, ResidentId, SlotId, Step, StepGraph, StepId, StepRef,
    TouchedResidents,
};
pub use steps::{
    Damage, DirtyBlock, FailedBlock, Failure, Graph, Ready, RequestAnswer, StepState, Steps,
};
