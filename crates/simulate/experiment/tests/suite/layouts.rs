//! Layouts in stack files: tenants on channels of their own, what is refused, what is shown, and
//! that no tenant disturbs a neighbour.
#![allow(clippy::unwrap_used, clippy::panic)] // a failed test may panic

use crate::common;

use cachewright_experiment::{RunOptions, run};
use common::{Folder, answer_to, number, pairs, quiet, small_trace};
use serde_json::Value;

/// Four channels of 4 MiB raw each behind a link without bounds; disks of fixed latency.
const TIERED: &str = concat!(
    "[cache]
capacity = \"400 blocks\"
partition = \"equal\"
layout = \"dedicated\"
",
    four_channels!("device.cache"),
    "lanes = 32
lane_rate = 100000
[device.backing]
model = \"fixed-latency\"
per_tenant = true
[replay]
loop = \"closed\"
queue_depth = 4
[[tenant]]
name = \"quiet\"
trace = \"a.csv\"
channels = [1, 2]
"
);

const NOISY: &str = "
[[tenant]]
name = \"noisy\"
trace = \"b.csv\"
queue_depth = 16
";

/// The same on one drive with a data cache.
const WHOLE: &str = concat!(
    "[cache]
capacity = \"64 blocks\"
partition = \"equal\"
layout = \"dedicated\"
",
    four_channels!("device.ssd"),
    "channel_groups = \"all\"
lanes = 32
lane_rate = 100000
[machine]
system = \"ssd\"
[replay]
loop = \"closed\"
queue_depth = 4
[[tenant]]
name = \"quiet\"
trace = \"a.csv\"
channels = [1, 2]
"
);

/// Requests of a writer that overwrites so many blocks at random.
fn writes(requests: u64, blocks: u64) -> String {
    let mut rng = cachewright_types::Seed(9).rng();
    let line = |at: u64| format!("1,W,{},4096,{}\n", rng.below(blocks) * 4096, at * 10);
    (0..requests).map(line).collect()
}

fn folder(name: &str) -> Folder {
    let folder = Folder::new(name);
    folder.with("a.csv", &small_trace(5, 3000, 600));
    folder.with("b.csv", &writes(20_000, 600));
    folder
}

fn answer(folder: &Folder, text: &str, set: &[(&str, &str)]) -> Result<Value, String> {
    answer_to(folder, text, set).map(|mut found| found["cases"][0].take())
}

/// The neighbour writes and makes its channels clean, and the quiet tenant's every figure stays:
/// it shares nothing but the link, which takes no time here.
#[test]
fn with_channels_of_its_own_a_tenant_is_as_if_alone_on_them() {
    let folder = folder("layout-alone");
    for (text, alone, used) in [(TIERED, "200 blocks", true), (WHOLE, "32 blocks", false)] {
        let both = format!("{text}{NOISY}");
        let together = answer(&folder, &both, &[]).unwrap();
        let by_itself = answer(&folder, text, &[("capacity", alone)]).unwrap();
        let quiet = |case: &Value| case["timing"]["tenants"][0].clone();
        let each = together["timing"]["channels"]["each"].as_array().unwrap().clone();
        let cleaning = |at: usize| number(&each[at]["dies_cleaning"]);
        assert!(cleaning(0) > 0.05 && cleaning(3) > 0.05, "the writer's channels clean: {each:?}");
        if used {
            assert_eq!(quiet(&together), quiet(&by_itself));
        } else {
            // They share the memory's one channel too.
            let mean = |case: &Value| number(&quiet(case)["mean_ns"]);
            let ratio = mean(&together) / mean(&by_itself);
            assert!((ratio - 1.0).abs() < 0.02, "{ratio}");
            continue;
        }
        let striped = both.replace("channels = [1, 2]\n", "");
        let striped = answer(&folder, &striped, &[("layout", "striped")]).unwrap();
        let tail = |case: &Value| number(&quiet(case)["p99_ns"]);
        assert!(tail(&striped) > 1.1 * tail(&together), "{} {}", tail(&striped), tail(&together));
    }
}

