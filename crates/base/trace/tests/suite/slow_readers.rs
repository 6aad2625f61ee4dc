//! Readers of the tests' own, slow and obvious, against those of the crate, on lines made at
//! random.
//!
//! For: formats of today's tools. Must never know: a reader's insides. The slow readers split at
//! every separator, keep strings, and know nothing that is not in a format's description.
#![allow(clippy::expect_used, clippy::panic)]

use cachewright_trace::{Batch, OpenOptions, Record, open_bytes};
use cachewright_types::{Op, Seed};

/// A request with its volume's name.
type Request = (u64, Op, u64, u64, String);

fn read(format: &str, text: &str) -> Vec<Request> {
    let options = OpenOptions { format: Some(format.to_owned()), ..OpenOptions::default() };
    let mut reader = open_bytes("trace", text.as_bytes(), &options).expect("must open");
    let mut batch = Batch::default();
    while reader.read(&mut batch, 7).unwrap_or_else(|error| panic!("{error}\n{text}")) > 0 {}
    let volumes = reader.volumes();
    let request = |r: Record| {
        (r.time_ns, r.op, r.offset_bytes, r.length_bytes, volumes[r.volume as usize].clone())
    };
    batch.iter().map(request).collect()
}

/// A decimal number of units of `unit_ns`, at most nine digits behind the point.
fn nanoseconds(text: &str, unit_ns: u64) -> u64 {
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits: u128 = format!("{whole}{part:0<9}").parse().expect("digits");
    u64::try_from((digits * u128::from(unit_ns) + 500_000_000) / 1_000_000_000).expect("is small")
}

fn asked(letters: &str) -> Option<Op> {
    let (flush, rest) = match letters.strip_prefix('F') {
        Some(rest) => (true, rest),
        None => (false, letters),
    };
    match (rest.chars().next(), rest.chars().nth(1)) {
        (Some('R'), _) => Some(Op::Read),
        (Some('W'), Some('Z')) | (Some('D'), _) => Some(Op::Trim),
        (Some('W'), _) | (Some('Z'), Some('A')) => Some(Op::Write),
        _ => flush.then_some(Op::Flush),
    }
}

struct Lines {
    rng: cachewright_types::Rng,
}

impl Lines {
    fn new(label: &str) -> Lines {
        Lines { rng: Seed(23).derive(label).rng() }
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.rng.below(choices.len() as u64) as usize]
    }

    fn blanks(&mut self) -> String {
        " ".repeat(1 + self.rng.below(4) as usize)
    }

    /// A rising time with up to nine digits behind the point.
    fn time(&mut self, step: u64) -> String {
        let part = self.rng.below(1_000_000_000);
        let digits = 1 + self.rng.below(9) as usize;
        format!("{step}.{}", &format!("{part:09}")[..digits])
    }
}

const PROCESSES: [&str; 5] = ["fio", "tmux: server", "jbd2/sda-8", "a b c", "kworker/0:1H"];
const LETTERS: [&str; 8] = ["R", "W", "WS", "RA", "D", "WSM", "FWFS", "ZAS"];

#[test]
fn disksim_is_what_a_slow_reader_makes_of_it() {
    let mut lines = Lines::new("disksim");
    let mut text = String::new();
    for step in 0..2_000 {
        let (time, blank) = (lines.time(step), lines.blanks());
        let (device, block) = (lines.rng.below(3), lines.rng.below(1 << 40));
        let (count, flags) = (1 + lines.rng.below(64), lines.rng.below(1 << 20));
        text.push_str(&format!("{time}{blank}{device} {block}{blank}{count} {flags:x}\n"));
    }
    let slow = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let flags = u64::from_str_radix(words[4], 16).expect("hexadecimal");
        let op = if flags % 2 == 1 { Op::Read } else { Op::Write };
        let number = |index: usize| words[index].parse::<u64>().expect("digits");
        (
            nanoseconds(words[0], 1_000_000),
            op,
            number(2) * 512,
            number(3) * 512,
            words[1].to_owned(),
        )
    };
    assert_eq!(read("disksim", &text), text.lines().map(slow).collect::<Vec<Request>>());
}

