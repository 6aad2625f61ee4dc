//! The steps of a machine, with those by which blocks change places.
//!
//! For: one type of step for plans and changes of places. Must never know: when a step begins.

use super::ids::ChangeId;
use cachewright_steps::{Action, Step, StepGraph};

/// What the slots do by themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlacementAction {
    /// The slots of a change of places change hands.
    Exchange(ChangeId),
    /// The blocks of a change are in their new places.
    EndChange(ChangeId),
}

/// A step of a machine.
pub type MachineStep = Step<PlacementAction>;
/// What a step of a machine does.
pub type MachineAction = Action<PlacementAction>;
/// The steps of a machine, with a note along those of a request.
pub type MachineStepGraph<N> = StepGraph<MachineStep, N>;
