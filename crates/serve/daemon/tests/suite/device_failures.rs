//! Devices of the cache that fail while they are served: memory files that are sealed, so that they
//! take no writes any more.

use crate::setup::{BLOCK, MIB, Running, Setup, engines, formatted, pattern};
use cachewright_daemon::{Server, offline};
use cachewright_nbd::Errno;
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, ftruncate, memfd_create};
use std::os::fd::{AsRawFd, OwnedFd};

/// A memory file, and its path in this process.
fn memory_file() -> (OwnedFd, String) {
    let file = memfd_create("cache", MemfdFlags::ALLOW_SEALING | MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, 16 * MIB).unwrap();
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    (file, path)
}

fn seal(file: &OwnedFd) {
    fcntl_add_seals(file, SealFlags::WRITE).unwrap();
}

/// What a server says until it has said something of its second export.
fn said(running: &Running) -> Vec<String> {
    let mut lines = Vec::new();
    while !lines.iter().any(|line: &String| line.contains("`second`")) {
        lines.extend(running.said.recv().unwrap());
    }
    lines
}

/// The sentence with which a start is refused.
fn refused(setup: &Setup) -> String {
    let error = Server::start(&setup.plan().unwrap(), None).err().unwrap();
    assert_eq!(error.status(), 2, "{error}");
    error.to_string()
}

#[test]
fn exports_go_on_when_one_of_two_devices_takes_no_writes() {
    for engine in engines() {
        let (file, path) = memory_file();
        let devices = format!("[\"{path}\", \"two.img\"]");
        let setup = formatted(&[("serve.engine", engine), ("serve.devices", &devices)]);
        let running = setup.start();
        let (mut a, mut second) = (running.connect("a"), running.connect("second"));
        second.write(0, &pattern(5, 2 * BLOCK));
        second.flush();
        second.write(4 * BLOCK, &pattern(6, BLOCK));
        seal(&file);
        a.write(8 * BLOCK, &pattern(1, BLOCK));
        assert_eq!(a.read(8 * BLOCK, BLOCK), pattern(1, BLOCK), "it was under way");
        let lines = said(&running);
        assert!(lines[0].contains(&format!("the device {path} has failed")), "{lines:?}");
        let kept = "export `second` is served past the cache; 12KiB of dirty content were \
                    written back, nothing is lost";
        assert!(lines.iter().any(|line| line == kept), "{lines:?}");
        assert_eq!(second.read(0, 2 * BLOCK), pattern(5, 2 * BLOCK));
        assert_eq!(second.read(4 * BLOCK, BLOCK), pattern(6, BLOCK));
        a.write(8 * BLOCK, &pattern(2, BLOCK));
        second.write(BLOCK, &pattern(7, BLOCK));
        second.flush();
        assert_eq!(running.stop().dirty_bytes, 0);
        let content = setup.content("b.img");
        assert_eq!(content[..BLOCK as usize], pattern(5, 2 * BLOCK)[..BLOCK as usize]);
        assert_eq!(content[BLOCK as usize..2 * BLOCK as usize], pattern(7, BLOCK));
        // The log has older content: nothing serves it, and nothing writes it back.
        let sentence = refused(&setup);
        assert!(sentence.contains("went on without it"), "{sentence}");
        let checked = offline::check(&setup.plan().unwrap()).unwrap();
        assert!(checked.bypassed && checked.volumes.iter().all(|volume| volume.out_of_date));
        assert!(offline::dump(&setup.plan().unwrap(), false).unwrap().bypassed);
    }
}

/// A file is cut short under the server: what it held is gone, and reads of it fail. When it is as
/// long as before, a reload takes it without a restart.
#[test]
fn a_backing_device_that_works_again_is_taken_by_a_reload() {
    for engine in engines() {
        let setup = formatted(&[("serve.engine", engine)]);
        let content = pattern(3, 8 * MIB);
        std::fs::write(setup.path("a.img"), &content).unwrap();
        let running = setup.start();
        let (mut a, mut second) = (running.connect("a"), running.connect("second"));
        a.write(0, &pattern(5, 2 * BLOCK));
        let file = std::fs::File::options().write(true).open(setup.path("a.img")).unwrap();
        file.set_len(0).unwrap();
        assert_eq!(a.failing_read(4 * MIB, BLOCK), Errno::Io);
        let line = running.next_line();
        assert!(line.contains("`a`: its backing device has failed; requests get errors"), "{line}");
        assert_eq!(a.failing_read(0, BLOCK), Errno::Io);
        second.write(0, &pattern(6, BLOCK));
        let refused = running.reload(&setup.stack);
        assert!(refused.contains("not reloaded") && refused.contains("a.img"), "{refused}");
        std::fs::write(setup.path("a.img"), &content).unwrap();
        let line = running.reload(&setup.stack);
        assert!(line.contains("`a`: its backing device") && line.contains("tried again"), "{line}");
        let line = running.next_line();
        assert!(line.contains("`a`: its backing device works again"), "{line}");
        assert_eq!(a.read(0, 2 * BLOCK), pattern(5, 2 * BLOCK), "only the cache had it");
        assert_eq!(a.read(4 * MIB, BLOCK), content[4 * MIB as usize..][..BLOCK as usize]);
        a.write(4 * MIB, &pattern(7, BLOCK));
        a.flush();
        assert_eq!(second.read(0, BLOCK), pattern(6, BLOCK));
        running.stop();
        let running = setup.start();
        let mut a = running.connect("a");
        assert_eq!(a.read(0, 2 * BLOCK), pattern(5, 2 * BLOCK));
        assert_eq!(a.read(4 * MIB, BLOCK), pattern(7, BLOCK));
        running.stop();
    }
}

