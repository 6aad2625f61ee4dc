//! What an oracle does with each request: worked by hand, on any number of threads, refused where
//! there is no oracle, and as counted on a captured trace.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::oracle::training_set;
use cachewright_experiment::oracle::{Duration, OracleOptions, Reading, Split};
use cachewright_experiment::{LabelOptions, Labels, labels};
use cachewright_policy::rc_rnn::RcRnnSettings;
use cachewright_policy::rc_rnn::replayed::replay;
use cachewright_testkit::reference_data;
use cachewright_types::Seed;
use common::{Folder, pairs, quiet};

const STACK: &str = "
[cache]
capacity = \"2 blocks\"
[[tenant]]
name = \"a\"
trace = \"a.csv\"
";

fn asked(folder: &Folder, text: &str, options: &LabelOptions) -> Result<Labels, String> {
    let origin = folder.path.join("stack.toml");
    labels(text, &origin, options, &quiet).map_err(|error| error.to_string())
}

fn options(policy: &str, set: &[(&str, &str)]) -> LabelOptions {
    let oracle = OracleOptions { oracle: policy.to_owned(), labels: Reading::WholeStay };
    LabelOptions { oracle, set: pairs(set), threads: 1, split: Split::None }
}

/// The same, with labels that count so.
fn reading(mut options: LabelOptions, labels: Reading) -> LabelOptions {
    options.oracle.labels = labels;
    options
}

/// Blocks from `first` on, read unless `op` says otherwise, a microsecond apart.
fn trace(requests: &[(char, u64, u64)]) -> String {
    let line = |(at, (op, first, blocks)): (usize, &(char, u64, u64))| {
        format!("1,{op},{},{},{at}\n", first * 4096, blocks * 4096)
    };
    requests.iter().enumerate().map(line).collect()
}

/// A cache of two blocks. Block 1 is read at access 0, 2 and 9; block 2 at 1 and 3; blocks 3 to 5
/// together at 4, and 3 and 4 together at 7. 1 and 2 come in. At 4 block 2 is worth nothing, and 3
/// drives it out after 3 accesses (mean: 2 to 9); 4 is worth 1 * 1/3 * 2 as 3 is, not more, and
/// stays out like 5, of which nothing follows; so 1 of 3 is held and the request is not cached. At
/// 7 block 3 hits, at 8 block 4 is worth nothing: half of a request is not most of it. 1 hits at 9
/// and stays to the end, and so does 3.
const HAND: [(char, u64, u64); 7] =
    [('R', 1, 1), ('R', 2, 1), ('R', 1, 1), ('W', 2, 1), ('R', 3, 3), ('R', 3, 2), ('R', 1, 1)];

#[test]
fn a_request_is_what_most_of_its_blocks_are() {
    let folder = Folder::new("oracle-hand");
    folder.with("a.csv", &trace(&HAND));
    let found = asked(&folder, STACK, &options("benefit-oracle", &[])).unwrap();
    assert_eq!(found.capacity_blocks, 2);
    assert_eq!(found.requests.time_ns, [0, 1000, 2000, 3000, 4000, 5000, 6000]);
    assert_eq!((found.requests.offset[4], found.requests.length[4]), (3 * 4096, 3 * 4096));
    assert_eq!(
        found.requests.op.iter().map(|op| *op as u8).collect::<Vec<u8>>(),
        [0, 0, 0, 1, 0, 0, 0]
    );
    assert_eq!(found.cached, [true, true, true, true, false, false, true]);
    use Duration::{Late, Mean, None};
    assert_eq!(found.duration, [Late, Mean, Late, Mean, None, None, Late]);
    assert_eq!(found.durations(), [0, 2, 3, 2]);
    assert_eq!((found.counts.accesses(), found.counts.hits()), (10, 4));
    assert_eq!(found.counts.requests, 7);
}

/// Belady's bound takes 3 at 4 as well, and 4 in the place of 1, which is used last.
#[test]
fn another_oracle_labels_otherwise() {
    let folder = Folder::new("oracle-belady");
    folder.with("a.csv", &trace(&HAND));
    let found = asked(&folder, STACK, &options("belady-bypass", &[])).unwrap();
    assert_eq!(found.counts.hits(), 4);
    assert_eq!(found.cached, [true, true, true, true, true, true, false]);
    assert_eq!(found.duration[0], Duration::Mean);
}

