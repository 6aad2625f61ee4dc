//! Servers that decide by trained models, which are replaced while they run.

use crate::monitored::get;
use crate::setup::{BLOCK, Guest, MIB, Running, STACK, Setup, formatted, pattern};
use cachewright_cache::{Cache, Plan};
use cachewright_daemon::LivePlan;
use cachewright_policy::Policy;
use cachewright_policy::rc_rnn::labels::MAGIC;
use cachewright_result::status::LiveStatus;
use cachewright_trace::{Batch, OpenOptions, open, state_path};
use cachewright_types::{Bytes, Nanos, Op, Request, Rng, Seed, TenantId};
use std::path::{Path, PathBuf};

/// Requests of each client before the first change of models and behind it.
const REQUESTS: u64 = 400;

/// A file of labels in place of a network: what to do at each request, drawn from a seed.
pub fn labels(seed: u64) -> Vec<u8> {
    let mut rng = Seed(seed).rng();
    MAGIC.iter().copied().chain((0..20_000).map(|_| rng.below(4) as u8)).collect()
}

fn stack() -> String {
    let policy = "policy = \"rc-rnn\"\nmodels = { mail = \"mail.model\" }";
    let serve = "[serve]\nrecord = \"kept\"\nmonitor = \"127.0.0.1:0\"";
    let text = STACK.replace("policy = \"s3-fifo\"", policy).replace("[serve]", serve);
    text.replace("capacity = \"4MiB\"", "capacity = \"1MiB\"")
}

/// A stack of `rc-rnn` with a first model.
fn modelled() -> Setup {
    let setup = formatted(&[]).with_stack(&stack());
    std::fs::write(setup.path("mail.model"), labels(1)).unwrap();
    setup
}

/// Writes and reads blocks, some of them often, and checks what is read.
pub fn work(guest: &mut Guest, content: &mut [u8], rng: &mut Rng, requests: u64) {
    for _ in 0..requests {
        let most = if rng.below(2) == 0 { 60 } else { 1500 };
        let block = rng.below(most);
        if rng.below(3) == 0 {
            let seed = rng.below(250) as u8;
            content[block as usize] = seed;
            guest.write(block * BLOCK, &pattern(seed, BLOCK));
        } else {
            let found = guest.read(block * BLOCK, BLOCK);
            let seed = content[block as usize];
            let expected =
                if seed == u8::MAX { vec![0; BLOCK as usize] } else { pattern(seed, BLOCK) };
            assert_eq!(found, expected, "block {block}");
        }
    }
}

/// Decides about the requests of a recording that begins at `origin`; returns when it ends.
pub fn replay(cache: &mut Cache<Box<dyn Policy>>, path: &Path, origin: u64) -> u64 {
    let mut reader = open(path, &OpenOptions::default()).unwrap();
    let (mut batch, mut plan, mut end) = (Batch::default(), Plan::default(), origin);
    while reader.read(&mut batch, 1000).unwrap() > 0 {
        for found in batch.iter() {
            let name = &reader.volumes()[found.volume as usize];
            let tenant = TenantId(u16::from(name != "a"));
            let request = Request {
                time: Nanos(origin + found.time_ns),
                offset: Bytes(found.offset_bytes),
                length: Bytes(found.length_bytes),
                op: found.op,
                tenant,
            };
            end = origin + found.time_ns;
            cache.on(&request, &mut plan);
            if matches!(found.op, Op::Read | Op::Write) {
                cache.background_ops(cache.engine().pool_of(tenant), &mut plan);
            }
        }
        batch.clear();
    }
    end
}

pub fn recordings(setup: &Setup) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(setup.path("kept")).unwrap();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    // Without the states beside them.
    found.retain(|path| path.extension().is_some_and(|extension| extension == "parquet"));
    found.sort();
    found
}

/// Another model takes over.
fn replace_model(setup: &Setup, running: &Running, seed: u64) {
    std::fs::write(setup.path("mail.model"), labels(seed)).unwrap();
    let mut said = running.reload(&setup.stack);
    while said != "models: others decide from now on" {
        said = running.next_line();
    }
}

/// Two clients work, and meanwhile another model takes over; returns what was counted by then.
fn served_by_two_models(setup: &Setup, running: &Running) -> LiveStatus {
    let line = running.lines.iter().find(|line| line.starts_with("monitor: ")).unwrap().clone();
    let clients = ["a", "second"].map(|export| running.connect(export));
    let workers: Vec<_> = clients
        .into_iter()
        .zip(1..)
        .map(|(mut guest, seed)| {
            std::thread::spawn(move || {
                let (mut content, mut rng) = (vec![u8::MAX; 2048], Seed(seed).rng());
                work(&mut guest, &mut content, &mut rng, 3 * REQUESTS);
            })
        })
        .collect();
    let status = || serde_json::from_str::<LiveStatus>(&get(&line, "/status")).unwrap();
    while status().tenants[0].requests[0].count < REQUESTS / 2 {}
    replace_model(setup, running, 2);
    workers.into_iter().for_each(|worker| worker.join().unwrap());
    status()
}

