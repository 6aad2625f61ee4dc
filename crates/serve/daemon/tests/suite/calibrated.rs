//! Devices timed by random reads, and machines timed by serving.

use crate::setup::{STACK, Setup, formatted, set};
use cachewright_daemon::LiveError;
use cachewright_daemon::machine::{MachineTimes, MeasuredSpan};
use cachewright_daemon::offline::Calibration;
use cachewright_daemon::offline::calibrate;
use cachewright_daemon::rehearsal::RehearsalCommand;
use cachewright_result::live::LiveCalibrateAnswer;
use cachewright_types::parse_duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

const FILES: [&str; 4] = ["one.img", "two.img", "a.img", "b.img"];
const DELAY_US: f64 = 3000.0;

fn calibrated(setup: &Setup, reads: usize, depth: usize) -> Result<LiveCalibrateAnswer, LiveError> {
    let origin = setup.path("stack.toml");
    calibrate(STACK, &origin, &setup.settings, Calibration { reads, depth })
}

#[test]
fn slower_backing_devices_are_found_slower_and_nothing_is_written() {
    let setup = formatted(&[("serve.backing_delay", "3ms")]);
    let before = FILES.map(|name| setup.content(name));
    let found = calibrated(&setup, 20, 4).unwrap();
    assert!(FILES.map(|name| setup.content(name)) == before, "nothing was written");
    let names: Vec<&str> =
        found.devices.iter().filter_map(|device| device.path.rsplit('/').next()).collect();
    assert_eq!(names, FILES);
    let tenants: Vec<Option<&str>> =
        found.devices.iter().map(|device| device.tenant.as_deref()).collect();
    assert_eq!(tenants, [None, None, Some("a"), Some("b")]);
    for device in &found.devices {
        let depths: Vec<u64> = device.times.iter().map(|times| times.depth).collect();
        assert_eq!(depths, [1, 4]);
        for times in &device.times {
            assert!(0.0 < times.p50_us && times.p50_us <= times.p99_us, "{device:?}");
            assert!(device.tenant.is_none() || times.p50_us >= DELAY_US, "{device:?}");
        }
    }
    assert_eq!((found.reads, found.block_bytes), (20, 4096));
    let miss_us = parse_duration(&found.miss_time).unwrap().0 as f64 / 1e3;
    let mean_us = (found.devices[2].times[0].mean_us + found.devices[3].times[0].mean_us) / 2.0;
    assert!((miss_us - mean_us).abs() < mean_us / 1000.0, "{miss_us} as {mean_us}");
    let (hit, miss) = (parse_duration(&found.hit_time), parse_duration(&found.miss_time));
    assert_eq!(found.is_usable, hit.unwrap() < miss.unwrap());
}

/// Such a goal is refused with the times that a stack has before it was calibrated.
#[test]
fn a_goal_beyond_the_times_of_the_stack_does_not_keep_devices_from_being_timed() {
    let mut setup = formatted(&[]);
    setup.settings.push(set("tenant.a.goal_latency", "20ms"));
    assert!(setup.plan().unwrap().goals().is_err(), "20ms is more than `replay.miss_time`");
    let found = calibrated(&setup, 5, 1).unwrap();
    assert!(found.devices.iter().all(|device| device.times.len() == 1));
}

#[test]
fn devices_in_use_or_without_a_block_are_refused() {
    let setup = formatted(&[]);
    let running = setup.start();
    let error = calibrated(&setup, 5, 1).unwrap_err();
    assert_eq!(error.status(), 2);
    assert!(error.to_string().contains("in use"), "{error}");
    running.stop();
    std::fs::File::create(setup.path("b.img")).unwrap();
    let error = calibrated(&setup, 5, 1).unwrap_err();
    assert!(error.to_string().contains("found less than a block"), "{error}");
}

/// What is measured is a file that rehearsals take, and nothing is left of the files it needs.
#[test]
fn the_times_of_a_machine_are_a_file_that_rehearsals_take() {
    let folder = tempfile::tempdir().unwrap();
    let mut parts = Vec::new();
    let span = MeasuredSpan::usual(Arc::default()).lasting(Duration::from_millis(20));
    let measured =
        MachineTimes::measure(folder.path(), &span, &mut |part| parts.push(part.to_owned()));
    let text = measured.unwrap().text();
    assert_eq!((parts.len(), std::fs::read_dir(folder.path()).unwrap().count()), (4, 0));
    let file = folder.path().join("machine.toml");
    std::fs::write(&file, &text).unwrap();
    let file = file.to_str().unwrap();
    let words = ["a.toml", "--recording", "r", "--drive", file, "--backing", file];
    let words = [&words[..], &["--processor", file]].concat().into_iter().map(str::to_owned);
    assert!(RehearsalCommand::read(&words.collect::<Vec<_>>()).unwrap().is_some());
    for key in ["request", "cold", "wake", "timer", "read", "write", "flush", "parallelism"] {
        assert!(text.contains(&format!("\n{key} = ")), "{key} in {text}");
    }
    // A machine without one of the tables is refused.
    std::fs::write(file, "[device]\nmodel = \"null\"\n").unwrap();
    let words = ["a.toml", "--processor", file].map(str::to_owned);
    let error = RehearsalCommand::read(&words).unwrap_err().to_string();
    let expected = "machine.toml: found no table `[processor]`, expected a file of `cachewrightd";
    assert!(error.contains(expected), "{error}");
    let nowhere = MachineTimes::measure(&folder.path().join("no"), &span, &mut |_| {});
    assert!(nowhere.unwrap_err().to_string().contains("no: No such file or directory"));
}

/// Whenever it is interrupted, its files go.
#[test]
fn an_interrupted_calibration_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    for last in 1..=4 {
        let interrupted = Arc::new(AtomicBool::new(false));
        let span = MeasuredSpan::usual(Arc::clone(&interrupted)).lasting(Duration::from_millis(20));
        let mut parts = 0;
        let measured = MachineTimes::measure(folder.path(), &span, &mut |_| {
            parts += 1;
            interrupted.store(parts == last, Ordering::Relaxed);
        });
        let error = measured.unwrap_err().to_string();
        assert_eq!((error.as_str(), parts), ("interrupted; nothing of it is left", last));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
