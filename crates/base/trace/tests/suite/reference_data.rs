//! Public and captured traces, when the reference data are there: counts as their README states.
//!
//! For: recognition, kinds and volumes on real files. Must never know: a reader's insides. The
//! numbers are those of `traces/public/README.md` and of the JSON files beside our captures.
#![allow(clippy::expect_used, clippy::panic)]

use cachewright_trace::{Batch, OpenOptions, open, recognise};
use std::path::{Path, PathBuf};

/// The folder `traces` of the reference data, or nothing after saying so.
fn traces() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../../shared");
    let shared = std::env::var_os("CACHEWRIGHT_SHARED").map_or_else(beside, PathBuf::from);
    let traces = shared.join("traces");
    if !traces.is_dir() {
        println!("skipped: needs the reference data (set CACHEWRIGHT_SHARED)");
        return None;
    }
    Some(traces)
}

/// Reads, writes, trims, flushes and volumes of a trace.
type Counts = ([u64; 4], usize);

fn counts(path: &Path, options: &OpenOptions) -> Counts {
    let mut reader = open(path, options).unwrap_or_else(|error| panic!("{error}"));
    let (mut batch, mut kinds) = (Batch::default(), [0; 4]);
    while reader.read(&mut batch, 10_000).unwrap_or_else(|error| panic!("{error}")) > 0 {
        batch.op.iter().for_each(|op| kinds[*op as usize] += 1);
        batch.clear();
    }
    (kinds, reader.volumes().len())
}

fn with(pairs: &[(&str, &str)]) -> OpenOptions {
    let mut format_options = std::collections::BTreeMap::new();
    let mut format = None;
    for (key, value) in pairs {
        match *key {
            "format" => format = Some((*value).to_owned()),
            key => drop(format_options.insert(key.to_owned(), (*value).to_owned())),
        }
    }
    OpenOptions { format, format_options, ..OpenOptions::default() }
}

/// Path below `public`, the format it must be recognised as, and its counts.
type Known = (&'static str, &'static str, Counts);

const RECOGNISED: &[Known] = &[
    ("blkparse-text-hadoop-mbpa/blktrace.txt.zst", "blkparse", ([80, 15_444, 0, 0], 1)),
    ("blktrace-bin-sample/sample.blktrace.0", "blktrace", ([963, 0, 0, 0], 1)),
    ("cloudphysics-libcachesim/cloudPhysicsIO.vscsi.zst", "vscsi", ([46_974, 66_898, 0, 0], 1)),
    (
        "cloudphysics-libcachesim/cloudPhysicsIO.oracleGeneral.bin.zst",
        "oracle-general",
        ([113_872, 0, 0, 0], 1),
    ),
    ("disksim/ajw.1week.csv.gz", "csv", ([13_040, 31_479, 0, 0], 2)),
    ("disksim/ssd-iozone-aligned2-100K.trace.zst", "disksim", ([0, 100_000, 0, 0], 1)),
    ("fio-iolog/iolog.log", "fio-iolog", ([0, 9_441, 0, 0], 1)),
    ("fiu-sample-cacheus/home1sample.blkparse", "fiu", ([0, 1_000, 0, 0], 1)),
    ("fiu-sample-cacheus/home2sample.blkparse", "fiu", ([88, 912, 0, 0], 1)),
    // A row stands for `op_count` requests: 599 and 579 rows read.
    ("meta-tectonic-sample/block_traces_1.csv", "tectonic", ([623, 400, 0, 0], 7)),
    ("meta-tectonic-sample/block_traces_2.csv", "tectonic", ([596, 420, 0, 0], 8)),
    ("mqsim/tpcc-small.trace", "mqsim", ([4_381, 2_618, 0, 0], 16)),
    ("mqsim/wsrch-small.trace.zst", "mqsim", ([24_779, 4, 0, 0], 6)),
    ("ms-dtrs-ssdsim/DTRS1K.trace.zst", "mqsim", ([113_123, 13_920, 0, 0], 1)),
    ("msr-full-small-volumes/rsrch_1.csv.zst", "msr", ([42, 13_738, 0, 0], 1)),
    ("msr-full-small-volumes/web_3.csv.zst", "msr", ([10_050, 21_330, 0, 0], 1)),
    ("msr-sample-caffeine/msr-cambridge1-sample.csv", "msr", ([508, 492, 0, 0], 1)),
    ("nexus5-smartphone/Installing_log181.txt.zst", "biotracer", ([312, 17_640, 0, 0], 1)),
    ("opencas-iotrace/2020-07-02_085251.csv.gz", "csv", ([1, 64_188, 231, 0], 1)),
    ("spc-financial-mini/Financial_mini.spc", "spc", ([183, 766, 0, 0], 16)),
    ("ssdsim-example-fin1/example.c585265.ascii", "mqsim", ([4_077, 5_923, 0, 0], 22)),
    ("systor17-sample/systor17-additional-sample.csv.gz", "systor17", ([700, 299, 0, 0], 1)),
    ("systor17-sample/systor17-traces-sample.csv.gz", "systor17", ([826, 173, 0, 0], 1)),
    ("tencent-cbs-sample/cloud_storage-sample.bz2", "tencent", ([24_521, 25_479, 0, 0], 2_038)),
    ("ycsb-rocksdb-ssdtrace-mqsim/ssdTrace-only-write.txt.zst", "mqsim", ([0, 87_487, 0, 0], 1)),
];

