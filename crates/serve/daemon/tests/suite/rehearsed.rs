//! Rehearsals: response times worked by hand, the same bytes for the same files, kills, and what is
//! refused.

use crate::setup::{BLOCK, set};
use cachewright_daemon::LiveError;
use cachewright_daemon::rehearsal::RehearsalCommand;
use cachewright_live::record::{RecordFile, RecordPart};
use cachewright_result::rehearsal::{RehearsalAnswer, RehearsedCase};
use cachewright_trace::{Batch, Record};
use cachewright_types::{Op, Rng, Seed};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

const MS: u64 = 1_000_000;
const US: u64 = 1_000;

/// A stack without any device, and a recording of its volumes.
struct Stage {
    folder: TempDir,
    stack: PathBuf,
    recording: PathBuf,
}

/// Sixteen cached blocks for the volumes `a` and `b`.
fn stack(settings: &[(&str, &str)]) -> String {
    let mut cache = vec![set("capacity", "\"16 blocks\""), set("policy", "\"lru\"")];
    for (key, value) in settings {
        cache.retain(|(known, _)| known != key);
        cache.push(set(key, &format!("\"{value}\"")));
    }
    let cache: Vec<String> = cache.iter().map(|(key, value)| format!("{key} = {value}")).collect();
    let serve = "[serve]\ndevices = [\"cache.img\"]\nsegment = \"64KiB\"\n";
    let tenant = |name: &str| format!("[[tenant]]\nname = \"{name}\"\nbacking = \"{name}.img\"\n");
    format!("[cache]\n{}\n{serve}{}{}", cache.join("\n"), tenant("a"), tenant("b"))
}

/// Requests of so many nanoseconds, a volume, an operation, and blocks.
type Recorded = (u64, u32, Op, u64, u64);

impl Stage {
    fn new(stack: &str, requests: impl IntoIterator<Item = Recorded>) -> Stage {
        let folder = TempDir::new().unwrap();
        let (path, recording) = (folder.path().join("stack.toml"), folder.path().join("r.parquet"));
        std::fs::write(&path, stack).unwrap();
        let names = ["a", "b"].map(str::to_owned).to_vec();
        let file = RecordFile::create(&recording, names, None).unwrap();
        let mut batch = Batch::default();
        for (time_ns, volume, op, first, blocks) in requests {
            let (offset_bytes, length_bytes) = (first * BLOCK, blocks * BLOCK);
            batch.push(Record { time_ns, offset_bytes, length_bytes, op, volume });
        }
        file.sink().take(RecordPart { requests: batch, ..RecordPart::default() }).unwrap();
        file.finish().unwrap();
        Stage { folder, stack: path, recording }
    }

    fn command(&self, given: &[&str]) -> Result<RehearsalCommand, LiveError> {
        let of = |path: &Path| path.display().to_string();
        let mut words = vec![of(&self.stack), "--recording".to_owned(), of(&self.recording)];
        words.extend(given.iter().map(|word| (*word).to_owned()));
        RehearsalCommand::read(&words).map(Option::unwrap)
    }

    fn answer(&self, given: &[&str]) -> Result<RehearsalAnswer, LiveError> {
        self.command(given)?.answer()
    }

    /// The only case.
    fn case(&self, given: &[&str]) -> RehearsedCase {
        let mut answer = self.answer(given).unwrap();
        assert_eq!(answer.cases.len(), 1);
        answer.cases.remove(0)
    }
}

/// Devices whose commands take fixed times.
const FIXED: [&str; 4] = [
    "--drive",
    "fixed-latency:read=100us,write=60us",
    "--backing",
    "fixed-latency:read=1ms,write=2ms,parallelism=1",
];

fn with<'a>(devices: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    [devices, more].concat()
}

/// Mean response times by kind of a tenant, in nanoseconds; those of one request are exact.
fn means(case: &RehearsedCase, tenant: usize) -> Vec<(String, u64)> {
    let found = case.tenants[tenant].responses.iter();
    found.map(|one| (one.kind.clone(), (one.mean_us * 1e3).round() as u64)).collect()
}

