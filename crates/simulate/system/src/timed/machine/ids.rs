//! Numbers of what a machine keeps in tables, each kind as a type of its own.
//!
//! For: an index that cannot be used in the table of another kind. Must never know: what the tables
//! hold. Units: counts. Tables store "none" in the number itself ([`SlotId::NONE`]), so that an
//! entry takes four bytes; outside a table it is an `Option`.

/// Declares kinds of index.
macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident,)+) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        #[allow(dead_code, reason = "not every kind is stored, or left out")]
        impl $name {
            /// No number, as tables store it.
            pub const NONE: $name = $name(u32::MAX);

            /// The number of the entry at `index`.
            #[inline]
            pub fn new(index: usize) -> $name {
                debug_assert!(index < u32::MAX as usize, "a table has fewer entries");
                $name(index as u32)
            }

            /// The place in its table.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The number, unless it is [`Self::NONE`].
            #[inline]
            pub fn present(self) -> Option<$name> {
                (self.0 != u32::MAX).then_some(self)
            }
        }
    )+};
}

ids! {
    /// A slot: the place of one block on the cache device.
    SlotId,
    /// A pool of channels that give out slots together.
    PoolId,
    /// A channel, or a group that a drive shows as one.
    ChannelId,
    /// A block's stay on the cache device; used again when it is over.
    ResidentId,
    /// A step under way; used again when it is done.
    StepId,
    /// A request under way; used again when it is answered.
    RequestId,
    /// A change of places under way.
    ChangeId,
    /// A device: the cache device, then the backing devices.
    DeviceId,
}

impl DeviceId {
    /// The cache device.
    pub const CACHE: DeviceId = DeviceId(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn none_is_no_number_and_every_other_is_its_index() {
        assert_eq!(SlotId::NONE.present(), None);
        for index in [0, 1, 70_000] {
            let id = SlotId::new(index);
            assert_eq!((id.index(), id.present()), (index, Some(id)));
        }
        assert_eq!(std::mem::size_of::<ResidentId>(), 4);
    }
}
