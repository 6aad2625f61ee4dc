//! Whether a machine has the memory for a cache and its clients.
//!
//! For: a refusal at a start, instead of an end by the kernel when the cache fills. Must never
//! know: devices, policies. Units: bytes, blocks. Sources: `/proc/meminfo`, the nodes below `/sys`
//! and sysinfo(2), of which a service may see only the last; limits of control groups, versions 1
//! and 2 (the kernel's `admin-guide/cgroup-v1/memory` and `cgroup-v2`).

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_live::blocks::BLOCK_MEMORY;
use cachewright_types::Bytes;
use rustix::system::sysinfo;
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

/// What a policy needs for a block at least: 14 bytes in the index, and a place in its order.
const DECISION_MEMORY: u64 = 18;

/// Bytes of memory that the process can still take, where the system says.
pub fn available() -> Option<u64> {
    Surroundings::of_process().available()
}

/// Errors: the memory that is available is less than the cache needs when it is full, and what its
/// clients and its hot blocks may hold beside it.
pub fn check(plan: &LivePlan) -> Result<(), LiveError> {
    match available() {
        Some(available) => check_needed(plan, available),
        None => Ok(()),
    }
}

/// Errors: `available` bytes are less than what is needed.
fn check_needed(plan: &LivePlan, available: u64) -> Result<(), LiveError> {
    // A replica of what decides takes that memory once more.
    let is_replicated = plan.serve.recordings.is_some() && plan.serve.record_state;
    let decisions = DECISION_MEMORY * if is_replicated { 2 } else { 1 };
    let needed = u64::from(plan.capacity_blocks) * (BLOCK_MEMORY + decisions);
    let (clients, hot) = (plan.serve.client_memory, plan.serve.memory);
    if needed.saturating_add(clients.0).saturating_add(hot.0) <= available {
        return Ok(());
    }
    let (needed, available) = (Bytes(needed), Bytes(available));
    let capacity = Bytes(plan.capacity_bytes());
    let beside = match hot.0 {
        0 => format!("`{clients}` of `serve.client_memory`"),
        _ => format!("`{clients}` of `serve.client_memory` and `{hot}` of `serve.memory`"),
    };
    Err(plan.refuse(format!(
        "`cache.capacity`: found `{capacity}`, which needs at least {needed} of memory, beside \
         {beside}, expected these to need at most {available} together, which are available; a \
         larger `cache.block` needs less"
    )))
}

/// Where the system says what memory there is.
struct Surroundings {
    /// The folder that `/proc` and `/sys` lie in.
    root: PathBuf,
    /// Bytes of memory that are installed, if the system tells.
    installed: Option<u64>,
}

/// A kind of control groups that bounds memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupVersion {
    One,
    Two,
}

impl Surroundings {
    fn of_process() -> Surroundings {
        let found = sysinfo();
        let installed = found.totalram.checked_mul(u64::from(found.mem_unit.max(1)));
        Surroundings { root: PathBuf::from("/"), installed: installed.filter(|bytes| *bytes > 0) }
    }

    /// Bytes that the machine can give without swapping, and each control group of the process
    /// beside what it has taken. Nothing where the system does not say.
    fn available(&self) -> Option<u64> {
        self.of_machine().into_iter().chain(self.of_groups()).min()
    }

    fn of_machine(&self) -> Option<u64> {
        let text = read_to_string(self.root.join("proc/meminfo"));
        let available = text.ok().and_then(|text| said(&text, "MemAvailable:"));
        available.or_else(|| self.of_nodes()).or(self.installed)
    }

    /// What the nodes of the machine have free or can free: file pages, but those of memory that
    /// is shared. Nothing if one does not say.
    fn of_nodes(&self) -> Option<u64> {
        let folders = std::fs::read_dir(self.root.join("sys/devices/system/node")).ok()?;
        let files = folders.flatten().map(|entry| entry.path().join("meminfo"));
        let texts: Vec<String> = files.filter_map(|file| read_to_string(file).ok()).collect();
        let of_node = |text: &String| {
            // Each line begins with the number of the node.
            let lines: Vec<&str> =
                text.lines().filter_map(|line| line.splitn(3, ' ').nth(2)).collect();
            let lines = lines.join("\n");
            let [free, files] = ["MemFree:", "FilePages:"].map(|name| said(&lines, name));
            let [shared, slabs] = ["Shmem:", "SReclaimable:"].map(|name| said(&lines, name));
            let files = files?.saturating_sub(shared.unwrap_or_default());
            Some(free?.saturating_add(files).saturating_add(slabs.unwrap_or_default()))
        };
        let nodes: Option<Vec<u64>> = texts.iter().map(of_node).collect();
        nodes.filter(|nodes| !nodes.is_empty()).map(|nodes| nodes.iter().sum())
    }

