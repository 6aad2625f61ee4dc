//! Misses and writes of policies that learn, on a volume that comes with the repository.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_policy::registry::boxed;
use cachewright_policy::{Access, RequestInfo, Verdict};
use cachewright_testkit::streams::dense;
use cachewright_types::Seed;

const BLOCK: u64 = 4096;

/// Reads and writes of `data/mail.csv.zst`, and the blocks of each.
fn requests() -> Vec<(RequestInfo, u64)> {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../data/mail.csv.zst");
    let text = zstd::decode_all(std::fs::File::open(file).unwrap()).unwrap();
    let mut requests = Vec::new();
    for line in String::from_utf8(text).unwrap().lines() {
        let fields: Vec<&str> = line.split(',').collect();
        let [offset, length] = [2, 3].map(|field: usize| fields[field].parse::<u64>().unwrap());
        if ["R", "W"].contains(&fields[1]) && length > 0 {
            let blocks = (offset + length).div_ceil(BLOCK) - offset / BLOCK;
            let write = fields[1] == "W";
            requests.push((RequestInfo { time_ns: 0, offset, length, write }, blocks));
        }
    }
    requests
}

/// Misses, and blocks written into the cache for them, of caches of 4,000 and 16,000 blocks.
#[test]
fn misses_and_writes_on_a_bundled_volume_are_golden() {
    let requests = requests();
    let blocks = requests.iter().flat_map(|(request, blocks)| {
        let first = request.offset / BLOCK;
        first..first + blocks
    });
    let ids = dense(blocks);
    let distinct = ids.iter().map(|block| block.index() + 1).max().unwrap();
    assert_eq!(ids.len(), 337_561, "as many as data/README.md says");
    let found = ["lru", "3l-cache", "baleen"].map(|name| {
        let found = [4_000, 16_000].map(|capacity| {
            let mut policy = boxed(name, &[], capacity, Seed(1)).unwrap();
            policy.reserve_ids(distinct);
            let (mut misses, mut writes) = (0, 0);
            let mut next = ids.iter();
            for (request, blocks) in &requests {
                policy.on_request(request);
                for block in next.by_ref().take(*blocks as usize) {
                    let access = Access { write: request.write, ..Access::read(*block) };
                    let verdict = policy.access(access);
                    misses += u64::from(verdict != Verdict::Hit);
                    writes += u64::from(matches!(verdict, Verdict::Admit { .. }));
                }
            }
            assert_eq!(policy.audit(), Ok(()), "{name} of {capacity}");
            [misses, writes]
        });
        (name, found)
    });
    let golden = [
        ("lru", [[309_609, 309_609], [279_121, 279_121]]),
        ("3l-cache", [[290_626, 290_626], [250_679, 250_679]]),
        ("baleen", [[282_006, 33_735], [239_902, 33_625]]),
    ];
    assert_eq!(found, golden);
}
