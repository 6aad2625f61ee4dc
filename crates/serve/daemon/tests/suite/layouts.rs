//! Layouts of a stack on real devices, and exports that are read-only by choice.

use crate::setup::{BLOCK, STACK, Setup, engines, formatted, pattern, set, unformatted};
use cachewright_daemon::{LiveError, LivePlan, Server, offline};
use cachewright_nbd::Errno;
use std::collections::BTreeSet;

/// The names of the devices that hold blocks of a volume.
fn devices_of(setup: &Setup, volume: &str) -> BTreeSet<String> {
    let answer = offline::dump(&setup.plan().unwrap(), true).unwrap();
    let blocks = answer.blocks.unwrap().into_iter().filter(|block| block.volume == volume);
    let name = |path: String| path.rsplit('/').next().unwrap().to_owned();
    blocks.map(|block| name(block.device)).collect()
}

fn write_both(setup: &Setup) -> Vec<String> {
    let running = setup.start();
    let (mut a, mut b) = (running.connect("a"), running.connect("second"));
    for part in 0..40 {
        a.write(part * 8 * BLOCK, &pattern(part as u8, 8 * BLOCK));
        b.write(part * 8 * BLOCK, &pattern(part as u8 + 100, 8 * BLOCK));
    }
    for part in 0..40 {
        assert_eq!(a.read(part * 8 * BLOCK, 8 * BLOCK), pattern(part as u8, 8 * BLOCK));
    }
    let lines = running.lines.clone();
    running.stop();
    lines
}

#[test]
fn a_tenant_is_cached_on_the_devices_that_the_layout_gives_it() {
    for engine in engines() {
        let settings =
            [("serve.engine", engine), ("cache.layout", "dedicated"), ("tenant.a.channels", "[1]")];
        let setup = formatted(&settings);
        let lines = write_both(&setup);
        assert!(lines[0].ends_with("two.img"), "{lines:?}");
        assert!(lines[1].ends_with("one.img"), "{lines:?}");
        let only = |name: &str| BTreeSet::from([name.to_owned()]);
        assert_eq!(devices_of(&setup, "a"), only("two.img"));
        assert_eq!(devices_of(&setup, "b"), only("one.img"));
        // The same devices in another order, and the same channels by their new numbers.
        let mut other = setup.settings.clone();
        other.extend([
            set("serve.devices", "[\"two.img\", \"one.img\"]"),
            set("tenant.a.channels", "[0]"),
        ]);
        let setup = Setup { settings: other, ..setup };
        let running = setup.start();
        let summary = running.lines.last().unwrap();
        assert!(!summary.contains("freed"), "{summary}");
        running.stop();
        // Another layout: the cache begins empty, and no byte is lost.
        let mut other = setup.settings.clone();
        other.extend([set("cache.layout", "flashblox"), set("tenant.a.channels", "1")]);
        let setup = Setup { settings: other, ..setup };
        let running = setup.start();
        let mut b = running.connect("second");
        for part in 0..40 {
            assert_eq!(b.read(part * 8 * BLOCK, 8 * BLOCK), pattern(part as u8 + 100, 8 * BLOCK));
        }
        running.stop();
    }
}

#[test]
fn devices_that_do_not_suffice_are_named() {
    let setup = unformatted(&[("cache.layout", "dedicated")]);
    let refused = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(key, value)| set(key, value));
        let settings: Vec<_> = setup.settings.iter().cloned().chain(pairs).collect();
        let plan = LivePlan::read(STACK, &setup.path("stack.toml"), &settings);
        let formatted = plan.and_then(|plan| offline::format(&plan, Default::default()));
        let error: LiveError = formatted.unwrap_err();
        assert_eq!(error.status(), 2, "{error}");
        error.to_string()
    };
    let sentence = refused(&[("tenant.a.channels", "2")]);
    assert!(sentence.contains("found 0 channels for 1 tenants that name none"), "{sentence}");
    let sentence = refused(&[("tenant.a.channels", "[2]")]);
    assert!(sentence.contains("`tenant[1].channels`: found [2], expected channels"), "{sentence}");
    let sentence = refused(&[("cache.capacity", "19MiB")]);
    assert!(sentence.contains("on the devices of `a`, expected room for its quota"), "{sentence}");
    let sentence = refused(&[("cache.capacity", "16MiB"), ("cache.partition", "shared")]);
    assert!(sentence.contains("lets it have all of a pool it shares"), "{sentence}");
    let sentence = refused(&[("cache.layout", "on-demand")]);
    assert!(sentence.contains("`striped`, `dedicated` or `flashblox`"), "{sentence}");
}