/// What is left of the stays above: at access 3 block 2 has one access left (soon), at 2 block 1
/// stays to the end.
#[test]
fn what_remains_is_counted_from_each_access_on() {
    let folder = Folder::new("oracle-remaining");
    folder.with("a.csv", &trace(&HAND));
    let ask = |labels| reading(options("benefit-oracle", &[]), labels);
    let found = asked(&folder, STACK, &ask(Reading::Remaining)).unwrap();
    use Duration::{Late, Mean, None, Soon};
    assert_eq!(found.duration, [Late, Mean, Late, Soon, None, None, Late]);
    assert_eq!(found.filled, 1, "the second request fills the cache");
    assert_eq!(found.split, 0);
}

/// Two traces with the same first part and different futures: labels of the part are the same, by
/// either oracle, by share and by time; without a split they are not.
#[test]
fn labels_that_train_do_not_change_with_the_future() {
    const FIRST: usize = 600;
    let mut rng = Seed(7).rng();
    let mut draw = |spread: u64| {
        let first = rng.below(spread) * rng.below(3) / 2;
        (['R', 'W'][rng.below(2) as usize], first, 1 + rng.below(4))
    };
    let part: Vec<_> = (0..FIRST).map(|_| draw(300)).collect();
    let futures = [40, 3000].map(|spread| {
        let rest = (0..400).map(|_| draw(spread)).collect::<Vec<_>>();
        trace(&[part.clone(), rest].concat())
    });
    for (oracle, labels_of) in [
        ("benefit-oracle", Reading::Remaining),
        ("belady-bypass", Reading::Remaining),
        ("belady-bypass", Reading::WholeStay),
    ] {
        let labels = |split| {
            futures.each_ref().map(|text| {
                let folder = Folder::new("oracle-future");
                folder.with("a.csv", text);
                let set = [("cache.capacity", "60 blocks")];
                let how = LabelOptions { split, ..reading(options(oracle, &set), labels_of) };
                asked(&folder, STACK, &how).unwrap()
            })
        };
        let until = FIRST as u64 * 1000;
        for split in [Split::Share(0.6), Split::Time(until)] {
            let [one, other] = labels(split);
            assert_eq!((one.split, other.split), (FIRST, FIRST));
            assert_eq!(one.cached[..FIRST], other.cached[..FIRST], "{oracle}");
            assert_eq!(one.duration[..FIRST], other.duration[..FIRST], "{oracle}");
            assert_ne!(one.cached[FIRST..], other.cached[FIRST..], "{oracle}");
        }
        let [one, other] = labels(Split::None);
        assert_ne!(one.duration[..FIRST], other.duration[..FIRST], "{oracle} sees ahead");
        let [cut, _] = labels(Split::Time(until));
        assert_eq!(one.cached[FIRST..], cut.cached[FIRST..], "the rest sees all in both");
    }
}

/// A trim ends a stay, and is no request of its own.
#[test]
fn a_trim_ends_a_stay() {
    let folder = Folder::new("oracle-trim");
    let requests = [('R', 1, 1), ('R', 1, 1), ('T', 1, 1), ('R', 1, 1), ('F', 0, 0), ('R', 1, 1)];
    folder.with("a.csv", &trace(&requests));
    let found = asked(&folder, STACK, &options("benefit-oracle", &[])).unwrap();
    use Duration::{Late, Mean};
    assert_eq!(found.duration, [Mean, Mean, Late, Late]);
    let wide = asked(&folder, STACK, &options("benefit-oracle", &[("cache.capacity", "3 blocks")]));
    assert_eq!(wide.unwrap().duration[0], Duration::Soon, "2 accesses of a cache of 3");
}

/// Several volumes of a trace lie one behind the other.
#[test]
fn volumes_do_not_overlap() {
    let folder = Folder::new("oracle-volumes");
    folder.with("a.csv", "7,R,4096,4096,0\n9,R,4096,4096,1\n7,R,4096,4096,2\n");
    let found = asked(&folder, STACK, &options("benefit-oracle", &[])).unwrap();
    assert_eq!(found.requests.offset[0], found.requests.offset[2]);
    assert!(found.requests.offset[1] >= found.requests.offset[0] + 4096);
    assert_eq!(found.cached, [true, false, true]);
}

