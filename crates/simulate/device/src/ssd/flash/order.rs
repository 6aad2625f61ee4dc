//! The order in which consecutive pages visit planes.
//!
//! For: all 24 static allocation schemes (CWDP, PDWC and so on). Must never know: pages. A scheme
//! is four letters: channel, way (chip of a channel), die, plane; the first changes fastest.
//! Source: Tavakkol et al., MQSim, FAST'18, section 4.4; Jung and Kandemir, HotStorage'12.

use super::shape::FlashShape;

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
    use super::super::params::FlashParams;
    use super::*;

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
