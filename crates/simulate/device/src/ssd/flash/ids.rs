//! Numbers of things in the back-end, a type for each.
//!
//! For: that a plane is never taken for a unit, nor a job for a transaction. Must never know: what
//! the things do. Numbers count from 0; `NONE` is no thing.

/// A number of one kind of thing.
macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// As an index.
            #[inline(always)]
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    };
}

id! {
    /// A transaction of the back-end, by its slot in the table.
    WorkId
}
id! {
    /// A block on its way to be erased.
    JobId
}
id! {
    /// A plane of the device.
    PlaneId
}
id! {
    /// A unit that does one thing at a time: a chip, or a die where dies overlap.
    UnitId
}
id! {
    /// A channel.
    ChannelId
}

impl WorkId {
    /// No transaction.
    pub const NONE: WorkId = WorkId(u32::MAX);
}

impl JobId {
    /// No job.
    pub const NONE: JobId = JobId(u32::MAX);
}

/// The number of one erase, never given twice; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EraseSerial(pub u32);

impl EraseSerial {
    /// No erase.
    pub const NONE: EraseSerial = EraseSerial(0);
}

/// A translation layer: its group of channels and its number there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LayerId {
    /// Group of channels.
    pub group: u16,
    /// Layer of the group.
    pub index: u32,
}

/// A logical page by its layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogicalPage {
    /// The layer.
    pub layer: LayerId,
    /// Page of the layer.
    pub page: u32,
}

/// A physical page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PhysicalPage {
    /// Plane of the device.
    pub plane: PlaneId,
    /// Block of the plane.
    pub block: u32,
    /// Page of the block.
    pub page: u32,
}