#[test]
fn what_cannot_be_labelled_is_refused_by_name() {
    let folder = Folder::new("oracle-refused");
    folder.with("a.csv", &trace(&HAND));
    let refused = |text: &str, policy, set: &[(&str, &str)]| {
        asked(&folder, text, &options(policy, set)).unwrap_err()
    };
    let words = refused(STACK, "lru", &[]);
    assert!(words.contains("found `lru`, expected one that knows the future"), "{words}");
    let words = refused(STACK, "benefit-orakel", &[]);
    assert!(words.contains("nearest is `benefit-oracle`"), "{words}");
    let words = refused(STACK, "benefit-oracle", &[("replay.loop", "closed")]);
    assert!(
        words.contains("needs the benefit of each access, found none, expected `replay.loop"),
        "{words}"
    );
    let two = format!("{STACK}[[tenant]]\nname = \"b\"\ntrace = \"a.csv\"\n");
    let words = refused(&two, "benefit-oracle", &[]);
    assert!(words.contains("found 2, expected one"), "{words}");
}

/// The oracle's own labels through the queues of `rc-rnn`: what no training can exceed. On the mean
/// of two traces they keep nine tenths of the oracle's hits; the whole residence as label, hits not
/// queued anew, keeps less on each.
#[test]
fn perfect_labels_keep_nine_tenths_of_the_hits_of_their_oracle() {
    let Some(captured) = reference_data("traces/captured") else { return };
    let folder = Folder::new("oracle-perfect");
    let share = |name: &str, labels_of, requeue_hits| {
        let trace = captured.join(name);
        let text = STACK.replace("a.csv", trace.to_str().unwrap()).replace("2 blocks", "20%wss");
        let how = reading(options("benefit-oracle", &[]), labels_of);
        let origin = folder.path.join("stack.toml");
        let found = training_set(&text, &origin, &how, "reuse", &quiet).unwrap();
        let uncached_soon = requeue_hits;
        let settings = RcRnnSettings { requeue_hits, uncached_soon, ..Default::default() };
        let labels = found.caching_labels();
        let capacity = found.labels.capacity_blocks;
        let tally =
            replay(&found.blocks, &found.flags, &labels, capacity, &settings, 0..labels.len())
                .unwrap();
        assert_eq!(tally.accesses, found.labels.counts.accesses());
        tally.hits as f64 / found.labels.counts.hits() as f64
    };
    let mut sum = 0.0;
    for name in ["oltp.csv.zst", "mail.csv.zst"] {
        let remaining = share(name, Reading::Remaining, true);
        let residence = share(name, Reading::WholeStay, false);
        assert!(remaining > residence, "{name}: {remaining} beside {residence}");
        sum += remaining;
    }
    assert!(sum / 2.0 >= 0.9, "{sum} of 2");
}

#[test]
fn labels_of_a_captured_trace_are_pinned() {
    let Some(captured) = reference_data("traces/captured") else { return };
    let folder = Folder::new("oracle-captured");
    let trace = captured.join("build.csv.zst");
    let text = STACK.replace("a.csv", trace.to_str().unwrap()).replace("2 blocks", "20%wss");
    let ask = |policy: &str, threads| {
        asked(&folder, &text, &LabelOptions { threads, ..options(policy, &[]) }).unwrap()
    };
    let found = ask("benefit-oracle", 1);
    assert_eq!(found, ask("benefit-oracle", 2), "the same on any number of threads");
    let bound = ask("belady-bypass", 2);
    let summary = |labels: &Labels| {
        let cached = labels.cached.iter().filter(|cached| **cached).count();
        (labels.counts.hits(), labels.counts.admissions(), cached, labels.durations())
    };
    assert_eq!(found.requests.time_ns.len(), 134_808);
    assert_eq!(summary(&found), (589_355, 62_689, 125_576, [369, 393, 124_814, 9_232]));
    assert_eq!(summary(&bound), (621_514, 154_540, 117_983, [4_004, 23_053, 90_926, 16_825]));
    assert!(found.counts.hits() <= bound.counts.hits());
}