#[test]
fn the_result_shows_the_channel_map_and_what_each_did() {
    let folder = folder("layout-map");
    let text = format!("{TIERED}{NOISY}");
    let timing = answer(&folder, &text, &[]).unwrap()["timing"].clone();
    let channels = &timing["channels"];
    assert_eq!(channels["layout"], "dedicated");
    let groups = channels["groups"].as_array().unwrap();
    let owners: Vec<&str> =
        groups.iter().map(|group| group["tenants"][0].as_str().unwrap()).collect();
    assert_eq!(owners, ["noisy", "quiet", "quiet", "noisy"]);
    let sum: u64 = groups.iter().map(|group| group["write_bytes"].as_u64().unwrap()).sum();
    assert_eq!(Some(sum), timing["devices"][0]["write_bytes"].as_u64());
    let bytes: Vec<f64> = groups.iter().map(|group| number(&group["bytes_per_s"])).collect();
    assert!((bytes[1] / bytes[2] - 1.0).abs() < 0.3, "slots go round the channels: {bytes:?}");
    let each = channels["each"].as_array().unwrap();
    assert!(each.iter().all(|one| (0.0..=1.0).contains(&number(&one["busy"]))));
    let rooms = &timing["rooms"];
    let lies = |at: usize, room: &str| rooms["tenants"][at][room].as_u64();
    assert_eq!(lies(0, "own_blocks"), Some(200), "all of its quota: {rooms}");
    assert_eq!((lies(1, "common_blocks"), lies(1, "elsewhere_blocks")), (Some(0), Some(0)));
    let windows = rooms["windows"].as_array().unwrap();
    assert_eq!(windows.last().unwrap()["own_blocks"], serde_json::json!([200, 200]));
    assert!(timing["migrations"].is_null(), "nothing changed places");
    let striped = answer(&folder, &text.replace("channels = [1, 2]", ""), &[("layout", "striped")]);
    let striped = striped.unwrap()["timing"].clone();
    assert!(striped["rooms"].is_null(), "no rooms without a map");
    let striped = striped["channels"].clone();
    let all = striped["groups"].as_array().unwrap();
    assert!(all.iter().all(|group| group["tenants"].as_array().unwrap().len() == 2));
    let plain = answer(
        &folder,
        &text.replace("channels = [1, 2]", ""),
        &[("layout", "striped"), ("device.cache.channel_groups", "all")],
    );
    assert_eq!(plain.unwrap()["timing"]["channels"]["groups"].as_array().unwrap().len(), 1);
}

#[test]
fn numbers_of_channels_groups_and_flashblox_are_carried_out() {
    let folder = folder("layout-kinds");
    let text = format!("{TIERED}{NOISY}").replace("channels = [1, 2]", "");
    let owners = |set: &[(&str, &str)]| {
        let case = answer(&folder, &text, set).unwrap();
        let groups = case["timing"]["channels"]["groups"].as_array().unwrap().clone();
        let of = |group: &Value| {
            group["tenants"]
                .as_array()
                .unwrap()
                .iter()
                .map(|name| name.as_str().unwrap().chars().next().unwrap())
                .collect::<String>()
        };
        (groups.iter().map(of).collect::<Vec<String>>().join(" "), case)
    };
    assert_eq!(owners(&[("tenant.noisy.channels", "3")]).0, "n n n q");
    assert_eq!(owners(&[("tenant.noisy.weight", "2")]).0, "q n n n", "by weight");
    let grouped = [("device.cache.channel_groups", "0,1 2,3"), ("tenant.quiet.channels", "[2, 3]")];
    assert_eq!(owners(&grouped).0, "n q");
    // 400 blocks of 768 per channel each; then 1,200 and 400.
    assert_eq!(owners(&[("layout", "flashblox"), ("capacity", "800 blocks")]).0, "q n  ");
    let set = [
        ("layout", "flashblox"),
        ("capacity", "2400 blocks"),
        ("partition", "static"),
        ("tenant.quiet.weight", "3"),
    ];
    let (found, case) = owners(&set);
    assert_eq!(found, "q q q n");
    let quotas = [0, 1].map(|at| case["tenants"][at]["quota_blocks"].as_u64().unwrap());
    assert_eq!(quotas, [1800, 600]);
    // A partition that changes while running keeps within what the channels hold.
    let set = [
        ("capacity", "1000 blocks"),
        ("partition", "hull"),
        ("replay.interval", "20ms"),
        ("tenant.quiet.channels", "1"),
    ];
    let (_, case) = owners(&set);
    let quota = case["tenants"][0]["quota_blocks"].as_u64().unwrap();
    assert!(quota <= 704, "768 of a channel without 64 spare ones: {quota}");
}

/// Curves of the whole traces, of the cache's own policy.
const BY_CURVES: &str =
    "{ name = \"hull\", ahead = true, by_ratio = true, own_policy = true, least_slope = 0.05 }";