/// By hand, with 3 us for a request, 2 us for an operation and 5 us for an answer:
///
/// - the miss at 0: 3 us, the backing device reads for 1 ms, 2 us, 5 us: 1,010 us. The block is
///   appended to the log, and the answer does not wait for that;
/// - the hit at 10 ms: 3 us, the cache device reads for 100 us, 2 us, 5 us: 110 us;
/// - the write at 20 ms: 3 us, its group is written in 60 us, 2 us, 5 us: 70 us;
/// - the flush at 30 ms: 3 us, a sync of the log, which takes no time here, 2 us, 5 us: 10 us. The
///   backing device was not written to.
#[test]
fn response_times_are_those_worked_by_hand() {
    let requests = [
        (0, 0, Op::Read, 0, 1),
        (10 * MS, 1, Op::Flush, 0, 0),
        (15 * MS, 0, Op::Write, 3, 1),
        (30 * MS, 0, Op::Flush, 0, 0),
    ];
    let stage = Stage::new(&stack(&[]), requests);
    let processor = ["--processor", "request=3us,operation=2us,answer=5us"];
    let case = stage.case(&with(&FIXED, &processor));
    let expected = [("read", 1_010 * US), ("write", 70 * US), ("flush", 10 * US)];
    assert_eq!(means(&case, 0), expected.map(|(kind, time)| (kind.to_owned(), time)));
    assert_eq!(case.seconds, 0.030_010);
    let hit = [(0, 0, Op::Read, 0, 1), (10 * MS, 0, Op::Read, 0, 1)];
    let case = Stage::new(&stack(&[]), hit).case(&with(&FIXED, &processor));
    assert_eq!(means(&case, 0), [("read".to_owned(), (1_010 + 110) * US / 2)]);
    assert_eq!((case.tenants[0].read_accesses, case.tenants[0].read_hits), (2, 1));
    let devices: Vec<_> = case.devices.iter().map(|one| (one.reads, one.write_bytes)).collect();
    // The log wrote the header of a segment, the descriptor of a group, and the block.
    assert_eq!(devices, [(1, 3 * BLOCK), (1, 0), (0, 0)]);
    // Of 10.11 ms the backing device read for 1 ms.
    assert!((case.devices[1].busy_share - 1.0 / 10.11).abs() < 1e-9, "{case:?}");
}

/// By hand, with the same times and a server that sleeps: 7 us from the end of an operation until
/// it runs, 9 us from a timer, 20 us for what is cold. The volume answers 500 us later.
///
/// - the miss at 0: the server has just started, 3 us, a timer of 500 us, 9 + 20 us late; the
///   backing device reads for 1 ms, 7 + 20 us late, 2 us, 5 us: 1,566 us;
/// - the write at 10 ms: 20 us, 3 us, its group is written in 60 us, 7 + 20 us late, 2 us, 5 us:
///   117 us;
/// - the hit at 20 ms: 20 us, 3 us, the cache device reads for 40 us. A look would have found that,
///   and is not begun, because the last two were in vain: 7 + 20 us late, 2 us, 5 us: 97 us.
#[test]
fn a_server_that_sleeps_answers_late_by_what_was_measured() {
    let file = "[processor]\nrequest = \"3us\"\noperation = \"2us\"\nanswer = \"5us\"\n\
        wake = [\"7us\"]\ntimer = [\"9us\"]\ncold = [\"20us\"]\n\
        [device]\nmodel = \"measured-latency\"\nread = [\"40us\"]\nwrite = [\"60us\"]\n";
    let requests = [(0, 0, Op::Read, 0, 1), (10 * MS, 0, Op::Write, 3, 1)];
    let mean = |requests: &[Recorded]| {
        let stage = Stage::new(&stack(&[]), requests.iter().copied());
        let machine = stage.folder.path().join("machine.toml");
        std::fs::write(&machine, file).unwrap();
        let machine = machine.to_str().unwrap();
        let late = ["--set", "serve.backing_delay=500us"];
        let devices = ["--drive", machine, "--processor", machine, "--backing", FIXED[3]];
        means(&stage.case(&with(&devices, &late)), 0)
    };
    let expected = [("read", 1_566 * US), ("write", 117 * US)];
    assert_eq!(mean(&requests), expected.map(|(kind, time)| (kind.to_owned(), time)));
    let [miss, write] = requests;
    let found = mean(&[miss, write, (20 * MS, 0, Op::Read, 0, 1)]);
    assert_eq!(found[0], ("read".to_owned(), (1_566 + 97) * US / 2));
}