    /// What each control group of the process has left: its own and all above it.
    fn of_groups(&self) -> Vec<u64> {
        let read = |path: &str| read_to_string(self.root.join(path)).unwrap_or_default();
        let (groups, mounts) = (read("proc/self/cgroup"), read("proc/self/mountinfo"));
        let hierarchies = mounts.lines().filter_map(Hierarchy::mounted);
        let left = |hierarchy: Hierarchy<'_>| {
            let group = groups.lines().find_map(|line| hierarchy.group(line));
            let folders = hierarchy.folders(group.unwrap_or("/"), &self.root);
            folders.into_iter().filter_map(move |folder| left_in(&folder, hierarchy.version))
        };
        hierarchies.flat_map(left).collect()
    }
}

/// A hierarchy of control groups that bounds memory.
struct Hierarchy<'a> {
    version: GroupVersion,
    /// Where it is mounted.
    mount: &'a str,
    /// The group that is found there.
    top: &'a str,
}

impl<'a> Hierarchy<'a> {
    /// The hierarchy of a line of `mountinfo`; nothing if it is of something else.
    fn mounted(line: &'a str) -> Option<Hierarchy<'a>> {
        let (mounted, kind) = line.split_once(" - ")?;
        let [top, mount] = [3, 4].map(|field| mounted.split(' ').nth(field));
        let [name, options] = [0, 2].map(|field| kind.split(' ').nth(field));
        let version = match name? {
            "cgroup2" => GroupVersion::Two,
            "cgroup" if options?.split(',').any(|word| word == "memory") => GroupVersion::One,
            _ => return None,
        };
        Some(Hierarchy { version, mount: mount?, top: top? })
    }

    /// The group of the process in it, if this line of `/proc/self/cgroup` says so.
    fn group<'b>(&self, line: &'b str) -> Option<&'b str> {
        let mut fields = line.splitn(3, ':');
        let [number, controllers, group] = [(); 3].map(|()| fields.next());
        let is_this = match self.version {
            GroupVersion::Two => number? == "0" && controllers?.is_empty(),
            GroupVersion::One => controllers?.split(',').any(|word| word == "memory"),
        };
        group.filter(|_| is_this)
    }

    /// The folders of a group and of all above it that can be seen here.
    fn folders(&self, group: &str, root: &Path) -> Vec<PathBuf> {
        let mount = root.join(self.mount.trim_start_matches('/'));
        let below = Path::new(group).strip_prefix(self.top).unwrap_or(Path::new(""));
        let below = if below.is_relative() { below } else { Path::new("") };
        below.ancestors().map(|part| mount.join(part)).collect()
    }
}

/// Bytes that a control group has left; nothing if it has no limit. Pages of files can be freed,
/// and count as left.
fn left_in(folder: &Path, version: GroupVersion) -> Option<u64> {
    let text = |name: &str| read_to_string(folder.join(name)).ok();
    let number = |name: &str| text(name)?.trim().parse::<u64>().ok();
    let (limits, taken, freed) = match version {
        GroupVersion::Two => {
            let freed = &["inactive_file", "active_file", "slab_reclaimable"][..];
            ([number("memory.max"), number("memory.high")], number("memory.current"), freed)
        }
        GroupVersion::One => {
            let freed = &["total_inactive_file", "total_active_file"][..];
            let limit = number("memory.limit_in_bytes");
            ([limit, None], number("memory.usage_in_bytes"), freed)
        }
    };
    let limit = limits.into_iter().flatten().min()?;
    let counts = text("memory.stat").unwrap_or_default();
    let count = |name: &&str| {
        let of_name = |line: &str| line.strip_prefix(*name)?.trim().parse::<u64>().ok();
        counts.lines().find_map(of_name).unwrap_or_default()
    };
    let freed = freed.iter().map(count).fold(0, u64::saturating_add);
    Some(limit.saturating_sub(taken.unwrap_or_default().saturating_sub(freed)))
}