#[test]
fn on_demand_gives_what_curves_say_is_needed() {
    let folder = folder("layout-on-demand");
    let text = format!("{TIERED}{NOISY}").replace("channels = [1, 2]", "");
    let found = |policy: &str, layout: &str| {
        let set = [
            ("layout", layout),
            ("partition", BY_CURVES),
            ("capacity", "1500 blocks"),
            ("replay.profile_share", "1.0"),
            ("policy", policy),
        ];
        let case = answer(&folder, &text, &set).unwrap();
        let groups = case["timing"]["channels"]["groups"].as_array().unwrap().clone();
        let owners: Vec<usize> =
            groups.iter().map(|group| group["tenants"].as_array().unwrap().len()).collect();
        let lent = groups.iter().filter(|group| group["lent"] == true).count();
        let quotas = [0, 1].map(|at| case["tenants"][at]["quota_blocks"].as_u64().unwrap());
        (owners, quotas, lent)
    };
    for policy in ["lru", "smq"] {
        // Up to 600 blocks and 64 beside are more than half of a channel of 768.
        let (owners, quotas, lent) = found(policy, "on-demand");
        assert_eq!((owners, quotas, lent), (vec![1, 1, 0, 0], [704, 704], 0), "{policy}");
        let (owners, pooled, _) = found(policy, "{ name = \"on-demand\", watermark = 1.0 }");
        assert_eq!(owners, [2, 2, 0, 0], "{policy}: both in the pool");
        let lends = "{ name = \"on-demand\", watermark = 1.0, lend = true }";
        let (owners, quotas, lent) = found(policy, lends);
        assert_eq!((owners, quotas, lent), (vec![2; 4], pooled, 2), "{policy}: on all channels");
        assert!(quotas.iter().all(|quota| (400..=600).contains(quota)), "{policy}: {quotas:?}");
    }
}

/// Each makes use of up to 600 blocks: of 1,500 in common channels, and of a channel of 768 each.
#[test]
fn every_layout_tells_how_much_of_its_space_is_used() {
    let folder = folder("layout-space");
    let text = format!("{TIERED}{NOISY}").replace("channels = [1, 2]", "");
    let own =
        [("partition", BY_CURVES), ("capacity", "1500 blocks"), ("replay.profile_share", "1.0")];
    let found = |set: &[(&str, &str)]| answer(&folder, &text, &[&own, set].concat()).unwrap();
    for (layout, allocated) in [("striped", 1500.0), ("flashblox", 1536.0), ("on-demand", 1536.0)] {
        let case = found(&[("layout", layout)]);
        let required = [0, 1].map(|at| number(&case["tenants"][at]["required_blocks"]));
        let used = number(&case["timing"]["channels"]["space_utilisation"]);
        assert_eq!(used, required.iter().sum::<f64>() / allocated, "{layout}: {required:?}");
    }
    let silent = found(&[("partition", "equal"), ("layout", "flashblox")]);
    assert!(silent["timing"]["channels"]["space_utilisation"].is_null(), "who knows what is used");
}

/// `rooms.parquet` says what `timing.rooms` does.
#[test]
fn rooms_are_written_beside_the_result() {
    let folder = folder("layout-rooms-file");
    let (out, stack) = (folder.path.join("out"), folder.path.join("stack.toml"));
    let set = pairs(&[("replay.windows", "5")]);
    let options = RunOptions { out: Some(out.clone()), set, ..RunOptions::default() };
    let text = format!("{TIERED}{NOISY}");
    let first = run(&text, &stack, &options, &quiet).unwrap();
    assert_eq!(first["rooms"], "rooms.parquet");
    let bytes = std::fs::read(out.join("rooms.parquet")).unwrap();
    assert_eq!(&bytes[..4], b"PAR1");
    run(&text, &stack, &options, &quiet).unwrap();
    assert_eq!(bytes, std::fs::read(out.join("rooms.parquet")).unwrap(), "kept answers too");
    let set = pairs(&[("layout", "striped")]);
    let text = text.replace("channels = [1, 2]", "");
    let striped = run(&text, &stack, &RunOptions { set, ..options }, &quiet).unwrap();
    assert!(striped["rooms"].is_null(), "no rooms without a map");
}

/// Who was told what, and which groups of channels it was given.
fn changes(case: &Value) -> Vec<(String, String, Value)> {
    let word = |one: &Value, key: &str| one[key].as_str().unwrap().to_owned();
    let changes = case["timing"]["channels"]["tenancy"]["changes"].as_array().unwrap();
    let told = |one: &Value| (word(one, "tenant"), word(one, "change"), one["groups"].clone());
    changes.iter().map(told).collect()
}

fn change(tenant: &str, change: &str, groups: Value) -> (String, String, Value) {
    (tenant.into(), change.into(), groups)
}

