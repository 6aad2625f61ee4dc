//! What a step does, and the residents it pins meanwhile.
//!
//! For: the one way to describe a step. Must never know: why a step is wanted, when it begins.
//! Units: bytes. Invariant: a step pins every resident it touches until it is done.

use crate::ids::{DeviceId, ResidentId};
use crate::pins::Pins;
use cachewright_types::{Op, TenantId};

/// What a step does; `X` is what a placement does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action<X> {
    /// Nothing: it ends when what it waits for has ended.
    Pass,
    /// Waits until a resident has a slot.
    WaitForSlot,
    /// The cache decides about the request.
    Decide,
    /// A command to the cache device, from a byte of a resident's slot on.
    Cache {
        /// Read or write.
        op: Op,
        /// The resident whose slot it is when the command begins.
        resident: ResidentId,
        /// Bytes of the slot left out before it.
        skip: u64,
        /// Bytes.
        length: u64,
    },
    /// Fetched blocks are put on the cache device, in the slots from a resident's on.
    Fill {
        /// The first of the residents.
        resident: ResidentId,
        /// Bytes.
        length: u64,
    },
    /// A command to a device.
    Device {
        /// The device.
        device: DeviceId,
        /// What is done there.
        op: Op,
        /// First byte.
        offset: u64,
        /// Bytes.
        length: u64,
    },
    /// A step of the placement.
    Placement(X),
}

/// A step: what it does and what must be known when it ends.
#[derive(Clone, Debug)]
pub struct Step<X> {
    /// What it does.
    pub action: Action<X>,
    /// The tenant of its command.
    pub tenant: TenantId,
    /// The number of the decision it belongs to: that of a plan, or of the last one before it.
    pub decision: u64,
    /// Its request is not answered before it ends.
    pub required: bool,
    /// It writes back a block that stays.
    pub cleaning: bool,
    /// The residents it touches.
    pub pins: Pins,
}

impl<X> Step<X> {
    /// A step that touches no resident and that no request waits for.
    pub fn new(action: Action<X>, tenant: TenantId) -> Step<X> {
        let (decision, required, cleaning) = (0, false, false);
        Step { action, tenant, decision, required, cleaning, pins: Pins::NONE }
    }

    /// The same step, which touches these residents.
    pub fn pinning(self, pins: Pins) -> Step<X> {
        Step { pins, ..self }
    }

    /// The same step, of a decision.
    pub fn of_decision(self, decision: u64) -> Step<X> {
        Step { decision, ..self }
    }
}
