//! Servers that find out by themselves which kind of workload runs.

use crate::models::{labels, recordings, replay, work};
use crate::setup::{BLOCK, STACK, Setup, formatted, pattern};
use cachewright_cache::Cache;
use cachewright_daemon::LivePlan;
use cachewright_model::{Architecture, Description, Head, NetworkKind, StoredModel};
use cachewright_policy::Policy;
use cachewright_policy::characterize::features;
use cachewright_types::{Seed, TenantId};

/// Requests of each client: kinds are told apart from a thousand on.
const REQUESTS: u64 = 2000;
const KEY: &str = "characterize = { name = \"io-size\", model = \"kinds.model\", every = \"5ms\" }";

/// A logistic model of `io-size` by which small requests are of the kind `small`: its output is
/// `slope` times their share, beside 5 of the kind `large`.
fn kinds(slope: f32) -> Vec<u8> {
    let inputs = features("io-size", &[]).unwrap().names();
    let heads = vec![Head { name: "kind".to_owned(), outputs: 2 }];
    let architecture = Architecture {
        kind: NetworkKind::Logistic,
        inputs: inputs.len(),
        hidden: Vec::new(),
        heads,
    };
    let mut description = Description::plain(architecture);
    description.features = inputs.iter().map(|name| (*name).to_owned()).collect();
    let notes = [("characterizer", "io-size"), ("kinds", "small, large"), ("window", "100")];
    let notes = notes.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned()));
    description.notes = notes.collect();
    let mut weights = vec![0.0; 2 * inputs.len()];
    weights[0] = slope;
    let tensors =
        [("kind.weight".to_owned(), weights), ("kind.bias".to_owned(), vec![0.0, 5.0])].into();
    let test = vec![vec![0.0; inputs.len()]];
    StoredModel::float(description, tensors, test).unwrap().to_bytes().unwrap()
}

/// A stack that begins with the kind `large`, whose clients send small requests.
fn stack() -> String {
    let models = "models = { large = \"large.model\", small = \"small.model\" }";
    let policy = format!("policy = \"rc-rnn\"\n{models}\nworkload = \"large\"\n{KEY}");
    let text = STACK.replace("policy = \"s3-fifo\"", &policy);
    let text = text.replace("[serve]", "[serve]\nrecord = \"kept\"");
    text.replace("capacity = \"4MiB\"", "capacity = \"1MiB\"")
}

fn characterized() -> Setup {
    let setup = formatted(&[]).with_stack(&stack());
    for (name, bytes) in [("large", labels(1)), ("small", labels(2)), ("kinds", kinds(10.0))] {
        std::fs::write(setup.path(&format!("{name}.model")), bytes).unwrap();
    }
    setup
}

/// What a replay of the first recording counts for a tenant under a stack.
fn replayed(setup: &Setup, stack: &str) -> String {
    let plan = LivePlan::read(stack, &setup.path("stack.toml"), &[]).unwrap();
    let mut cache: Cache<Box<dyn Policy>> = plan.cache(&[], &[]).unwrap();
    replay(&mut cache, &recordings(setup)[0], 0);
    let found = cache.engine().counts(TenantId(0));
    format!(
        "`a`: {} of {} blocks read were in the cache, {} of {} written; {} admitted, {} evicted",
        found.read_hits,
        found.reads,
        found.write_hits,
        found.writes,
        found.admissions(),
        found.evictions
    )
}

#[test]
fn the_kind_that_runs_is_found_as_in_a_replay() {
    let setup = characterized();
    let running = setup.start();
    let (mut content, mut rng) = (vec![u8::MAX; 2048], Seed(1).rng());
    work(&mut running.connect("a"), &mut content, &mut rng, REQUESTS);
    let stopped = running.stop();
    assert!(stopped.lines.contains(&replayed(&setup, &stack())), "{:?}", stopped.lines);
    let without = replayed(&setup, &stack().replace(KEY, ""));
    assert!(!stopped.lines.contains(&without), "the kind at the start decides otherwise");
}

#[test]
fn what_cannot_tell_the_kinds_apart_is_refused_by_key() {
    let setup = characterized();
    let read = |text: &str| {
        LivePlan::read(text, &setup.path("stack.toml"), &[]).err().unwrap().to_string()
    };
    let error = read(&stack().replace("kinds.model", "none.model"));
    assert!(error.contains("`cache.characterize.model`: found `"), "{error}");
    let error = read(&stack().replace("kinds.model", "large.model"));
    assert!(error.contains("found a file that `io-size` cannot use"), "{error}");
    let others = stack().replace("large = ", "web = ").replace("small = ", "mail = ");
    let error = read(&others.replace("\"large\"", "\"web\""));
    assert!(error.ends_with("it tells small, large apart, expected some of web, mail"), "{error}");
    let running = setup.start();
    std::fs::write(setup.path("kinds.model"), kinds(20.0)).unwrap();
    let line = running.reload(&stack());
    assert!(line.contains("`cache.characterize.model`: found another content of `"), "{line}");
    std::fs::write(setup.path("kinds.model"), kinds(10.0)).unwrap();
    let line = running.reload(&stack().replace("5ms", "6ms"));
    assert!(line.contains("`cache.characterize`: found"), "{line}");
    assert_eq!(running.reload(&stack()), "reloaded; nothing to be told");
    let mut guest = running.connect("a");
    guest.write(0, &pattern(3, BLOCK));
    assert_eq!(guest.read(0, BLOCK), pattern(3, BLOCK));
    running.stop();
}