/// The first leaves with its last answer, in either loop; the third comes then and finds its
/// channels free again.
#[test]
fn tenants_that_leave_make_room_for_others() {
    let folder = folder("layout-tenancy");
    let guest = "
[[tenant]]
name = \"guest\"
trace = \"a.csv\"
start = \"100s\"
";
    let text = format!("{TIERED}{NOISY}{guest}").replace("channels = [1, 2]", "stop = \"60s\"");
    for pace in ["closed", "open"] {
        let set = [
            ("layout", "on-demand"),
            ("partition", BY_CURVES),
            ("capacity", "1500 blocks"),
            ("replay.profile_share", "1.0"),
            ("tenant.noisy.start", "100ms"),
            ("replay.loop", pace),
        ];
        let case = answer(&folder, &text, &set).unwrap();
        let expected = [
            change("quiet", "granted", serde_json::json!([0])),
            change("noisy", "granted", serde_json::json!([1])),
            change("quiet", "left", Value::Null),
            change("guest", "granted", serde_json::json!([0])),
        ];
        assert_eq!(changes(&case), expected, "{pace}");
        let groups = case["timing"]["channels"]["groups"].as_array().unwrap();
        let owners: Vec<Value> = groups.iter().map(|group| group["tenants"].clone()).collect();
        let expected = serde_json::json!([["guest"], ["noisy"], [], []]);
        assert_eq!(Value::Array(owners), expected, "{pace}: at the end");
        assert!((0.0..=1.0).contains(&number(&case["timing"]["channels"]["space_utilisation"])));
        assert_eq!(case["tenants"][0]["quota_blocks"], 0, "{pace}: it has left");
        assert!(number(&case["tenants"][2]["hit_ratio"]) > 0.1, "{pace}: {}", case["tenants"][2]);
    }
}