#[test]
fn biosnoop_is_what_a_slow_reader_makes_of_it() {
    let header = "TIME(s) COMM PID DISK T SECTOR BYTES QUE(ms) LAT(ms)\n";
    let mut lines = Lines::new("biosnoop");
    let mut text = format!("Tracing block device I/O... Hit Ctrl-C to end.\n{header}");
    for step in 0..2_000 {
        let (time, process) = (lines.time(step), lines.pick(&PROCESSES));
        let (letters, blank) = (lines.pick(&LETTERS), lines.blanks());
        let (sector, bytes) = (lines.rng.below(1 << 40), 512 * (1 + lines.rng.below(64)));
        let disk = lines.pick(&["sda", "nvme0n1", "dm-0"]);
        let latency = lines.pick(&["0.74", "0.10   5.11"]);
        let pid = lines.rng.below(9_999);
        text.push_str(&format!(
            "{time}{blank}{process} {pid}{blank}{disk} {letters} {sector}{blank}{bytes} {latency}\n"
        ));
        if step % 500 == 0 {
            text.push_str(header);
        }
    }
    let slow = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        if words[0].contains("TIME") || words[0].contains("Tracing") {
            return None;
        }
        let letters = words.iter().rposition(|word| LETTERS.contains(word)).expect("is there");
        let number = |index: usize| words[index].parse::<u64>().expect("digits");
        let op = asked(words[letters]).expect("asks");
        let time_ns = nanoseconds(words[0], 1_000_000_000);
        let disk = words[letters - 1].to_owned();
        Some((time_ns, op, number(letters + 1) * 512, number(letters + 2), disk))
    };
    assert_eq!(read("biosnoop", &text), text.lines().filter_map(slow).collect::<Vec<Request>>());
}

#[test]
fn ftrace_and_perf_are_what_a_slow_reader_makes_of_them() {
    let mut lines = Lines::new("ftrace");
    let mut text = "# tracer: nop\ncpus=4\n".to_owned();
    for step in 0..2_000 {
        let (time, process) = (lines.time(step), lines.pick(&PROCESSES));
        let letters = lines.pick(&LETTERS);
        let (sector, count) = (lines.rng.below(1 << 40), 1 + lines.rng.below(64));
        let device = lines.pick(&["8,0", "259,1", "253,16"]);
        let event = lines.pick(&["block_rq_issue", "block_rq_issue", "block_rq_complete"]);
        let bytes =
            if event == "block_rq_issue" { format!("{} ", count * 512) } else { String::new() };
        let line = match lines.rng.below(3) {
            0 => format!(
                "   {process}-{step}    [003] d..1. {time}: {event}: {device} {letters} {bytes}() \
                 {sector} + \
                 {count} none,0,0 [{process}]\n"
            ),
            1 => format!(
                "{process} {step} [001] {time}: block:{event}: {device} {letters} {bytes}() \
                 {sector} + {count} \
                 [{process}]\n\tffffffffb12d5040 blk_mq_start_request+0xa0 ([kernel.kallsyms])\n\n"
            ),
            _ => format!(
                "{process} {step} [001] {time}:    1  block:{event}: {device} {letters} {sector} + \
                 {count} [x]\n"
            ),
        };
        text.push_str(&line);
    }
    let slow = |line: &str| {
        let (before, after) = line.split_once("block_rq_issue: ")?;
        let time = before
            .split_whitespace()
            .rev()
            .find(|word| word.ends_with(':') && word.starts_with(|c: char| c.is_ascii_digit()))?;
        let after = after.replace("()", " ");
        let (front, back) = after.split_once(" + ").expect("has a count");
        let front: Vec<&str> = front.split_whitespace().collect();
        let sector: u64 = front.last().expect("a sector").parse().expect("digits");
        let count: u64 = back.split_whitespace().next().expect("a count").parse().expect("digits");
        let time_ns = nanoseconds(time.trim_end_matches(':'), 1_000_000_000);
        let op = asked(front[1]).expect("asks");
        Some((time_ns, op, sector * 512, count * 512, front[0].to_owned()))
    };
    let expected: Vec<Request> = text.lines().filter_map(slow).collect();
    assert!(expected.len() > 1_000);
    assert_eq!(read("ftrace", &text), expected);
}