#[test]
fn a_reload_changes_neither_the_layout_nor_what_it_has_given_to_tenants() {
    let stack = STACK.replace("\"static\"", "\"static\"\nlayout = \"dedicated\"");
    let stack = stack.replace("name = \"a\"", "name = \"a\"\nchannels = [1]");
    let setup = unformatted(&[]).with_stack(&stack);
    offline::format(&setup.plan().unwrap(), Default::default()).unwrap();
    let running = setup.start();
    let mut guest = running.connect("a");
    guest.write(0, &pattern(1, BLOCK));
    let gives = "`cache.layout`: found `dedicated`, which gives devices to tenants at a start, \
                 expected no change of tenants, `cache.partition`, `cache.capacity`, weights, \
                 goals or histories without a restart";
    let refusals = [
        (
            stack.replace("\"dedicated\"", "\"striped\""),
            "`cache.layout`: found `striped`, expected `dedicated`, which only a restart can \
             change",
        ),
        (
            stack.replace("channels = [1]", "channels = [0]"),
            "`tenant[1].channels`: found `[0]`, expected `[1]`, which only a restart can change",
        ),
        (stack.replace("channels = [1]", "channels = [1]\nweight = 2"), gives),
        (stack.replace("\"4MiB\"", "\"2MiB\""), gives),
        (stack.split("[[tenant]]\nname = \"b\"").next().unwrap().to_owned(), gives),
    ];
    for (text, expected) in refusals {
        let line = running.reload(&text);
        let prefix = "not reloaded, and nothing has changed: ";
        assert!(line.starts_with(prefix) && line.ends_with(expected), "{line}");
    }
    let capped = stack.replace("channels = [1]", "channels = [1]\nmax_iops = 5000");
    assert_eq!(running.reload(&capped), "reloaded; nothing to be told");
    assert_eq!(guest.read(0, BLOCK), pattern(1, BLOCK));
    running.stop();
}

#[test]
fn an_export_can_be_read_only() {
    let setup = formatted(&[]);
    let running = setup.start();
    running.connect("a").write(0, &pattern(7, BLOCK));
    running.stop();
    let setup = Setup { settings: vec![set("tenant.a.read_only", "true")], ..setup };
    let running = setup.start();
    assert!(running.lines[0].contains(", read-only, at "), "{:?}", running.lines);
    let mut a = running.connect("a");
    assert_eq!(a.failing_write(0, &pattern(8, BLOCK)), Errno::Perm);
    assert_eq!(a.read(0, BLOCK), pattern(7, BLOCK));
    running.connect("second").write(0, &pattern(9, BLOCK));
    running.stop();
}

/// A cache whose memory the machine does not have: needed and available are named, and nothing is
/// written.
#[test]
fn too_little_memory_is_refused() {
    let settings = [("serve.devices", "[\"large.img\"]"), ("serve.segment", "1GiB")];
    let setup = unformatted(&settings);
    let large = std::fs::File::create_new(setup.path("large.img")).unwrap();
    if large.set_len(12 << 40).is_err() {
        eprintln!("skipped: the file system has no files of 12 TiB");
        return;
    }
    let plan = setup.plan_with("cache.capacity", "8TiB").unwrap();
    offline::format(&plan, Default::default()).unwrap();
    let blocks = || {
        use std::os::unix::fs::MetadataExt;
        large.metadata().unwrap().blocks()
    };
    let before = blocks();
    match Server::start(&plan, None).map(drop) {
        Ok(()) => eprintln!("skipped: the machine has the memory"),
        Err(error) => {
            assert_eq!(error.status(), 2, "{error}");
            let sentence = error.to_string();
            assert!(sentence.contains("`cache.capacity`: found `8TiB`, which needs"), "{sentence}");
            assert!(sentence.contains("which are available"), "{sentence}");
            assert_eq!(blocks(), before);
        }
    }
}