/// Two channels and some of a third for the first, then the second comes and one is missing: it is
/// told so, all it asks for goes to its disk, and it is granted what the first leaves behind.
#[test]
fn who_is_refused_in_an_open_loop_is_answered_and_asked_again() {
    let folder = folder("layout-refused");
    let text = format!("{TIERED}{NOISY}time_scale = 30\nstart = \"100ms\"\n")
        .replace("channels = [1, 2]", "stop = \"60s\"");
    let with = |threads| {
        let set = [("layout", "on-demand"), ("capacity", "3000 blocks"), ("replay.loop", "open")];
        let vary = vec![("policy".to_owned(), ["lru", "oc-smq"].map(str::to_owned).to_vec())];
        let options = RunOptions { threads, set: pairs(&set), vary, ..RunOptions::default() };
        run(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap()
    };
    let found = with(1);
    for case in found["cases"].as_array().unwrap() {
        let told: Vec<_> = changes(case).into_iter().map(|(who, what, _)| (who, what)).collect();
        let one = |who: &str, what: &str| (who.to_owned(), what.to_owned());
        let expected = [
            one("quiet", "granted"),
            one("noisy", "refused"),
            one("quiet", "left"),
            one("noisy", "granted"),
        ];
        assert_eq!(told, expected, "{case}");
        let refused = &case["timing"]["channels"]["tenancy"]["changes"][1];
        assert_eq!(refused["missing_channels"], 1, "{refused}");
        let sent = small_trace(5, 3000, 600).lines().filter(|line| !line.contains('T')).count();
        assert_eq!(case["tenants"][0]["requests"], sent);
        assert_eq!(case["tenants"][1]["requests"], 20_000);
        let noisy = &case["tenants"][1];
        assert!(number(&noisy["hits"]) > 5000.0, "{noisy}");
        // Until then it went without: a request every 300 us since the 100th ms.
        let granted = &case["timing"]["channels"]["tenancy"]["changes"][3]["time_ns"];
        let without = (granted.as_u64().unwrap() - 100_000_000).div_ceil(300_000);
        assert!(number(&noisy["bypasses"]) >= without as f64, "{without} {noisy}");
    }
    assert_eq!(found.to_string(), with(2).to_string());
}

#[test]
fn on_demand_says_how_many_channels_are_missing() {
    let folder = folder("layout-on-demand-refusal");
    let text = format!("{TIERED}{NOISY}").replace("channels = [1, 2]", "");
    let refused = |set: &[(&str, &str)]| {
        let set: Vec<(&str, &str)> = set.iter().copied().chain([("layout", "on-demand")]).collect();
        answer(&folder, &text, &set).unwrap_err()
    };
    // 1,500 and 64 blocks each: two channels and 28 of the pool's one, then one channel is left.
    let error = refused(&[("capacity", "3000 blocks")]);
    let words = "`tenant[2]`: found no channels for the 1564 blocks that `noisy` needs with \
                 `machine.spare_blocks`, expected 1 more channels";
    assert!(error.contains(words), "{error}");
    let error = refused(&[("partition", "shared")]);
    let words = "`cache.partition`: found `shared`, expected one that gives each tenant a quota";
    assert!(error.contains(words), "{error}");
    let learned = "{ name = \"hull\", own_policy = true }";
    assert!(answer(&folder, &text, &[("partition", learned), ("layout", "striped")]).is_ok());
}

#[test]
fn what_cannot_be_laid_out_is_refused_by_key_and_value() {
    let folder = folder("layout-refusal");
    let text = format!("{TIERED}{NOISY}");
    let cases: [(&[(&str, &str)], &str); 11] = [
        (&[("layout", "dedicted")], "`cache.layout`: found layout `dedicted`, expected one of"),
        (&[("tenant.quiet.channels", "[1, 4]")], "`tenant[1].channels`: found [1, 4], expected"),
        (&[("tenant.noisy.channels", "3")], "`tenant[2].channels`: found 3, expected from 1 to 2"),
        (&[("tenant.noisy.channels", "[2]")], "`tenant[2].channels`: found [2], expected no"),
        (&[("tenant.quiet.channels", "\"1\"")], "`tenant[1].channels`: found `\"1\"`, expected a"),
        (
            &[("tenant.quiet.channels", "[0, 1, 2, 3]")],
            "`cache.layout`: found 0 channels for 1 tenants that name none, expected",
        ),
        (
            &[("partition", "shared"), ("capacity", "2000 blocks")],
            "`tenant[1].channels`: found room for 1472 blocks beside `machine.spare_blocks`, \
             expected room for its quota of 2000 (`cache.partition` lets it have all of a",
        ),
        (
            &[("partition", "static"), ("capacity", "2400 blocks"), ("tenant.noisy.weight", "3")],
            "`tenant[2].channels`: found room for 1472 blocks beside `machine.spare_blocks`, \
             expected room for its quota of 1800",
        ),
        (
            &[("device.cache.channel_groups", "all")],
            "`cache.layout`: found `dedicated`, expected `striped` on a cache device that shows no",
        ),
        (
            &[("device.cache.channel_groups", "0,1 2,3")],
            "`tenant[1].channels`: found [1, 2], expected whole groups",
        ),
        (&[("device.cache.count", "2")], "expected `striped` on a cache device that shows no"),
    ];
    for (set, expected) in cases {
        let error = answer(&folder, &text, set).unwrap_err();
        assert!(error.contains(expected), "{set:?}: {error}");
    }
    let whole = format!("{WHOLE}{NOISY}");
    let cases: [(&[(&str, &str)], &str); 3] = [
        (&[("device.ssd.channel_groups", "each")], "`device.ssd.channel_groups`: found with"),
        (&[("tenant.noisy.channels", "9")], "`tenant[2].channels`: found 9, expected from 1 to 2"),
        (&[("layout", "flashblox")], "found `flashblox`, expected `striped` or `dedicated` with"),
    ];
    for (set, expected) in cases {
        let error = answer(&folder, &whole, set).unwrap_err();
        assert!(error.contains(expected), "{set:?}: {error}");
    }
    let plain = "[cache]\ncapacity = \"9 blocks\"\nlayout = \"flashblox\"\n[[tenant]]\n\
                 name = \"a\"\ntrace = \"a.csv\"\n";
    let error = answer(&folder, plain, &[]).unwrap_err();
    assert!(error.contains("found `flashblox`, expected `striped` without `[device]`"), "{error}");
    let plain =
        plain.replace("layout = \"flashblox\"", "").replace("a.csv\"", "a.csv\"\nchannels = 1");
    let error = answer(&folder, &plain, &[]).unwrap_err();
    assert!(error.contains("`tenant[1].channels`: found without devices"), "{error}");
}

#[test]
fn the_answer_does_not_depend_on_threads() {
    let folder = folder("layout-threads");
    let text = format!("{TIERED}{NOISY}").replace("channels = [1, 2]", "");
    let layouts = ["striped", "dedicated", "flashblox"].map(str::to_owned).to_vec();
    let with = |threads| {
        let set = vec![("machine.alone".to_owned(), "true".to_owned())];
        let vary = vec![("layout".to_owned(), layouts.clone())];
        let options = RunOptions { threads, set, vary, ..RunOptions::default() };
        run(&text, &folder.path.join("stack.toml"), &options, &quiet).unwrap()
    };
    let one = with(1);
    assert_eq!(one["cases"].as_array().unwrap().len(), 3);
    assert_eq!(one.to_string(), with(2).to_string());
}