/// `b` writes 2,000 blocks per second where its disk takes some 500: the room in the log is full of
/// what it has left behind. `a` reads and writes blocks that are cached, `per_second` of them.
fn beside_an_overrun_disk(per_second: u64) -> Stage {
    let cache = stack(&[("capacity", "2048 blocks"), ("partition", "equal")]);
    let quiet = (0..2 * per_second).map(|nth| {
        let op = if nth % 2 == 0 { Op::Write } else { Op::Read };
        (nth * 1_000 * MS / per_second + 1, 0, op, nth % 50, 1)
    });
    let mut rng = Seed(4).rng();
    let busy = (0..4_000).map(|nth| (nth * 500 * US, 1, Op::Write, rng.below(100_000), 1));
    let mut requests: Vec<Recorded> = quiet.chain(busy).collect();
    requests.sort_by_key(|request| request.0);
    Stage::new(&cache.replace("segment = \"64KiB\"", "segment = \"1MiB\""), requests)
}

#[test]
fn a_slow_disk_holds_up_its_own_tenant_and_no_other() {
    let devices =
        ["--drive", "fixed-latency", "--backing", "fixed-latency:read=2ms,write=2ms,parallelism=1"];
    for per_second in [200, 1_000, 2_000] {
        let stage = beside_an_overrun_disk(per_second);
        let case = stage.case(&with(&devices, &["--verify"]));
        assert_eq!(case.verified.unwrap().violations, 0);
        let [own, other] = [0, 1].map(|tenant| &case.tenants[tenant].responses);
        assert!(other[0].mean_us > 400_000.0, "its disk is overrun: {other:?}");
        for kind in own {
            let is_prompt = kind.mean_us < 500.0 && kind.p50_us < 150.0 && kind.p99_us < 10_000.0;
            assert!(is_prompt, "{per_second}: {kind:?}");
        }
    }
}

#[test]
fn what_was_answered_beside_an_overrun_disk_is_read_back_after_kills() {
    let stage = beside_an_overrun_disk(1_000);
    let kills = ["--kill-at", "300ms", "--kill-at", "901ms", "--kill-at", "1700ms", "--verify"];
    let case = stage.case(&with(&REAL, &kills));
    assert_eq!((case.kills.len(), case.verified.unwrap().violations), (3, 0));
}

/// Requests of both volumes: mostly of few blocks, a write in three, some trims and flushes.
fn mixed(seed: u64, count: u64, gap_ns: u64) -> Vec<Recorded> {
    let mut rng = Seed(seed).rng();
    let mut time_ns = 0;
    let mut request = |_| {
        time_ns += rng.below(2 * gap_ns);
        let u = rng.unit();
        let (first, blocks) = ((u * u * 60.0) as u64, 1 + rng.below(3));
        let volume = rng.below(2) as u32;
        match rng.below(40) {
            0..25 => (time_ns, volume, Op::Read, first, blocks),
            25..36 => (time_ns, volume, Op::Write, first, blocks),
            36 => (time_ns, volume, Op::Trim, first, 2 * blocks),
            _ => (time_ns, volume, Op::Flush, 0, 0),
        }
    };
    (0..count).map(&mut request).collect()
}

/// An SSD, and disks whose arms move.
const REAL: [&str; 4] = ["--drive", "sata-850pro", "--backing", "hdd-7200-2tb"];

#[test]
fn the_same_files_and_seed_give_the_same_bytes_and_another_seed_the_same_counts() {
    let stage = Stage::new(&stack(&[("policy", "s3-fifo")]), mixed(1, 600, 2 * MS));
    let text = |seed: &str, kill: &[&str]| {
        let given = with(&REAL, &with(&["--verify", "--seed", seed], kill));
        serde_json::to_string(&stage.answer(&given).unwrap()).unwrap()
    };
    let kill = ["--kill-at", "500ms"];
    assert_eq!(text("1", &kill), text("1", &kill));
    let renamed = text("2", &[]).replace("\"seed\":2", "\"seed\":1");
    assert_eq!(renamed, text("1", &[]));
}

