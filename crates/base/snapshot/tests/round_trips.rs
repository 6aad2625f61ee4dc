//! What is written is read again, and nothing else is taken for it.

use cachewright_snapshot::{
    Snapshot, SnapshotError, SnapshotValue, SnapshotWriter, refused, restore, saved,
};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use proptest::prelude::*;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

#[derive(Clone, Copy, Debug, Default, PartialEq, SnapshotValue)]
enum Place {
    #[default]
    Nowhere,
    At(u32),
    Between {
        low: u16,
        high: u16,
    },
}

#[derive(Clone, Debug, PartialEq, SnapshotValue)]
struct Node<T, const N: usize> {
    links: [T; N],
    place: Option<Place>,
    weight: f64,
}

#[derive(Clone, Debug, Default, Snapshot)]
struct Tally {
    #[snapshot(settings)]
    limit: u32,
    nodes: Vec<Node<u32, 2>>,
    order: VecDeque<(u64, bool)>,
    heap: BinaryHeap<u16>,
    names: BTreeMap<String, f32>,
}

#[derive(Debug, PartialEq, Snapshot)]
enum Kind {
    Off,
    On(#[snapshot(settings)] u8, u8),
}

struct Outside;
refused!(Outside: "code outside");

#[test]
fn fields_stand_in_order_and_settings_are_left_out() {
    let node = Node { links: [1, 2], place: Some(Place::At(7)), weight: 0.5 };
    let tally = Tally { limit: 9, nodes: vec![node], ..Tally::default() };
    let bytes = saved(&tally).unwrap();
    let mut expected = vec![1, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0];
    expected.extend([1, 1, 0, 0, 0, 7, 0, 0, 0]);
    expected.extend(0.5_f64.to_le_bytes());
    expected.extend([0; 24]);
    assert_eq!(bytes, expected);
    let mut other = Tally { limit: 3, order: VecDeque::from([(1, true)]), ..Tally::default() };
    restore(&mut other, &bytes).unwrap();
    assert_eq!(parts(&other), parts(&Tally { limit: 3, ..tally }));
}

#[test]
fn a_variant_of_settings_stays_and_another_is_refused() {
    let mut on = Kind::On(1, 2);
    restore(&mut on, &saved(&Kind::On(7, 8)).unwrap()).unwrap();
    assert_eq!(on, Kind::On(1, 8));
    let error = restore(&mut on, &saved(&Kind::Off).unwrap()).unwrap_err();
    let expected = "found variant 0 of Kind in a snapshot, expected variant 1, which the settings \
                    ask for";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn what_cannot_be_saved_says_why() {
    let error = saved(&[Outside, Outside]).unwrap_err();
    assert_eq!(error.to_string(), "found code outside, expected state that can be saved");
    assert_eq!(restore(&mut Outside, &[]), Err(error));
}

#[test]
fn a_length_beyond_the_bytes_is_refused_before_there_is_memory_for_it() {
    let mut list: Vec<u64> = Vec::new();
    let error = restore(&mut list, &u64::MAX.to_le_bytes()).unwrap_err();
    assert!(matches!(error, SnapshotError::Value { .. }), "{error}");
    let mut bytes = 3_u64.to_le_bytes().to_vec();
    bytes.extend([0; 23]);
    let error = restore(&mut list, &bytes).unwrap_err().to_string();
    assert_eq!(error, "found a snapshot that ends after 31 bytes, expected 1 more");
    bytes.extend([0; 2]);
    assert_eq!(restore(&mut list, &bytes), Err(SnapshotError::Beyond(1)));
}

#[test]
fn a_map_is_written_by_its_keys() {
    let forward: HashMap<u32, u8, FixedState> = (0..100).map(|key| (key, 1)).collect();
    let backward: HashMap<u32, u8, FixedState> = (0..100).rev().map(|key| (key, 1)).collect();
    assert_eq!(saved(&forward), saved(&backward));
    let mut read = HashMap::with_hasher(FixedState::default());
    restore(&mut read, &saved(&forward).unwrap()).unwrap();
    assert_eq!(read, forward);
}

fn place() -> impl Strategy<Value = Option<Place>> {
    prop_oneof![
        Just(None),
        Just(Some(Place::Nowhere)),
        any::<u32>().prop_map(|at| Some(Place::At(at))),
        any::<(u16, u16)>().prop_map(|(low, high)| Some(Place::Between { low, high })),
    ]
}

fn tally() -> impl Strategy<Value = Tally> {
    let node = (any::<[u32; 2]>(), place(), proptest::num::f64::NORMAL)
        .prop_map(|(links, place, weight)| Node { links, place, weight });
    let nodes = proptest::collection::vec(node, 0..20);
    let order = proptest::collection::vec(any::<(u64, bool)>(), 0..20);
    let names = proptest::collection::btree_map("[a-z]*", proptest::num::f32::NORMAL, 0..5);
    let heap = proptest::collection::vec(any::<u16>(), 0..20);
    (nodes, order, heap, names).prop_map(|(nodes, order, heap, names)| Tally {
        limit: 1,
        nodes,
        order: order.into(),
        heap: heap.into(),
        names,
    })
}

/// The heap is compared by its array.
fn parts(tally: &Tally) -> (u32, &[u16], String) {
    (tally.limit, tally.heap.as_slice(), format!("{tally:?}"))
}

proptest! {
    #[test]
    fn values_are_read_as_they_were_written(tally in tally()) {
        let bytes = saved(&tally).unwrap();
        let mut read = Tally { limit: 1, ..Tally::default() };
        restore(&mut read, &bytes).unwrap();
        prop_assert_eq!(parts(&read), parts(&tally));
        prop_assert_eq!(saved(&read).unwrap(), bytes);
    }

    #[test]
    fn damaged_bytes_are_errors_or_other_values(
        tally in tally(), at in any::<proptest::sample::Index>(), value in any::<u8>(),
    ) {
        let mut bytes = saved(&tally).unwrap();
        let mut read = Tally::default();
        let end = at.index(bytes.len());
        prop_assert!(restore(&mut read, &bytes[..end]).is_err());
        bytes[end] = value;
        let _ = restore(&mut read, &bytes);
    }
}

#[test]
fn numbers_keep_their_bits() {
    let numbers = [f64::NAN, -0.0, f64::INFINITY, f64::MIN_POSITIVE / 2.0];
    let mut read = [0.0; 4];
    restore(&mut read, &saved(&numbers).unwrap()).unwrap();
    assert_eq!(read.map(f64::to_bits), numbers.map(f64::to_bits));
    let mut from = cachewright_snapshot::SnapshotReader::new(&[2]);
    assert!(bool::load(&mut from).is_err());
}

#[test]
fn a_sink_gets_the_same_bytes_in_pieces() {
    let lists: (Vec<u64>, Vec<u8>, Vec<(u32, bool)>) = (
        (0..300_000).collect(),
        (0..1_000_000_u32).map(|number| number as u8).collect(),
        (0..200_000).map(|number| (number, number % 3 == 0)).collect(),
    );
    let mut sink = Pieces::default();
    save_to(&lists, &mut sink).unwrap();
    assert_eq!(sink.bytes, saved(&lists).unwrap());
    assert!(sink.longest < 1 << 20, "{} bytes at once", sink.longest);
    let error = save_to(&[Outside, Outside], &mut sink).unwrap_err();
    assert_eq!(error.to_string(), "found code outside, expected state that can be saved");
    let mut full = Pieces { room: 1 << 20, ..Pieces::default() };
    let error = save_to(&lists, &mut full).unwrap_err().to_string();
    assert_eq!(error, "a snapshot cannot be written: no room");
    assert!(full.bytes.len() <= 1 << 20, "nothing follows an error");
}

fn save_to(state: &impl Snapshot, sink: &mut Pieces) -> Result<Vec<u8>, SnapshotError> {
    let mut out = SnapshotWriter::to(sink);
    state.save(&mut out);
    out.finish()
}

/// Takes so many bytes, if that is not 0.
#[derive(Default)]
struct Pieces {
    bytes: Vec<u8>,
    longest: usize,
    room: usize,
}

impl std::io::Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.room > 0 && self.bytes.len() + bytes.len() > self.room {
            return Err(std::io::Error::other("no room"));
        }
        self.bytes.extend_from_slice(bytes);
        self.longest = self.longest.max(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