#[test]
fn disk_events_of_windows_are_what_a_slow_reader_makes_of_them() {
    let mut lines = Lines::new("etw");
    let mut text = String::new();
    for step in 0..2_000 {
        let event = lines.pick(&["DiskRead", "DiskWrite", "CSwitch", "DiskReadInit"]);
        let (offset, bytes) = (lines.rng.below(1 << 45), 512 * (1 + lines.rng.below(64)));
        let (disk, process) = (lines.rng.below(3), lines.pick(&PROCESSES));
        let bytes = if step % 2 == 0 { format!("0x{bytes:08x}") } else { bytes.to_string() };
        text.push_str(&format!(
            "{event:>12}, {step:>9}, {process} ({step:>4}), 8, 0xfff, 0x{offset:x}, {bytes}, 71, \
             {disk}, 0x6, \
             5, Normal\n"
        ));
    }
    let slow = |line: &str| {
        let fields: Vec<&str> = line.split(',').map(str::trim).collect();
        let op = match fields[0] {
            "DiskRead" => Op::Read,
            "DiskWrite" => Op::Write,
            _ => return None,
        };
        let number = |index: usize| match fields[index].strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).expect("hexadecimal"),
            None => fields[index].parse().expect("digits"),
        };
        Some((number(1) * 1_000, op, number(5), number(6), fields[8].to_owned()))
    };
    let expected: Vec<Request> = text.lines().filter_map(slow).collect();
    assert_eq!(read("etw", &text), expected);
}

#[test]
fn iotrace_is_what_a_slow_reader_makes_of_it_in_both_forms() {
    let mut lines = Lines::new("iotrace");
    let mut csv =
        "device.id,device.name,file.path,header.sid,header.timestamp,io.flush,io.lba,io.len,\
                   io.operation\n"
            .to_owned();
    let mut json = String::new();
    let mut expected: Vec<Request> = Vec::new();
    for step in 1..2_000_u64 {
        let (lba, len) = (lines.rng.below(1 << 40), lines.rng.below(64));
        let operation = lines.pick(&["Read", "Write", "Discard"]);
        let (name, flush) = (lines.pick(&["sda", "nvme0n1", ""]), lines.rng.below(2) == 0);
        csv.push_str(&format!(
            "77,{name},\"/a, b\",{step},{step},{flush},{lba},{len},{operation}\n"
        ));
        let number = |key: &str, value: u64| match value {
            0 => String::new(),
            value => format!("\"{key}\":\"{value}\","),
        };
        json.push_str(&format!(
            "{{\"header\":{{\"sid\":\"{step}\",\"timestamp\":\"{step}\"}},\
             \"io\":{{{}{}\"operation\":\"{operation}\",\"flush\":{flush}}},\
             \"device\":{{\"id\":\"77\",\"name\":\"{name}\"}}}}\n",
            number("lba", lba),
            number("len", len),
        ));
        let device = if name.is_empty() { "77" } else { name }.to_owned();
        let op = match operation {
            "Read" => Op::Read,
            "Write" => Op::Write,
            _ => Op::Trim,
        };
        match (len, flush) {
            (0, false) => {}
            (0, true) => expected.push((step, Op::Flush, 0, 0, device)),
            _ => expected.push((step, op, lba * 512, len * 512, device)),
        }
    }
    assert_eq!(read("iotrace", &csv), expected);
    assert_eq!(read("iotrace", &json), expected);
}

/// Numbers as other programs write them, in a table of each separator.
#[test]
fn tables_are_what_a_slow_reader_makes_of_them() {
    for separator in [",", ";", "\t", "|"] {
        let mut lines = Lines::new(separator);
        let names = ["time_ms", "op", "offset_sectors", "size_bytes", "volume"];
        let mut text = format!("# a script's\n{}\n", names.join(separator));
        let mut expected: Vec<Request> = Vec::new();
        for step in 0..1_000_u64 {
            let (time, op) = (lines.time(step), lines.pick(&["r", "WRITE", "discard", "read|x"]));
            let (sector, bytes) = (lines.rng.below(1 << 40), 512 * (1 + lines.rng.below(64)));
            let sector_text = match step % 3 {
                0 => sector.to_string(),
                1 => format!("{sector}.0"),
                _ => format!("\"0x{sector:x}\""),
            };
            let bytes_text =
                if step % 2 == 0 { format!("{bytes}e0") } else { format!("\"{bytes}\"") };
            let row = [&time, op, &sector_text, &bytes_text, "v 1"];
            if op == "read|x" && separator == "|" {
                continue;
            }
            text.push_str(&format!("{}\n", row.join(separator)));
            let op = match op.chars().next() {
                Some('r') => Op::Read,
                Some('W') => Op::Write,
                _ => Op::Trim,
            };
            expected.push((
                nanoseconds(&time, 1_000_000),
                op,
                sector * 512,
                bytes,
                "v 1".to_owned(),
            ));
        }
        assert_eq!(read("csv", &text), expected, "`{separator}`");
    }
}

