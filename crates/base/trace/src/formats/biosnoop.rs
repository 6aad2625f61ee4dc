//! The text of biosnoop, of bcc and of libbpf-tools.
//!
//! The columns `TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms)`, separated by blanks.
//! Units: seconds with a fraction since the first request, when it was completed; sectors of 512 B;
//! bytes. `T` is R or W, or the kernel's letters ([`rwbs`]). A volume is a disk. A process name may
//! hold blanks, so that the columns after it are read from the right. A request of no bytes is a
//! flush if it writes, and else asks nothing. Source: bcc `biosnoop.py`, libbpf-tools `biosnoop.c`.

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{BLANKS, Extent, FieldFault, Fields, FromRight, SECTOR_BYTES, expected, whole};
use crate::rwbs::{self, RWBS};
use crate::text::{Header, LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use cachewright_types::Op;
use cachewright_types::declare::Declared;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "biosnoop",
    doc: "TIME(s) COMM PID DISK T SECTOR BYTES [QUE(ms)] LAT(ms): seconds; sectors of 512 B; bytes",
    source: "biosnoop of bcc and libbpf-tools",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(1),
    detected: "columns of latencies; process names with blanks",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| trial(Biosnoop::new(&ClockOptions::default()), head, 90),
    near_miss: |head| near_miss(Biosnoop::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Biosnoop::new),
};

/// The columns of a line whose process name is one word.
const EXTENT: Extent =
    Extent { offset_column: 6, offset_unit: SECTOR_BYTES, length_column: 7, length_unit: 1 };
const PID: &str = "a process number";
const DISK: &str = "the name of a disk";
const LATENCY: &str = "a latency in milliseconds with a fraction";
/// How lines of the tools' own begin.
const SAID: [&[u8]; 6] =
    [b"TIME(s) ", b"Tracing ", b"Attaching ", b"Possibly lost ", b"lost ", b"^C"];

#[derive(Clone)]
struct Biosnoop {
    clock: Clock,
    /// The last line was passed over because its request moves nothing.
    was_empty: bool,
}

impl Biosnoop {
    fn new(own: &ClockOptions) -> Biosnoop {
        let clock = Clock::new(own, TimeUnit::SECOND, expected::SECONDS);
        Biosnoop { clock, was_empty: false }
    }
}

impl LineParser for Biosnoop {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut left = Fields::<BLANKS>::new(line);
        let time_ns = match left.time(&self.clock) {
            Ok(time_ns) => time_ns,
            Err(_) if SAID.iter().any(|beginning| line.starts_with(beginning)) => {
                self.was_empty = false;
                return Ok(None);
            }
            Err(fault) => return Err(fault),
        };
        let mut right = FromRight::new(left.rest(), left.column());
        // Latencies have a point, sizes have none.
        let latencies = right.skip_while(|word| word.contains(&b'.') || word == b"-");
        if latencies == 0 {
            right.word();
            return Err(right.fault(LATENCY));
        }
        let length = right.number(expected::LENGTH_BYTES)?;
        let at_length = right;
        let sector = right.word();
        let at_sector = right;
        let letters = right.word();
        let request = rwbs::request(letters).ok_or_else(|| right.fault(RWBS))?;
        let disk = right.word();
        let at_disk = right;
        if disk.is_empty() {
            return Err(right.fault(DISK));
        }
        right.number(PID)?;
        let op = match request.data {
            Some(op) if length > 0 => op,
            Some(Op::Write) => Op::Flush,
            None if request.flush => Op::Flush,
            _ => {
                self.was_empty = true;
                return Ok(None);
            }
        };
        let offset = match op {
            Op::Flush => 0,
            _ => whole(sector).ok_or_else(|| at_sector.fault(expected::OFFSET_SECTORS))?,
        };
        // The columns of a line are counted only where one is refused.
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length).map_err(|fault| {
            let column = if fault.column == EXTENT.offset_column { at_sector } else { at_length };
            column.fault(fault.expected)
        })?;
        let volume =
            volumes.keyed(disk, 0, str::to_owned).map_err(|fault| at_disk.fault(fault.expected))?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        EXTENT.length_column
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn passed_over(&self) -> Option<&'static str> {
        self.was_empty.then_some("request without data")
    }

    fn delimiter(&self) -> u8 {
        BLANKS
    }

    fn header(&self) -> Header {
        Header::Never
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OpenOptions;
    use crate::formats::testing::{bad, read_all, read_with, record};

    const TEXT: &str = "Tracing block device I/O... Hit Ctrl-C to end.\n\
        TIME(s)     COMM           PID    DISK      T SECTOR     BYTES  LAT(ms)\n\
        0.000004    supervise      1950   xvda1     W 13092560   4096      0.74\n\
        0.000178    tmux: server   1951   xvda1     WS 13092432   4096   0.10   0.61\n\
        0.001469    jbd2/vda1-8    422    vda       R 4565264    331776    5.11\n\
        0.002       kworker/3:1H   7      vda       FF -1         0         0.02\n\
        0.003       my 2 R 8 prog  7      vda       D 8          512       -\n\
        0.004       x              7      vda       R 18446744073709551615 0   0.02\n";

    #[test]
    fn columns_after_the_process_are_read_from_the_right() {
        let (records, volumes) = read_with(&OpenOptions::default(), TEXT);
        let expected = [
            record(4_000, Op::Write, 13_092_560 * 512, 4096, 0),
            record(178_000, Op::Write, 13_092_432 * 512, 4096, 0),
            record(1_469_000, Op::Read, 4_565_264 * 512, 331_776, 1),
            record(2_000_000, Op::Flush, 0, 0, 1),
            record(3_000_000, Op::Trim, 4096, 512, 1),
        ];
        assert_eq!(records, expected, "recognised");
        assert_eq!(volumes, ["xvda1", "vda"]);
        assert_eq!(read_all("biosnoop", &TEXT.repeat(2)).0.len(), 10, "the header again");
    }

    #[test]
    fn bad_lines_are_named() {
        let line = |rest: &str| bad("biosnoop", &format!("0.5 my prog 7 {rest}\n"));
        assert!(line("vda X 8 512 0.1").contains("line 1, column 6: found `X`, expected letters"));
        assert!(line("vda R x 512 0.1").contains("column 7: found `x`, expected an offset in sec"));
        assert!(line("vda R 8 -512 0.1").contains("column 8: found `-512`"));
        assert!(line("vda R 8 512").contains("column 8: found `512`, expected a latency"));
        assert!(bad("biosnoop", "0.5 p x vda R 8 512 0.1\n").contains("column 3: found `x`"));
        assert!(bad("biosnoop", "0.5\n").contains("column 2: found `end of line`"));
    }
}