#[test]
fn public_traces_have_the_counts_of_their_readme() {
    let Some(traces) = traces() else { return };
    for (name, format, expected) in RECOGNISED {
        let path = traces.join("public").join(name);
        assert_eq!(recognise(&path).map(|entry| entry.name).ok(), Some(*format), "{name}");
        assert_eq!(counts(&path, &OpenOptions::default()), *expected, "{name}");
    }
}

#[test]
fn one_request_in_all_columns_of_a_public_trace() {
    let Some(traces) = traces() else { return };
    let path = traces.join("public/opencas-iotrace/2020-07-02_085251.csv.gz");
    let mut reader = open(&path, &OpenOptions::default()).unwrap_or_else(|error| panic!("{error}"));
    let mut batch = Batch::default();
    assert_eq!(reader.read(&mut batch, 2).ok(), Some(2));
    let second = batch.get(1);
    assert_eq!((second.time_ns, second.offset_bytes), (35_081, 846_106_624));
    assert_eq!(second.length_bytes, 131_072);
}

#[test]
fn formats_without_a_reader_of_their_own_are_csv_with_options() {
    let Some(traces) = traces() else { return };
    let disksim = with(&[
        ("format", "csv"),
        ("columns", "time=1,volume=2,offset=3,length=4,op=5"),
        ("time_unit", "ms"),
        ("offset_unit", "sector"),
        ("length_unit", "sector"),
        ("read_words", "1"),
        ("write_words", "0"),
    ]);
    let path = traces.join("public/disksim/ssd-iozone-aligned2-100K.trace.zst");
    assert_eq!(counts(&path, &disksim), ([0, 100_000, 0, 0], 1));
    let arc = with(&[
        ("format", "csv"),
        ("columns", "offset=1,length=2"),
        ("offset_unit", "512B"),
        ("length_unit", "512B"),
        ("default_op", "read"),
    ]);
    let path = traces.join("public/arc/OLTP.lis.zst");
    assert_eq!(counts(&path, &arc), ([914_145, 0, 0, 0], 1), "each line of this one is a page");
    let nexus = with(&[
        ("format", "csv"),
        ("columns", "offset=1,length=3,op=4,time=5"),
        ("delimiter", "blanks"),
        ("offset_unit", "sector"),
        ("length_unit", "B"),
        ("time_unit", "s"),
        ("read_words", "0,2,4,6"),
        ("write_words", "1,3,5,7"),
    ]);
    let path = traces.join("public/nexus5-smartphone/Installing_log181.txt.zst");
    assert_eq!(counts(&path, &nexus), ([312, 17_640, 0, 0], 1));
    let path = traces.join("public/blkparse-text-leveldb/blk_data.txt.txt");
    assert_eq!(counts(&path, &with(&[("event", "C")])), ([0, 840, 0, 0], 1));
}

/// The whole number after the first `"key":` of `text`.
fn number(text: &str, key: &str) -> u64 {
    let (_, rest) = text.split_once(&format!("\"{key}\":")).unwrap_or(("", "0"));
    let digits = rest.trim_start().split(|c: char| !c.is_ascii_digit()).next();
    digits.and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[test]
fn captured_block_traces_have_the_counts_of_their_json() {
    let Some(traces) = traces() else { return };
    let mut seen = 0;
    for name in ["build", "kv", "lu", "mail", "oltp", "phases", "overwrite-lsm", "video"] {
        let json = traces.join("captured").join(name).with_extension("json");
        let json = std::fs::read_to_string(&json).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (load, run) = json.split_once("\"run\":").unwrap_or((&json, ""));
        for (part, suffix) in [(load, ".load.csv.zst"), (run, ".csv.zst")] {
            let path = traces.join("captured").join(format!("{name}{suffix}"));
            let expected = ["reads", "writes", "trims", "flushes"].map(|key| number(part, key));
            assert_eq!(recognise(&path).map(|entry| entry.name).ok(), Some("alibaba"), "{name}");
            assert_eq!(counts(&path, &OpenOptions::default()), (expected, 1), "{name}{suffix}");
            seen += 1;
        }
    }
    assert_eq!(seen, 16);
}

#[test]
fn captured_system_call_traces_have_the_counts_of_their_json() {
    let Some(traces) = traces() else { return };
    for name in ["dss", "lu", "oltp", "video"] {
        let folder = traces.join("captured/buffer-cache");
        let json = std::fs::read_to_string(folder.join(name).with_extension("json"));
        let json = json.unwrap_or_else(|error| panic!("{name}: {error}"));
        let path = folder.join(format!("{name}.csv.zst"));
        let [reads, writes, syncs] = ["reads", "writes", "fsyncs"].map(|key| number(&json, key));
        assert_eq!(recognise(&path).map(|entry| entry.name).ok(), Some("syscall"), "{name}");
        let (kinds, volumes) = counts(&path, &OpenOptions::default());
        assert_eq!(kinds, [reads, writes, 0, syncs], "{name}");
        assert_eq!(volumes as u64, number(&json, "files"), "{name}");
    }
}
