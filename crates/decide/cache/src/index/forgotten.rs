//! Addresses of ids that the next sweep of an index will find forgotten: a few of them.
//!
//! For: chains that are loaded ahead. Must never know: ids, buckets.

use super::BlockAddress;

/// Addresses whose chains are loaded ahead: a few of those that are found.
#[derive(Clone, Debug, Default)]
pub(super) struct Forgotten {
    addresses: [BlockAddress; 4],
    count: usize,
}

impl Forgotten {
    /// Notes an address; one too many takes the place of the last.
    #[inline(always)]
    pub(super) fn note(&mut self, address: BlockAddress) {
        let last = self.addresses.len() - 1;
        self.addresses[self.count.min(last)] = address;
        self.count = (self.count + 1).min(last + 1);
    }

    /// The addresses noted.
    #[inline(always)]
    pub(super) fn addresses(&self) -> impl Iterator<Item = BlockAddress> + '_ {
        self.addresses.iter().take(self.count).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_types::TenantId;

    #[test]
    fn four_forgotten_addresses_are_noted_and_then_the_last_gives_way() {
        let noted = |count: u64| {
            let mut forgotten = Forgotten::default();
            for number in 1..=count {
                forgotten.note(BlockAddress { tenant: TenantId(2), number });
            }
            forgotten.addresses().map(|address| address.number).collect::<Vec<u64>>()
        };
        assert!(noted(0).is_empty());
        assert_eq!(noted(2), [1, 2]);
        assert_eq!(noted(4), [1, 2, 3, 4]);
        assert_eq!(noted(6), [1, 2, 3, 6]);
    }
}