#[test]
fn a_closed_loop_keeps_its_clients_busy_and_caps_hold_them_back() {
    let stage = Stage::new(&stack(&[]), mixed(2, 400, MS));
    let wide = ["--drive", "fixed-latency", "--backing", "fixed-latency:read=1ms,write=1ms"];
    let alone = stage.case(&with(&wide, &["--clients", "1", "--verify"]));
    let many = stage.case(&with(&wide, &["--clients", "8"]));
    assert!(many.seconds < alone.seconds / 1.5, "{} s, {} s", many.seconds, alone.seconds);
    let answered = |case: &RehearsedCase| -> u64 {
        case.tenants.iter().flat_map(|tenant| &tenant.responses).map(|kind| kind.count).sum()
    };
    assert_eq!((answered(&alone), answered(&many)), (400, 400));
    assert_eq!(alone.verified.unwrap().violations, 0);
    let slow = ["--clients", "8", "--set", "tenant.a.max_iops=50"];
    let slow = stage.case(&with(&wide, &slow));
    let own: u64 = slow.tenants[0].responses.iter().map(|kind| kind.count).sum();
    let least = (own as f64 - 60.0) / 50.0;
    assert!(slow.seconds > least, "{own} requests in {} s", slow.seconds);
}

#[test]
fn what_if_rehearses_the_stack_as_it_is_and_with_other_keys() {
    let stage = Stage::new(&stack(&[]), mixed(3, 500, 2 * MS));
    let larger = ["--what-if", "capacity=64 blocks, policy=s3-fifo"];
    let what_ifs = with(&larger, &["--what-if", "write=write-around"]);
    let answer = stage.answer(&with(&FIXED, &what_ifs)).unwrap();
    let found: Vec<_> = answer.cases.iter().map(|case| (&*case.policy, &*case.write)).collect();
    let expected = [("lru", "write-back"), ("s3-fifo", "write-back"), ("lru", "write-around")];
    assert_eq!(found, expected);
    assert_eq!(answer.cases[1].capacity_bytes, 64 * BLOCK);
    let hits = |case: usize| answer.cases[case].tenants[0].hit_ratio;
    assert!(hits(1) > hits(0), "{} and {}", hits(1), hits(0));
    assert_eq!(answer.cases[0].what_if, [""; 0]);
    assert_eq!(answer.cases[1].what_if.len(), 2);
}

#[test]
fn the_command_prints_a_table_or_the_answer_and_says_what_is_wrong() {
    let stage = Stage::new(&stack(&[]), mixed(5, 300, 2 * MS));
    let run = |given: &[&str]| {
        let words = ["rehearse", "stack.toml", "--recording", "r.parquet"];
        let done = Command::new(env!("CARGO_BIN_EXE_cachewrightd"))
            .current_dir(stage.folder.path())
            .args([&words[..], given].concat())
            .output()
            .unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (done.status.code(), text(done.stdout), text(done.stderr))
    };
    let (status, table, _) = run(&with(&FIXED, &["--verify", "--kill-at", "100ms"]));
    assert_eq!(status, Some(0));
    for part in ["as it is: 64KiB, lru", "p99.9", "killed at 100ms", "0 of them wrong", "log: "] {
        assert!(table.contains(part), "{part} in {table}");
    }
    let shared = with(&FIXED, &["--json", "--shared-backing", "--cache-device", "8MiB"]);
    let (_, json, _) = run(&shared);
    let answer: RehearsalAnswer = serde_json::from_str(&json).unwrap();
    let holds: Vec<usize> = answer.cases[0].devices.iter().map(|one| one.holds.len()).collect();
    assert_eq!(holds, [1, 2]);
    let seconds = |speed: &str| {
        let (_, json, _) = run(&with(&FIXED, &["--json", "--speed", speed]));
        serde_json::from_str::<RehearsalAnswer>(&json).unwrap().cases[0].seconds
    };
    let ratio = seconds("1") / seconds("0.5");
    assert!((ratio - 0.5).abs() < 0.05, "{ratio}");
    let (status, _, error) = run(&["--drive", "nvme", "--backing", "ram"]);
    assert_eq!(status, Some(2));
    assert!(error.starts_with("error: --drive: found `nvme`, expected one of"), "{error}");
    assert!(run(&["--help"]).1.starts_with("usage: cachewrightd rehearse"));
}

/// What came of a rehearsal with kills.
#[derive(Debug, Default)]
struct KillTally {
    sectors: u64,
    dirty_blocks: u64,
    unanswered: u64,
}