#[test]
fn k5cloud_and_biotracer_are_what_slow_readers_make_of_them() {
    let mut lines = Lines::new("k5cloud");
    let mut text = "ID,Timestamp,Type,Offset,Length\n".to_owned();
    let mut phone = String::new();
    for step in 0..2_000 {
        let (time, kind) = (lines.time(step), lines.pick(&["R", "W"]));
        let (volume, offset) = (lines.rng.below(5), lines.rng.below(1 << 40));
        let (length, flags) = (1 + lines.rng.below(1 << 20), lines.rng.below(8));
        let (sectors, blank) = (1 + lines.rng.below(64), lines.blanks());
        text.push_str(&format!("{volume},{time},{kind},{offset},{length}\n"));
        let bytes = sectors * 512;
        phone.push_str(&format!(
            "{offset}{blank}{sectors}\t\t{bytes} {flags}{blank}{time} {time}\t{time} {time}\n"
        ));
    }
    let slow = |line: &str| {
        let words: Vec<&str> = line.split(',').collect();
        let op = if words[2] == "W" { Op::Write } else { Op::Read };
        let number = |index: usize| words[index].parse::<u64>().expect("digits");
        let time_ns = nanoseconds(words[1], 1_000_000_000);
        (time_ns, op, number(3), number(4), words[0].to_owned())
    };
    let expected: Vec<Request> = text.lines().skip(1).map(slow).collect();
    assert_eq!(read("k5cloud", &text), expected);
    let slow = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let number = |index: usize| words[index].parse::<u64>().expect("digits");
        let op = if number(3) % 2 == 1 { Op::Write } else { Op::Read };
        let time_ns = nanoseconds(words[4], 1_000_000_000);
        (time_ns, op, number(0) * 512, number(2), "0".to_owned())
    };
    assert_eq!(read("biotracer", &phone), phone.lines().map(slow).collect::<Vec<Request>>());
}

#[test]
fn tectonic_and_mooncake_are_what_slow_readers_make_of_them() {
    let mut lines = Lines::new("tectonic");
    let mut text =
        "op_count,op_name,block_id,io_offset,io_size,op_time,rs_shard_id,user_name\n".to_owned();
    let mut prompts = String::new();
    for step in 0..2_000 {
        let (time, count) = (lines.time(step), 1 + lines.rng.below(3));
        let op =
            lines.pick(&["getChunkData.Permanent", "putChunk.NotInitialized", "other", "3", "5"]);
        let (block, shard, user) =
            (lines.rng.below(40), lines.rng.below(3), lines.pick(&["ads", "42", "x y"]));
        let (offset, size) = (lines.rng.below(1 << 20), 1 + lines.rng.below(1 << 20));
        text.push_str(&format!("{count},{op},b{block},{offset},{size},{time},{shard},{user}\n"));
        let ids: Vec<u64> = (0..lines.rng.below(6)).map(|_| lines.rng.below(1 << 40)).collect();
        prompts.push_str(&format!("{{\"hash_ids\": {ids:?}, \"timestamp\": {step}}}\n"));
    }
    let mut objects: Vec<String> = Vec::new();
    let mut expected: Vec<Request> = Vec::new();
    for line in text.lines().skip(1) {
        let words: Vec<&str> = line.split(',').collect();
        let op = match words[1] {
            "3" => Op::Write,
            "5" => Op::Read,
            name if name.starts_with("get") => Op::Read,
            name if name.starts_with("put") => Op::Write,
            _ => continue,
        };
        let object = format!("{} {}", words[2], words[6]);
        let at = objects.iter().position(|known| *known == object).unwrap_or_else(|| {
            objects.push(object);
            objects.len() - 1
        });
        let number = |index: usize| words[index].parse::<u64>().expect("digits");
        let offset = at as u64 * 64 * 1024 * 1024 + number(3);
        let time_ns = nanoseconds(words[5], 1_000_000_000);
        let request = (time_ns, op, offset, number(4), words[7].to_owned());
        expected.extend(vec![request; number(0) as usize]);
    }
    assert_eq!(read("tectonic", &text), expected);
    let mut expected: Vec<Request> = Vec::new();
    for (step, line) in prompts.lines().enumerate() {
        let list = line.split(['[', ']']).nth(1).expect("a list");
        for id in list.split(", ").filter(|id| !id.is_empty()) {
            let offset = id.parse::<u64>().expect("digits") * 4096;
            expected.push((step as u64 * 1_000_000, Op::Read, offset, 4096, "0".to_owned()));
        }
    }
    assert_eq!(read("mooncake", &prompts), expected);
}
