//! The shape of a flash device, the numbers of its parts, and the order in which pages visit
//! planes.
//!
//! Numbers count from 0, a type for each kind of thing, so that a plane is never taken for a unit;
//! `NONE` is no thing. An order is one of the 24 static allocation schemes (CWDP, PDWC and so on),
//! written as four letters: channel, way (chip of a channel), die, plane; the first changes
//! fastest. Source of the orders: Tavakkol et al., MQSim, FAST'18, section 4.4; Jung and Kandemir,
//! HotStorage'12.

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
/// Planes of a die that one command may address at most.
pub const MAX_PLANES: u32 = 16;

/// How many of what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FlashShape {
    /// Channels.
    pub channels: u32,
    /// Chips on a channel.
    pub chips_per_channel: u32,
    /// Dies of a chip.
    pub dies_per_chip: u32,
    /// Planes of a die.
    pub planes_per_die: u32,
    /// Erase blocks of a plane.
    pub blocks_per_plane: u32,
    /// Pages of an erase block.
    pub pages_per_block: u32,
    /// Bytes of data in a page.
    pub page_bytes: u32,
    /// Bytes of a sector; a page holds at most 64.
    pub sector_bytes: u32,
}

impl FlashShape {
    /// Planes of the device.
    pub fn planes(&self) -> u32 {
        self.dies() * self.planes_per_die
    }

    /// Dies of the device.
    pub fn dies(&self) -> u32 {
        self.chips() * self.dies_per_chip
    }

    /// Chips of the device.
    pub fn chips(&self) -> u32 {
        self.channels * self.chips_per_channel
    }

    /// Pages of a plane.
    pub fn plane_pages(&self) -> u32 {
        self.blocks_per_plane * self.pages_per_block
    }
}

/// One of four coordinates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Axis {
    Channel,
    Way,
    Die,
    Plane,
}

/// Four coordinates, the fastest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaneOrder([Axis; 4]);

impl PlaneOrder {
    /// Channel, way, die, plane: neighbours are as far apart as they can be.
    pub const CWDP: PlaneOrder = PlaneOrder([Axis::Channel, Axis::Way, Axis::Die, Axis::Plane]);

    /// The scheme of four letters in either case; nothing if a letter is missing or unknown.
    pub fn parse(letters: &str) -> Option<PlaneOrder> {
        let axes: Option<Vec<Axis>> = letters
            .chars()
            .map(|letter| match letter.to_ascii_lowercase() {
                'c' => Some(Axis::Channel),
                'w' => Some(Axis::Way),
                'd' => Some(Axis::Die),
                'p' => Some(Axis::Plane),
                _ => None,
            })
            .collect();
        let axes: [Axis; 4] = axes?.try_into().ok()?;
        let all = [Axis::Channel, Axis::Way, Axis::Die, Axis::Plane];
        all.iter().all(|axis| axes.contains(axis)).then_some(PlaneOrder(axes))
    }

    /// The four letters.
    pub fn word(&self) -> String {
        let letter = |axis: &Axis| match axis {
            Axis::Channel => 'c',
            Axis::Way => 'w',
            Axis::Die => 'd',
            Axis::Plane => 'p',
        };
        self.0.iter().map(letter).collect()
    }

    /// The planes of some channels in this order, as numbers that count planes within dies, dies
    /// within chips, chips within channels.
    pub fn planes(&self, shape: &FlashShape, channels: &[u32]) -> Vec<u32> {
        let size = |axis: Axis| match axis {
            Axis::Channel => channels.len() as u32,
            Axis::Way => shape.chips_per_channel,
            Axis::Die => shape.dies_per_chip,
            Axis::Plane => shape.planes_per_die,
        };
        let count: u32 = self.0.iter().map(|axis| size(*axis)).product();
        let plane = |index: u32| {
            let (mut rest, mut coordinates) = (index, [0_u32; 4]);
            for axis in self.0 {
                coordinates[axis as usize] = rest % size(axis);
                rest /= size(axis);
            }
            let [channel, way, die, plane] = coordinates;
            let chip = channels[channel as usize] * shape.chips_per_channel + way;
            (chip * shape.dies_per_chip + die) * shape.planes_per_die + plane
        };
        (0..count).map(plane).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssd::flash::params::FlashParams;

    #[test]
    fn consecutive_pages_follow_the_letters() {
        let shape = FlashParams::mqsim().shape;
        let channels: Vec<u32> = (0..8).collect();
        let cwdp = PlaneOrder::CWDP.planes(&shape, &channels);
        assert_eq!(cwdp[..3], [0, 16, 32], "channels of 16 planes first");
        assert_eq!(cwdp[8], 4, "then the second chip of the first channel");
        assert_eq!((cwdp[32], cwdp[64]), (2, 1), "then its second die, then the second plane");
        let pdwc = PlaneOrder::parse("PDWC").map(|order| order.planes(&shape, &channels));
        assert_eq!(pdwc, Some((0..128).collect()));
    }

    #[test]
    fn all_orders_visit_every_plane_once() {
        let shape = FlashParams::mqsim().shape;
        let mut count = 0;
        for index in 0..256_usize {
            let letters: String =
                (0..4).map(|at| ['c', 'w', 'd', 'p'][index >> (2 * at) & 3]).collect();
            let Some(order) = PlaneOrder::parse(&letters) else { continue };
            assert_eq!(order.word(), letters);
            let mut planes = order.planes(&shape, &[1, 5]);
            planes.sort_unstable();
            let expected: Vec<u32> = (16..32).chain(80..96).collect();
            assert_eq!(planes, expected);
            count += 1;
        }
        assert_eq!(count, 24);
        assert_eq!(PlaneOrder::parse("cwdd"), None);
        assert_eq!(PlaneOrder::parse("cwd"), None);
    }
}
