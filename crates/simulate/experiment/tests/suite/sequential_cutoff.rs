//! `cache.sequential_cutoff` in stack files: what goes past the cache, how it is counted, and where
//! the key is refused.

use crate::common;

use common::{Folder, answer_to, total};

/// Five reads of a block that follow each other, a block elsewhere, the same five again, and a
/// write of two blocks that goes on where another wrote four.
const TRACE: &str = "1,R,0,4096,0\n1,R,4096,4096,1\n1,R,8192,4096,2\n1,R,12288,4096,3\n\
    1,R,16384,4096,4\n1,R,409600,4096,5\n1,R,0,4096,6\n1,R,4096,4096,7\n1,R,8192,4096,8\n\
    1,R,12288,4096,9\n1,R,16384,4096,10\n1,W,819200,16384,11\n1,W,835584,8192,12\n";

const STACK: &str = "[cache]\ncapacity = \"100 blocks\"\n[[tenant]]\nname = \"a\"\n\
                     trace = \"a.csv\"\n";

const DEVICES: &str = "[device.cache]\nmodel = \"fixed-latency\"\nread = \"100us\"\n\
    write = \"60us\"\n[device.backing]\nmodel = \"fixed-latency\"\nread = \"1ms\"\n\
    write = \"1ms\"\n[machine]\nsystem = \"tiered\"\n";

#[test]
fn long_streams_go_past_the_cache_and_what_is_cached_of_them_hits() {
    let folder = Folder::new("cutoff-counts");
    folder.with("a.csv", TRACE);
    let keys =
        ["accesses", "hits", "bypasses", "cut_off_requests", "cut_off_bytes", "backing_reads"];
    let counts = |stack: &str, cutoff: &str| {
        let set = [("cache.sequential_cutoff", cutoff), ("cache.write", "write-back")];
        let found = answer_to(&folder, stack, &set).unwrap();
        keys.map(|key| total(&found["cases"][0], key))
    };
    for stack in [STACK, &format!("{STACK}{DEVICES}")] {
        // By hand, for 12 KiB: of each five reads the third, fourth and fifth are cut off. The
        // first two hit the second time. Both writes are cut off: 16 KiB, and 8 KiB more.
        assert_eq!(counts(stack, "12KiB"), [17, 2, 12, 8, 6 * 4096 + 24_576, 9], "{stack}");
        // For 20 KiB the fifth read each time, and the second write.
        assert_eq!(counts(stack, "20KiB"), [17, 4, 4, 3, 2 * 4096 + 8192, 7], "{stack}");
        assert_eq!(counts(stack, "1MiB"), [17, 5, 0, 0, 0, 6], "{stack}");
    }
    let whole = answer_to(&folder, STACK, &[]).unwrap();
    assert!(whole["cases"][0]["total"].get("cut_off_requests").is_none(), "no key, no counter");
    assert_eq!(total(&whole["cases"][0], "hits"), 5);
}

#[test]
fn a_write_that_goes_past_updates_what_is_cached() {
    let folder = Folder::new("cutoff-writes");
    folder.with("a.csv", "1,R,4096,4096,0\n1,W,0,12288,1\n1,R,4096,4096,2\n1,R,0,4096,3\n");
    let counts = |write: &str| {
        let set = [("cache.sequential_cutoff", "12KiB"), ("cache.write", write)];
        let found = answer_to(&folder, STACK, &set).unwrap();
        let case = &found["cases"][0];
        (
            ["hits", "invalidations", "dirty_blocks"].map(|key| total(case, key)),
            total(case, "backing_writes"),
        )
    };
    assert_eq!(counts("write-back"), ([2, 0, 1], 2));
    assert_eq!(counts("write-through"), ([2, 0, 0], 3));
    assert_eq!(counts("write-around"), ([2, 0, 0], 3));
    assert_eq!(counts("read-only"), ([0, 1, 0], 3));
}

#[test]
fn fewer_streams_are_remembered_where_the_stack_wants_it() {
    let folder = Folder::new("cutoff-streams");
    // Two streams in turn: one that is remembered is never the one that goes on.
    let turns = (0..8_u64).flat_map(|block| {
        [0, 1 << 20].map(|base| format!("1,R,{},4096,{block}\n", base + block * 4096))
    });
    folder.with("a.csv", &turns.collect::<String>());
    let cut_off = |streams: &str| {
        let set = [("cache.sequential_cutoff", "8KiB"), ("cache.sequential_streams", streams)];
        let found = answer_to(&folder, STACK, &set).unwrap();
        total(&found["cases"][0], "cut_off_requests")
    };
    assert_eq!([cut_off("1"), cut_off("2")], [0, 14]);
}

#[test]
fn cases_with_and_without_a_cutoff_share_nothing_that_one_of_them_has() {
    let folder = Folder::new("cutoff-varied");
    folder.with("a.csv", TRACE);
    let vary = ("cache.sequential_cutoff".to_owned(), ["0B", "12KiB"].map(str::to_owned).into());
    let options = cachewright_experiment::RunOptions { vary: vec![vary], ..Default::default() };
    let origin = folder.path.join("s.toml");
    let found = cachewright_experiment::run(STACK, &origin, &options, &|_| true).unwrap();
    let hits = [0, 1].map(|case: usize| total(&found["cases"][case], "hits"));
    assert_eq!(hits, [5, 2]);
}

#[test]
fn the_data_cache_of_a_drive_refuses_it() {
    let folder = Folder::new("cutoff-drive");
    folder.with("a.csv", TRACE);
    let stack = drive_stack!(100, "", "");
    folder.with("b.csv", TRACE);
    let error = answer_to(&folder, stack, &[("cache.sequential_cutoff", "1MiB")]).unwrap_err();
    let expected = "`cache.sequential_cutoff`: found `1MiB`, expected `0B` with `machine.system";
    assert!(error.contains(expected), "{error}");
}
