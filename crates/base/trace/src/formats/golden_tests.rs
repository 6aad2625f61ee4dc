//! Counts of published traces, where the reference data is at hand.

use crate::binary::testing::directory;
use crate::write::create_writer;
use crate::{Batch, OpenOptions, open, recognise};
use cachewright_types::Op;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `name` within the reference data, or nothing when that is not there.
fn reference(name: &str) -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared");
    let shared = std::env::var_os("CACHEWRIGHT_SHARED").map_or_else(beside, PathBuf::from);
    let path = shared.join("traces/public").join(name);
    if !path.exists() {
        println!("skipped: needs the reference data (set CACHEWRIGHT_SHARED)");
        return None;
    }
    Some(path)
}

fn all(path: &Path, options: &OpenOptions) -> Batch {
    let mut reader = open(path, options).unwrap();
    let mut batch = Batch::default();
    while reader.read(&mut batch, 1 << 16).unwrap() > 0 {}
    assert_eq!(reader.skipped().bad, 0);
    batch
}

fn count(batch: &Batch, op: Op) -> usize {
    batch.op.iter().filter(|other| **other == op).count()
}

#[test]
fn cloudphysics_vscsi_and_oracle_general_are_one_trace() {
    let folder = "cloudphysics-libcachesim/cloudPhysicsIO";
    let Some(vscsi) = reference(&format!("{folder}.vscsi.zst")) else { return };
    let Some(oracle) = reference(&format!("{folder}.oracleGeneral.bin.zst")) else { return };
    assert_eq!(recognise(&vscsi).unwrap().name, "vscsi");
    assert_eq!(recognise(&oracle).unwrap().name, "oracle-general");
    let vscsi = all(&vscsi, &OpenOptions::default());
    let from_oracle = all(&oracle, &OpenOptions::default());
    assert_eq!((count(&vscsi, Op::Read), count(&vscsi, Op::Write)), (46_974, 66_898));
    assert_eq!(count(&from_oracle, Op::Read), 113_872);
    assert!(vscsi.offset_bytes == from_oracle.offset_bytes, "offsets differ");
    let seconds = |batch: &Batch| -> Vec<u64> {
        batch.time_ns.iter().map(|time_ns| time_ns / 1_000_000_000).collect()
    };
    assert!(seconds(&vscsi) == seconds(&from_oracle), "times differ");
    // The published conversion changed the length of 13,671 requests; that is how the two are.
    assert_eq!(vscsi.length_bytes.iter().sum::<u64>(), 4_205_978_112);
    assert_eq!(from_oracle.length_bytes.iter().sum::<u64>(), 4_368_040_448);
}

#[test]
fn oracle_general_written_again_is_the_published_file() {
    let Some(published) =
        reference("cloudphysics-libcachesim/cloudPhysicsIO.oracleGeneral.bin.zst")
    else {
        return;
    };
    let directory = directory();
    let path = directory.path().join("trace");
    let mut writer = create_writer("oracle-general", &path, &BTreeMap::new()).unwrap();
    let batch = all(&published, &OpenOptions::default());
    writer.write(&batch, &["0".to_owned()]).unwrap();
    assert_eq!(writer.finish().unwrap().requests, 113_872);
    let mut expected = vec![0; 3 << 20];
    let mut stream = crate::ByteSource::open(&published).unwrap().into_stream();
    let len = stream.fill(&mut expected).unwrap();
    assert!(std::fs::read(&path).unwrap() == expected[..len], "bytes differ");
}

#[test]
fn the_blktrace_sample_has_its_reads() {
    let Some(path) = reference("blktrace-bin-sample/sample.blktrace.0") else { return };
    let batch = all(&path, &OpenOptions::default());
    assert_eq!((batch.len(), count(&batch, Op::Read)), (963, 963));
    assert!(batch.length_bytes.iter().all(|length| *length == 4096));
    let blocks: std::collections::BTreeSet<u64> =
        batch.offset_bytes.iter().map(|offset| offset / 4096).collect();
    assert_eq!(format!("{:.1}", blocks.len() as f64 / 256.0), "3.8", "MiB touched");
}