/// The bytes that a text of the kernel says of a name, which ends with a colon.
fn said(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;
    use tempfile::TempDir;

    const MIB: u64 = 1 << 20;
    const INSTALLED: u64 = 24 << 30;

    /// A system that says this in these files.
    fn system(files: &[(&str, &str)]) -> (TempDir, Surroundings) {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let root = folder.path().to_owned();
        (folder, Surroundings { root, installed: Some(INSTALLED) })
    }

    fn available(files: &[(&str, &str)]) -> Option<u64> {
        let (_folder, system) = system(files);
        system.available()
    }

    #[test]
    fn what_clients_and_hot_blocks_may_hold_counts_beside_the_cache() {
        let stack = r#"
            [cache]
            capacity = "1MiB"
            [serve]
            devices = ["one.img"]
            client_memory = "64MiB"
            [[tenant]]
            name = "a"
            backing = "a.img"
        "#;
        let cache = 256 * (BLOCK_MEMORY + DECISION_MEMORY);
        let hot = stack.replace("[serve]", "[serve]\nmemory = \"32MiB\"");
        for (stack, mib, beside) in [
            (stack, 64, "beside `64MiB` of `serve.client_memory`, expected these to need at most"),
            (&*hot, 96, "`64MiB` of `serve.client_memory` and `32MiB` of `serve.memory`, expected"),
        ] {
            let plan = LivePlan::read(stack, Path::new("stack.toml"), &[]).unwrap();
            assert!(check_needed(&plan, mib * MIB + cache).is_ok());
            let sentence = check_needed(&plan, mib * MIB + cache - 1).unwrap_err().to_string();
            assert!(sentence.contains(beside), "{sentence}");
        }
        // What decides is there twice where states are recorded.
        let recorded = stack.replace("[serve]", "[serve]\nrecord = \"kept\"");
        let without = recorded.replace("[serve]", "[serve]\nrecord_state = false");
        for (stack, replicas) in [(recorded, 1), (without, 0)] {
            let plan = LivePlan::read(&stack, Path::new("stack.toml"), &[]).unwrap();
            let needed = 64 * MIB + cache + replicas * 256 * DECISION_MEMORY;
            assert!(check_needed(&plan, needed).is_ok());
            assert!(check_needed(&plan, needed - 1).is_err());
        }
    }

    const MEMORY: (&str, &str) =
        ("proc/meminfo", "MemTotal:  24600000 kB\nMemAvailable:   23000000 kB\nBuffers: 1 kB\n");

    #[test]
    fn what_is_available_is_read_from_the_systems_text() {
        assert_eq!(available(&[MEMORY]), Some(23_000_000 * 1024));
        assert_eq!(said("MemTotal: 1 kB\nMemAvailable: many kB\n", "MemAvailable:"), None);
    }

    #[test]
    fn a_machine_whose_text_is_hidden_is_measured_otherwise() {
        assert_eq!(available(&[]), Some(INSTALLED), "as sysinfo says");
        let node = |number: u32| {
            format!(
                "Node {number} MemTotal:       8000 kB\nNode {number} MemFree:        3000 kB\n\
                 Node {number} FilePages:      2000 kB\nNode {number} Shmem:           500 kB\n\
                 Node {number} SReclaimable:    100 kB\n"
            )
        };
        let nodes = [node(0), node(1)];
        let files = [
            ("sys/devices/system/node/node0/meminfo", nodes[0].as_str()),
            ("sys/devices/system/node/node1/meminfo", nodes[1].as_str()),
            ("sys/devices/system/node/possible", "0-1\n"),
        ];
        assert_eq!(available(&files), Some(2 * 4600 * 1024));
        assert_eq!(Surroundings::of_process().installed.map(|bytes| bytes > MIB), Some(true));
    }

    #[test]
    fn the_limits_of_the_group_of_the_process_and_of_all_above_it_count() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let below = "sys/fs/cgroup/system.slice";
        let limited = |own: &str, above: &str| {
            let own_max = format!("{below}/x.service/memory.max");
            let above_max = format!("{below}/memory.max");
            let taken = format!("{below}/memory.current");
            let stat = format!("{below}/memory.stat");
            let counts = "anon 5\ninactive_file 1048576\nactive_file 1048576\nfile 9\n";
            let files = [
                MEMORY,
                ("proc/self/mountinfo", mounts),
                ("proc/self/cgroup", "0::/system.slice/x.service\n"),
                (own_max.as_str(), own),
                (above_max.as_str(), above),
                (taken.as_str(), "4194304\n"),
                (stat.as_str(), counts),
            ];
            available(&files)
        };
        let all = Some(23_000_000 * 1024);
        assert_eq!(limited("max\n", "max\n"), all);
        assert_eq!(limited("67108864\n", "max\n"), Some(64 * MIB));
        // 4 MiB are taken there, of which 2 MiB are pages of files.
        assert_eq!(limited("max\n", "67108864\n"), Some(62 * MIB));
        assert_eq!(limited("33554432\n", "67108864\n"), Some(32 * MIB));
        assert_eq!(limited("67108864\n", "1048576\n"), Some(0));
    }

    #[test]
    fn limits_of_the_first_version_of_groups_count() {
        let mounts = "31 24 0:27 /pod /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n\
                      32 24 0:28 / /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n";
        let group = "sys/fs/cgroup/memory/x";
        let limit = format!("{group}/memory.limit_in_bytes");
        let (taken, stat) =
            (format!("{group}/memory.usage_in_bytes"), format!("{group}/memory.stat"));
        let files = |of_group: &'static str| {
            let of_pod = ("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
            let files = [
                MEMORY,
                ("proc/self/mountinfo", mounts),
                ("proc/self/cgroup", "4:memory:/pod/x\n1:cpu:/\n0::/\n"),
                (limit.as_str(), of_group),
                (taken.as_str(), "3145728\n"),
                (stat.as_str(), "inactive_file 1\ntotal_inactive_file 1048576\n"),
                of_pod,
            ];
            available(&files)
        };
        assert_eq!(files("67108864\n"), Some(62 * MIB));
        assert_eq!(files("9223372036854771712\n"), Some(23_000_000 * 1024));
    }

    /// In a namespace of its own a group is the root of what it sees.
    #[test]
    fn a_group_that_is_seen_as_the_root_has_its_limit() {
        let files = [
            MEMORY,
            ("proc/self/mountinfo", "30 24 0:26 /../.. /sys/fs/cgroup ro - cgroup2 cgroup rw\n"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/memory.max", "67108864\n"),
            ("sys/fs/cgroup/memory.high", "33554432\n"),
        ];
        assert_eq!(available(&files), Some(32 * MIB));
    }
}
