//! Tests of whole descriptions.

use super::*;
use crate::binary::testing::{bad_bytes, read_bytes};
use crate::formats::{open_bytes, testing::options};
use crate::recognise_bytes;
use std::collections::{BTreeMap, BTreeSet};

const HEAD: &str = "# two tenants\n\n[synth] # here\nseed = 7\n";

fn tenant(name: &str, rest: &str, pattern: &str) -> String {
    format!(
        "[[tenant]]\nname = \"{name}\"\narrival = {{ kind = \"constant\", rate = \"1/us\" }}\n\
         read_share = 0.5\n{rest}\n[tenant.pattern]\n{pattern}\n"
    )
}

fn one(pattern: &str) -> Vec<Record> {
    let text = format!("{HEAD}{}", tenant("a", "size = \"4KiB\"\ncount = 2000", pattern));
    read_bytes(&options("synth", &[]), text.as_bytes()).0
}

fn offsets(pattern: &str) -> Vec<u64> {
    one(pattern).iter().map(|record| record.offset_bytes).collect()
}

fn refused(text: &str) -> String {
    bad_bytes(&options("synth", &[]), text.as_bytes())
}

#[test]
fn a_description_is_recognised_and_repeats_itself() {
    let sizes = "sizes = [{ size = \"4KiB\", weight = 3 }, { size = \"64KiB\", weight = 1 }]";
    let zipf = "kind = \"zipf\"\nspan = \"16MiB\"\nalpha = 1.0";
    let text = format!(
        "{HEAD}{}{}",
        tenant("a", &format!("{sizes}\nduration = \"5ms\""), zipf),
        tenant("b", "size = \"1KiB\"\ncount = 1000\nstart = \"1ms\"", zipf)
    );
    assert_eq!(recognise_bytes(text.as_bytes()).unwrap().name, "synth");
    let (records, volumes) = read_bytes(&OpenOptions::default(), text.as_bytes());
    assert_eq!(volumes, ["a", "b"]);
    let of = |volume: u32| records.iter().filter(move |record| record.volume == volume);
    assert_eq!((of(0).count(), of(1).count()), (4999, 1000));
    assert!(records.is_sorted_by_key(|record| record.time_ns));
    assert_eq!(of(1).next().unwrap().time_ns, 1_001_000);
    let large = of(0).filter(|record| record.length_bytes == 65_536).count();
    let reads = of(0).filter(|record| record.op == Op::Read).count();
    assert!((1100..1400).contains(&large), "{large}");
    assert!((2300..2700).contains(&reads), "{reads}");
    assert!(records.iter().all(|r| r.offset_bytes + r.length_bytes <= 16 << 20));

    assert_eq!(read_bytes(&OpenOptions::default(), text.as_bytes()).0, records);
    let other = read_bytes(&options("synth", &[("seed", "8")]), text.as_bytes()).0;
    assert_eq!(other.len(), records.len());
    assert_ne!(other, records);
    let longer = format!("{text}{}", tenant("c", "size = \"4KiB\"\ncount = 9", zipf));
    let longer = read_bytes(&OpenOptions::default(), longer.as_bytes()).0;
    let kept: Vec<Record> = longer.into_iter().filter(|record| record.volume < 2).collect();
    assert_eq!(kept, records, "another tenant changes nothing");
}

#[test]
fn sequential_and_loop_visit_in_order() {
    let sequential = offsets("kind = \"sequential\"\nspan = \"4MiB\"\noffset = \"1MiB\"");
    let expected: Vec<u64> = (0..2000).map(|i| (1 << 20) + (i % 1024) * 4096).collect();
    assert_eq!(sequential, expected);
    let looped = offsets("kind = \"loop\"\nspan = \"400KiB\"\nscattered = true");
    assert_eq!(looped[..100], looped[100..200]);
    assert_eq!(looped[..100].iter().collect::<BTreeSet<_>>().len(), 100);
    assert!(!looped[..100].is_sorted());
    let runs = offsets("kind = \"sequential\"\nspan = \"1GiB\"\nrun = \"32KiB\"");
    let steps = runs.windows(2).filter(|pair| pair[1] == pair[0] + 4096).count();
    assert!((1740..=1760).contains(&steps), "7 of 8 follow on: {steps}");
}

