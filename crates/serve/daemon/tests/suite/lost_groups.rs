//! Content that was durable and is gone: exports are read-only until a repair.

use crate::setup::{BLOCK, Setup, formatted, pattern};
use cachewright_daemon::offline;
use cachewright_live::log::format::{GroupHeader, PAGE};
use cachewright_nbd::Errno;

const DEVICES: [&str; 2] = ["one.img", "two.img"];

/// Devices as a loss of power leaves them: 20 blocks were flushed one by one.
fn cut_short() -> Setup {
    let setup = formatted(&[]);
    let running = setup.start();
    let mut a = running.connect("a");
    for block in 0..20 {
        a.write(block * BLOCK, &pattern(block as u8, BLOCK));
        a.flush();
    }
    let left = DEVICES.map(|name| setup.content(name));
    running.stop();
    DEVICES.iter().zip(left).for_each(|(name, bytes)| setup.damage(name, 0, &bytes));
    setup
}

/// Damages the descriptor of the fifth group.
fn damage_a_group(setup: &Setup) {
    for name in DEVICES {
        for (page, bytes) in setup.content(name).chunks(PAGE).enumerate() {
            if GroupHeader::decode(bytes).is_some_and(|(header, _)| header.number == 5) {
                return setup.damage(name, (page * PAGE) as u64, &[0; PAGE]);
            }
        }
    }
    panic!("no such group");
}

#[test]
fn exports_are_read_only_until_a_repair_when_durable_content_is_gone() {
    let setup = cut_short();
    let sound = offline::check(&setup.plan().unwrap()).unwrap();
    assert!(sound.sound && sound.lost_groups == 0 && !sound.read_only);
    damage_a_group(&setup);
    let plan = setup.plan().unwrap();
    let found = offline::check(&plan).unwrap();
    assert!(!found.sound && found.lost_groups == 1 && found.read_only);
    let refusal = offline::writeback(&plan).unwrap_err();
    assert_eq!(refusal.status(), 2);
    assert!(refusal.to_string().contains("`cachewright live repair` before"), "{refusal}");
    // It stays so, though the first start leaves nothing that proves it.
    for _ in 0..2 {
        let running = setup.start();
        let said = |line: &String| line.contains("read-only until `cachewright live repair`");
        assert!(running.lines.iter().any(said), "{:?}", running.lines);
        let mut a = running.connect("a");
        assert_eq!(a.failing_write(0, &pattern(9, BLOCK)), Errno::Perm);
        let whole = |block: u64, a: &mut crate::setup::Guest| {
            a.read(block * BLOCK, BLOCK) == pattern(block as u8, BLOCK)
        };
        assert_eq!((0..20).filter(|block| !whole(*block, &mut a)).count(), 1);
        running.stop();
        let found = offline::check(&plan).unwrap();
        assert!(!found.sound && found.lost_groups == 0 && found.read_only);
    }
    assert!(offline::writeback(&plan).is_err());
    assert!(offline::repair(&plan, false).unwrap().accepted_loss);
    assert!(!offline::repair(&plan, false).unwrap().accepted_loss, "it is accepted once");
    let found = offline::check(&plan).unwrap();
    assert!(found.sound && !found.read_only);
    let running = setup.start();
    let mut a = running.connect("a");
    a.write(0, &pattern(9, BLOCK));
    assert_eq!(a.read(0, BLOCK), pattern(9, BLOCK));
    running.stop();
}
