//! What a step does, and the residents it pins meanwhile.
//!
//! For: the one way to create a step. Must never know: why a step is wanted, when it begins. Units:
//! bytes, nanoseconds. Invariant: a step pins every resident it touches until it is done.

use super::ids::{ChangeId, DeviceId, RequestId, ResidentId};
use super::resident_table::ResidentTable;
use super::step_graph::{StepGraph, StepRef};
use cachewright_types::{Op, TenantId};

/// The steps of a machine.
pub type Steps = StepGraph<Step>;

/// What a step does.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// Nothing: it ends when what it waits for has ended.
    Pass,
    /// Waits until a resident has a slot.
    WaitForSlot,
    /// Lets time pass.
    Delay(u64),
    /// A command to the cache device, from a byte of a resident's slot on.
    Cache {
        /// What is done there.
        op: Op,
        /// The resident whose slot it is when the command begins.
        resident: ResidentId,
        /// Bytes of the slot left out before it.
        skip: u64,
        /// Bytes.
        length: u64,
    },
    /// The slots of a change of places change hands.
    Exchange(ChangeId),
    /// The blocks of a change are in their new places.
    EndChange(ChangeId),
    /// A command to a device.
    Device {
        /// Which one.
        device: DeviceId,
        /// What is done there.
        op: Op,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
}

/// A step: what it does and what must be known when it ends.
#[derive(Clone, Debug)]
pub struct Step {
    /// What it does.
    pub action: Action,
    /// The tenant of its command.
    pub tenant: TenantId,
    /// Its request is not answered before it ends.
    pub required: bool,
    /// It writes back a block that stays.
    pub cleaning: bool,
    /// The residents it touches.
    pub pins: Vec<ResidentId>,
}

impl Step {
    /// A step that touches no resident and that no request waits for.
    pub fn new(action: Action, tenant: TenantId) -> Step {
        Step { action, tenant, required: false, cleaning: false, pins: Vec::new() }
    }

    /// The same step, which touches these residents.
    pub fn pinning(self, pins: Vec<ResidentId>) -> Step {
        Step { pins, ..self }
    }

    /// Adds the step to those under way and pins its residents.
    pub fn add(
        self,
        steps: &mut Steps,
        residents: &mut ResidentTable,
        request: Option<RequestId>,
    ) -> StepRef {
        self.pins.iter().for_each(|resident| residents.pin(*resident));
        steps.add(self, request)
    }
}