#[test]
fn zipf_and_hot_cold_are_skewed() {
    let mut counts: BTreeMap<u64, u32> = BTreeMap::new();
    for offset in offsets("kind = \"zipf\"\nspan = \"4MiB\"\nalpha = 1.2\nscattered = false") {
        *counts.entry(offset).or_default() += 1;
    }
    assert_eq!(counts.iter().max_by_key(|(_, count)| **count).map(|(offset, _)| *offset), Some(0));
    let hot = "kind = \"hot-cold\"\nspan = \"4MiB\"\nhot_space = 0.1\nhot_access = 0.9\n\
               scattered = false";
    let hits = offsets(hot).iter().filter(|offset| **offset < 102 * 4096).count();
    assert!((1740..1860).contains(&hits), "{hits}");
}

#[test]
fn phases_change_and_mixes_mix() {
    let phases = "kind = \"phases\"\nphase = [\
        { count = 10, pattern = { kind = \"uniform\", span = \"1MiB\" } },\
        { duration = \"5us\", pattern = { kind = \"uniform\", span = \"1MiB\", \
          offset = \"1GiB\" } } ]";
    let far: Vec<bool> = offsets(phases).iter().map(|offset| *offset >= 1 << 30).collect();
    // Ten by count, then those within 5 us of the change, which come one per microsecond.
    assert_eq!(far[..15], [vec![false; 10], vec![true; 5]].concat());
    assert_eq!(far[15..30], far[..15]);
    let mix = "kind = \"mix\"\npart = [\
        { weight = 3, pattern = { kind = \"uniform\", span = \"1MiB\" } },\
        { weight = 1, pattern = { kind = \"loop\", span = \"1MiB\", offset = \"1GiB\" } } ]";
    let far = offsets(mix).iter().filter(|offset| **offset >= 1 << 30).count();
    assert!((430..570).contains(&far), "{far}");
}

#[test]
fn mistakes_are_explained() {
    let uniform = "kind = \"uniform\"\nspan = \"1MiB\"";
    let sized = "size = \"4KiB\"\ncount = 5";
    let cases = [
        (tenant("a", sized, "kind = \"zipff\""), "`zipf`"),
        (tenant("a", sized, "kind = \"zipf\"\nspan = \"1MiB\""), "no `alpha` in tenant `a`"),
        (tenant("a", sized, "kind = \"uniform\"\nspan = \"1\""), "`span` = `1`"),
        (tenant("a", sized, &format!("{uniform}\nalpha = 1.0")), "`alpha` of a pattern of kind"),
        (tenant("a", sized, &format!("{uniform}\nspam = 1.0")), "unknown field `spam`"),
        (tenant("a", "count = 5", uniform), "not just one of `size`"),
        (tenant("a", "size = \"4KiB\"", uniform), "neither `count` nor `duration`"),
        (tenant("a", "size = \"2MiB\"\ncount = 1", uniform), "room for the largest request"),
        (tenant("a", sized, uniform).replace("1/us", "1"), "requests per us"),
        (tenant("a", sized, uniform).replace("0.5", "1.5"), "`read_share` of 1.5"),
        (tenant("a", sized, uniform).repeat(2), "two tenants `a`"),
        (tenant("a", sized, "kind = \"mix\""), "an empty list"),
        (tenant("a", sized, "kind = \"phases\""), "no `phase`"),
        (String::new(), "missing field `tenant`"),
        ("[[tenant".to_owned(), "(line 5)"),
        (tenant("a", sized, uniform).replace("[tenant.pattern]", "pattern = 3\n[x]"), "`kind`"),
    ];
    for (text, expected) in cases {
        let error = refused(&format!("{HEAD}{text}"));
        assert!(error.contains(expected), "`{expected}` not in: {error}");
    }
    assert!(refused("[synth]\nseed = -1\n").contains("(line 2)"));
    let error = refused("tenant = [3]\n[synth]\nseed = 7\n");
    assert!(error.contains("expected a table per tenant"), "{error}");
    let error = refused(&format!("synth = 3\n{}", tenant("a", sized, uniform)));
    assert!(error.contains("expected a table with `seed`") && !error.contains("struct"), "{error}");
}

#[test]
fn other_text_is_not_taken_for_it() {
    for text in ["", "synth\n", "1,2,3\n[synth]\n", "[synthetic]\n"] {
        assert_eq!(recognise(text.as_bytes()), 0, "{text}");
    }
    assert!(open_bytes("sample", &[0xff; 9], &options("synth", &[])).is_err());
}

#[test]
fn the_examples_are_valid() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../specs/synth");
    let mut count = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        let mut reader = crate::open(&path, &OpenOptions::default()).unwrap();
        let mut batch = Batch::default();
        while batch.len() < 10_000 && reader.read(&mut batch, 1000).unwrap() > 0 {}
        assert!(batch.time_ns.is_sorted(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 5, "{count} examples");
}