/// What was served is what a replay of both recordings decides with another model for the second,
/// and not what it decides with one model.
fn check_replay(plan: &LivePlan, found: [&Path; 2], served: &LiveStatus) {
    let mut cache = plan.cache(&[], &[]).unwrap();
    let end = replay(&mut cache, found[0], 0);
    let mut kept = plan.cache(&[], &[]).unwrap();
    replay(&mut kept, found[0], 0);
    for pool in 0..cache.engine().pools() {
        cache.load_models(pool, &[("mail".to_owned(), labels(2))]).unwrap();
    }
    replay(&mut cache, found[1], end);
    replay(&mut kept, found[1], end);
    let counts = |cache: &Cache<Box<dyn Policy>>, tenant: u16| {
        let found = cache.engine().counts(TenantId(tenant));
        let hits = (found.read_hits, found.write_hits);
        (found.reads, found.writes, hits, found.admissions(), found.bypasses(), found.evictions)
    };
    for (tenant, status) in (0..).zip(&served.tenants) {
        let found = status.blocks;
        let hits = (found.read_hits, found.write_hits);
        let (admissions, bypasses) = (found.admissions, found.bypasses);
        let expected = (found.reads, found.writes, hits, admissions, bypasses, found.evictions);
        assert_eq!(counts(&cache, tenant), expected);
        assert_ne!(counts(&kept, tenant), expected, "the first model decides otherwise");
        assert!(bypasses > 0 && found.evictions > 0);
    }
}

#[test]
fn decisions_behind_another_model_are_those_of_a_replay_that_changes_there() {
    let setup = modelled();
    let plan = setup.plan().unwrap();
    let running = setup.start();
    let served = served_by_two_models(&setup, &running);
    // One more begins, whose state is not written if what is saved decided by the first model.
    replace_model(&setup, &running, 3);
    running.stop();
    let found = recordings(&setup);
    assert_eq!(found.len(), 3, "one by each model");
    check_replay(&plan, [&found[0], &found[1]], &served);
    assert!(found.iter().all(|path| state_path(path).exists()));
}

#[test]
fn a_recording_in_a_file_ends_where_another_model_decides_and_the_file_begins_anew() {
    let setup = modelled();
    let setup = Setup { stack: setup.stack.replace("record = \"kept\"\n", ""), ..setup };
    let plan = setup.plan().unwrap();
    let running = setup.start_recording("served.parquet");
    let served = served_by_two_models(&setup, &running);
    let line = running.next_line();
    let (first, last) = (setup.path("served-1.parquet"), setup.path("served.parquet"));
    assert!(line.contains(last.to_str().unwrap()), "{line}");
    assert!(line.ends_with("served.parquet@0s` begins with it as it is"), "{line}");
    assert!(first.exists() && !last.exists());
    assert!(state_path(&first).exists() && state_path(&last).exists());
    // A stack by which nothing decides otherwise goes on with the recording.
    let capped = setup.stack.replacen("name = \"a\"", "name = \"a\"\nmax_iops = 5000", 1);
    assert_eq!(running.reload(&capped), "reloaded; nothing to be told");
    running.stop();
    assert!(!setup.path("served-2.parquet").exists());
    check_replay(&plan, [&first, &last], &served);
}

#[test]
fn a_model_that_cannot_be_used_is_refused_by_key_and_the_one_before_goes_on() {
    let setup = modelled();
    let running = setup.start();
    let mut guest = running.connect("a");
    std::fs::write(setup.path("mail.model"), "no model").unwrap();
    let line = running.reload(&setup.stack);
    assert!(line.contains("`cache.models`: found a file that `rc-rnn` cannot use"), "{line}");
    std::fs::remove_file(setup.path("mail.model")).unwrap();
    let line = running.reload(&setup.stack);
    assert!(
        line.contains("`cache.models.mail`: found `") && line.contains("cannot be read"),
        "{line}"
    );
    std::fs::write(setup.path("mail.model"), labels(1)).unwrap();
    let line = running.reload(&setup.stack.replace("mail =", "web ="));
    assert!(line.contains("`cache.workload`: found `web`, expected `mail`"), "{line}");
    guest.write(0, &pattern(3, MIB));
    assert_eq!(guest.read(0, MIB), pattern(3, MIB));
    assert_eq!(running.reload(&setup.stack), "reloaded; nothing to be told");
    running.stop();
}

#[test]
fn a_start_without_the_models_that_are_needed_is_refused() {
    let setup = modelled();
    let read = |text: &str| {
        LivePlan::read(text, &setup.path("stack.toml"), &[]).err().unwrap().to_string()
    };
    let without = read(&stack().replace("models = { mail = \"mail.model\" }", ""));
    assert!(without.contains("`cache.policy`: `rc-rnn` needs trained models"), "{without}");
    let joint = read(&stack().replace("\"static\"", "\"mlcache\""));
    assert!(joint.contains("expected a file in `cache.model`"), "{joint}");
    let each = read(&stack().replace("\"static\"", "\"icache\""));
    assert!(each.contains("expected a file in `tenant[1].model`"), "{each}");
    let updated = stack().replace("\"static\"", "\"icache\"");
    let updated =
        updated.replacen("name = \"a\"", "name = \"a\"\nmodel = \"a\"\nmodel_updates = [\"b\"]", 1);
    let updated = read(&updated);
    let expected = "`tenant[1].model_updates`: found 1 files, which take over in intervals of a \
                    recorded trace, expected none in a live server: it takes another `model` at a \
                    reload";
    assert!(updated.ends_with(expected), "{updated}");
}