/// Kills a server at a random moment, one in three twice, and reads back all that was written.
fn kill(number: u64) -> KillTally {
    let policies = ["lru", "s3-fifo", "arc", "fifo"];
    let modes = ["write-back", "write-back", "write-through", "write-around"];
    let mut rng: Rng = Seed(number).derive("kill").rng();
    let (policy, mode) = (policies[(number % 4) as usize], modes[(number / 4 % 4) as usize]);
    let settings = [("policy", policy), ("write", mode)];
    let stage = Stage::new(&stack(&settings), mixed(number, 300, MS / 2));
    let [at, again] = [(); 2].map(|()| format!("{}ns", rng.below(150 * MS)));
    let devices = if number % 10 == 9 { REAL } else { FIXED };
    let seed = number.to_string();
    // What is written after a kill cannot hide what it has lost.
    let given = ["--kill-at", &at, "--until", &at, "--seed", &seed, "--verify"];
    let twice = ["--kill-at", &again];
    let more = if number.is_multiple_of(3) { &twice[..] } else { &[] };
    let case = stage.case(&with(&devices, &with(&given, more)));
    let verified = case.verified.unwrap();
    assert_eq!(verified.violations, 0, "{number}: {:?}", verified.examples);
    assert!(case.kills.iter().all(|kill| kill.recovery_seconds > 0.0));
    let errors = case.tenants.iter().flat_map(|tenant| &tenant.responses);
    assert_eq!(errors.map(|kind| kind.errors).sum::<u64>(), 0);
    KillTally {
        sectors: verified.sectors,
        dirty_blocks: case.kills.iter().map(|kill| kill.dirty_blocks).sum(),
        unanswered: case.kills.iter().map(|kill| kill.unanswered_requests).sum(),
    }
}

/// `make rehearsed-kills` kills 10,000.
#[test]
fn what_was_answered_is_read_back_after_a_kill_at_any_moment() {
    let count = std::env::var("CACHEWRIGHT_REHEARSED_KILLS").ok();
    let count = count.map_or(30, |text| text.parse().unwrap());
    let mut all = KillTally::default();
    for number in 0..count {
        let one = kill(number);
        all.sectors += one.sectors;
        all.dirty_blocks += one.dirty_blocks;
        all.unanswered += one.unanswered;
    }
    println!("{all:?}");
    assert!(all.sectors > 100 * count && all.dirty_blocks > count && all.unanswered > 0, "{all:?}");
}

/// A trim had no answer at the kill, and a write behind it had one. The trim was sent again, and
/// the content that it took was missed.
#[test]
fn a_request_that_is_sent_again_may_change_what_was_answered_meanwhile() {
    assert!(kill(1893).unanswered > 0);
}

#[test]
fn a_refusal_names_what_was_found_and_what_is_expected() {
    let stage = Stage::new(&stack(&[]), mixed(4, 50, MS));
    let refused = |stage: &Stage, given: &[&str]| {
        let error = stage.answer(given).unwrap_err();
        assert_eq!(error.status(), 2, "{error}");
        error.to_string()
    };
    let one = stack(&[]).replace("name = \"b\"", "name = \"c\"");
    let said = refused(&Stage::new(&one, mixed(4, 50, MS)), &FIXED);
    assert!(said.contains("r.parquet: found the volume `b`, expected the name of a"), "{said}");
    // The last `--recording` counts.
    let said = refused(&stage, &with(&FIXED, &["--recording", "none"]));
    assert!(said.contains("--recording: none: found nothing there, expected"), "{said}");
    let folder = stage.folder.path().display().to_string();
    let said = refused(&stage, &with(&FIXED, &["--recording", &folder]));
    assert!(said.contains("found no finished recording"), "{said}");
    let small = ["--drive", "ram:capacity=1MiB", "--backing", "ram"];
    let said = refused(&stage, &small);
    assert!(said.contains("--drive: found 1MiB left on `ram:capacity=1MiB`, expected"), "{said}");
    let said = refused(&stage, &with(&FIXED, &["--cache-device", "2500KiB"]));
    assert!(said.contains("expected"), "{said}");
    let huge = with(&FIXED, &["--set", "capacity=4000TiB", "--set", "block=1MiB"]);
    let said = refused(&stage, &huge);
    assert!(said.contains("cache.capacity"), "{said}");
}
