//! Hits by bytes in answers: by hand, beside a slow cache, and where they are not counted.

use crate::common;

use cachewright_types::Seed;
use common::{Folder, answer_to, number, total};
use serde_json::Value;

const STACK: &str = "[cache]\ncapacity = \"100 blocks\"\n[[tenant]]\nname = \"a\"\n\
                     trace = \"a.csv\"\n";

const DEVICES: &str = "[device.cache]\nmodel = \"fixed-latency\"\nread = \"100us\"\n\
    write = \"60us\"\n[device.backing]\nmodel = \"fixed-latency\"\nread = \"1ms\"\n\
    write = \"1ms\"\n[machine]\nsystem = \"tiered\"\n";

fn answer(folder: &Folder, stack: &str, set: &[(&str, &str)]) -> Value {
    answer_to(folder, stack, set).unwrap()["cases"][0].clone()
}

fn bytes(case: &Value) -> [u64; 2] {
    ["accessed_bytes", "hit_bytes"].map(|key| total(case, key))
}

#[test]
fn bytes_of_parts_of_blocks_count_as_they_are() {
    let folder = Folder::new("bytes-by-hand");
    // Blocks 0 and 1 by 6144 bytes; 512 bytes of block 1, a hit; 4096 bytes from the middle of
    // block 1 on, of which 2048 hit; a write of 1024 bytes of block 0, a hit.
    folder.with("a.csv", "1,R,0,6144,0\n1,R,4608,512,1\n1,R,6144,4096,2\n1,W,512,1024,3\n");
    let closed = [("replay.loop", "closed")];
    for (stack, set) in [
        (STACK.to_owned(), &[][..]),
        (STACK.to_owned(), &closed[..]),
        (format!("{STACK}{DEVICES}"), &[][..]),
    ] {
        let case = answer(&folder, &stack, set);
        assert_eq!(bytes(&case), [6144 + 512 + 4096 + 1024, 512 + 2048 + 1024], "{stack}");
        assert_eq!(number(&case["total"]["byte_hit_ratio"]), 3584.0 / 11_776.0);
        assert_eq!(number(&case["total"]["read_byte_hit_ratio"]), 2560.0 / 10_752.0);
        assert_eq!(case["tenants"][0]["byte_hit_ratio"], case["total"]["byte_hit_ratio"]);
    }
    let case = answer(&folder, STACK, &[("replay.warmup", "2 requests")]);
    assert_eq!(bytes(&case), [4096 + 1024, 2048 + 1024], "behind the warm-up");
}

#[test]
fn whole_blocks_hit_by_bytes_as_they_do_by_blocks() {
    let folder = Folder::new("bytes-even");
    folder.with("a.csv", "1,R,0,8192,0\n1,W,4096,4096,1\n1,R,0,4096,2\n1,R,8192,4096,3\n");
    for stack in [STACK.to_owned(), format!("{STACK}{DEVICES}")] {
        let case = answer(&folder, &stack, &[]);
        assert_eq!(bytes(&case), [5 * 4096, 2 * 4096]);
        assert_eq!(case["total"]["byte_hit_ratio"], case["total"]["hit_ratio"]);
        assert_eq!(case["total"]["read_byte_hit_ratio"], case["total"]["read_hit_ratio"]);
        let case = answer(&folder, &stack, &[("replay.warmup", "1 request")]);
        assert_eq!(bytes(&case), [3 * 4096, 2 * 4096]);
    }
}

/// A block per request, of the bytes of the request.
#[test]
fn objects_count_their_own_bytes() {
    let folder = Folder::new("bytes-objects");
    folder.with("a.csv", "1,R,1,100,0\n1,R,2,5000,1\n1,R,1,100,2\n1,R,1,100,3\n1,R,3,700,4\n");
    let case = answer(&folder, STACK, &[("replay.blocks", "unit")]);
    assert_eq!(bytes(&case), [6000, 200]);
    assert_eq!(number(&case["total"]["byte_hit_ratio"]), 200.0 / 6000.0);
    assert_eq!(number(&case["total"]["hit_ratio"]), 0.4);
    folder.with("a.csv", "1,R,1,100,0\n1,R,2,100,1\n1,R,1,100,2\n");
    let case = answer(&folder, STACK, &[("replay.blocks", "unit")]);
    assert_eq!(bytes(&case), [300, 100], "objects of one size");
}

/// Hits and bytes of an LRU list, of all accesses and of those that hit.
fn slow_lru(requests: &[(u64, u64, bool)], capacity: usize) -> [u64; 2] {
    let (mut list, mut found) = (Vec::new(), [0; 2]);
    for (offset, length, trim) in requests {
        let end = offset + length;
        for block in offset / 4096..end.div_ceil(4096) {
            let bytes = end.min((block + 1) * 4096) - (*offset).max(block * 4096);
            let place = list.iter().position(|cached| *cached == block);
            if *trim {
                list.retain(|cached| *cached != block || bytes < 4096);
                continue;
            }
            found[0] += bytes;
            found[1] += place.map_or(0, |_| bytes);
            place.map(|place| list.remove(place));
            list.push(block);
            if list.len() > capacity {
                list.remove(0);
            }
        }
    }
    found
}

#[test]
fn bytes_agree_with_a_slow_cache() {
    let folder = Folder::new("bytes-slow");
    for seed in 0..6 {
        let mut rng = Seed(seed).rng();
        // The first requests are of whole blocks: bytes begin to differ in the middle.
        let requests: Vec<(u64, u64, bool)> = (0..3000)
            .map(|index| {
                let (block, blocks) = (rng.below(200), 1 + rng.below(4));
                let (before, after) = (512 * rng.below(8), 512 * rng.below(8));
                let trim = rng.below(30) == 0;
                match index < 1000 * (seed % 3) {
                    true => (block * 4096, blocks * 4096, trim),
                    false => (
                        block * 4096 + before,
                        blocks * 4096 - before - after.min(3584 - before),
                        trim,
                    ),
                }
            })
            .collect();
        let line = |(index, (offset, length, trim)): (usize, &(u64, u64, bool))| {
            let op = if *trim {
                "T"
            } else if index % 3 == 0 {
                "W"
            } else {
                "R"
            };
            format!("1,{op},{offset},{length},{index}\n")
        };
        folder.with("a.csv", &requests.iter().enumerate().map(line).collect::<String>());
        let expected = slow_lru(&requests, 100);
        for stack in [STACK.to_owned(), format!("{STACK}{DEVICES}")] {
            assert_eq!(bytes(&answer(&folder, &stack, &[])), expected, "seed {seed}: {stack}");
        }
    }
}

#[test]
fn the_data_cache_of_a_drive_counts_pages_and_no_bytes() {
    let folder = Folder::new("bytes-drive");
    folder.with("a.csv", "1,R,0,8192,0\n1,R,0,8192,1000\n");
    folder.with("b.csv", "1,R,0,8192,0\n1,R,0,8192,1000\n");
    let case = answer(&folder, drive_stack!(100, "", ""), &[]);
    assert!(total(&case, "accesses") > 0);
    assert!(case["total"].get("byte_hit_ratio").is_none(), "{case}");
}