#[test]
fn another_file_in_the_place_of_a_failed_one_waits_for_a_restart() {
    let setup = formatted(&[]);
    let running = setup.start();
    let mut a = running.connect("a");
    let file = std::fs::File::options().write(true).open(setup.path("a.img")).unwrap();
    file.set_len(0).unwrap();
    assert_eq!(a.failing_read(4 * MIB, BLOCK), Errno::Io);
    running.next_line();
    file.set_len(8 * MIB).unwrap();
    std::fs::rename(setup.path("a.img"), setup.path("old.img")).unwrap();
    std::fs::write(setup.path("a.img"), pattern(1, 8 * MIB)).unwrap();
    let line = running.reload(&setup.stack);
    assert!(line.contains("is another device than the one that has failed"), "{line}");
    assert_eq!(a.failing_read(0, BLOCK), Errno::Io);
    running.outcome().ok();
}

#[test]
fn exports_can_be_read_when_no_device_takes_writes() {
    for engine in engines() {
        let (file, path) = memory_file();
        let devices = format!("[\"{path}\"]");
        let setup = formatted(&[("serve.engine", engine), ("serve.devices", &devices)]);
        let running = setup.start();
        let mut second = running.connect("second");
        second.write(0, &pattern(5, 2 * BLOCK));
        second.flush();
        seal(&file);
        assert_eq!(second.failing_write(8 * BLOCK, &pattern(1, BLOCK)), Errno::Io);
        let lines = said(&running);
        assert!(lines.iter().any(|line| line.contains("`second` can be read only")), "{lines:?}");
        assert_eq!(second.read(0, 2 * BLOCK), pattern(5, 2 * BLOCK));
        assert_eq!(second.failing_write(0, &pattern(1, BLOCK)), Errno::Io);
        let error = running.outcome().unwrap_err();
        assert_eq!(error.status(), 1, "{error}");
        // What was durable is on the backing device by now.
        assert_eq!(setup.content("b.img")[..2 * BLOCK as usize], pattern(5, 2 * BLOCK));
    }
}

/// What a volume has written past the cache is not replaced by what the log has.
#[test]
fn a_set_that_was_bypassed_is_formatted_anew() {
    let setup = formatted(&[]);
    let running = setup.start();
    running.connect("a").write(0, &pattern(5, 2 * BLOCK));
    running.stop();
    mark(&setup);
    let before = setup.content("a.img");
    assert!(refused(&setup).contains("`cachewright live format --discard-dirty`"));
    let changed = offline::writeback(&setup.plan().unwrap()).unwrap();
    assert!(changed.volumes.is_empty(), "{changed:?}");
    assert_eq!(setup.content("a.img"), before);
    let refused = offline::format(&setup.plan().unwrap(), Default::default()).unwrap_err();
    assert!(refused.to_string().contains("`--discard-dirty`"), "{refused}");
    let overwrite = offline::Overwrite { dirty: true, ..Default::default() };
    let formatted = offline::format(&setup.plan().unwrap(), overwrite).unwrap();
    assert_eq!(formatted.discarded_bytes, 2 * BLOCK);
    setup.start().stop();
}

/// Marks the set as bypassed; the first volume was written to since.
fn mark(setup: &Setup) {
    use cachewright_live::io::open::{FileAccess, open_file};
    use cachewright_live::io::system::{EngineChoice, SystemIo};
    use cachewright_live::log::format::{Bypassed, VolumeId};
    let mut io = SystemIo::new(EngineChoice::Threads).unwrap();
    let mut file = |name: &str| {
        let file = open_file(&setup.path(name), FileAccess::Write).unwrap();
        io.add_file(file)
    };
    let files = [file("one.img"), file("two.img")];
    let mut open = cachewright_live::log::open(&mut io, &files).unwrap();
    open.superblock.bypassed = Some(Bypassed { error: 5, passed: [VolumeId(1)].into() });
    cachewright_live::log::rewrite_both(&mut io, &mut open).unwrap();
}
