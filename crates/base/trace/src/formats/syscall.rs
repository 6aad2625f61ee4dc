//! System-call traces above the page cache (`buffer-cache` captures).
//!
//! The columns `timestamp_us,pid,file_id,offset,length,op` and, where it was recorded,
//! `duration_us`. Units: microseconds since the first record and within the call, bytes. `R` read,
//! `W` write, `S` fsync or fdatasync (offset and length 0), which becomes a flush. Every file is a
//! volume named by its `file_id`, so that each has an address space of its own. A request's pause
//! is the time since the end of its process's last call, or since its begin where durations were
//! not recorded. A process's first call pauses since the call before it. Source: the README beside
//! our captures.

use super::registry::{TraceFormat, Unit};
use crate::clock::{Clock, ClockOptions};
use crate::fields::{Extent, FieldFault, Fields, expected};
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial};
use crate::units::TimeUnit;
use crate::{Call, Record};
use cachewright_types::Op;
use cachewright_types::declare::Declared;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "syscall",
    doc: "timestamp_us,pid,file_id,offset,length,op[,duration_us]: R, W, S (fsync); bytes",
    source: "our buffer-cache captures (strace of read, write and fsync)",
    time: Unit::Of(1_000),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "whether calls have durations",
    to_say: &[],
    options: ClockOptions::keys,
    recognise: |head| trial(Syscall::new(&ClockOptions::default()), head, 90),
    near_miss: |head| near_miss(Syscall::new(&ClockOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Syscall::new),
};

const PID: &str = "a process number";
const FILE: &str = "a file number";
const OP: &str = "R, W or S";
const EXTENT: Extent =
    Extent { offset_column: 4, offset_unit: 1, length_column: 5, length_unit: 1 };

#[derive(Clone)]
struct Syscall {
    clock: Clock,
    /// The same without the shift of times, for durations.
    durations: Clock,
    /// When the last call of each process ended.
    ended_ns: HashMap<u32, u64, FixedState>,
    /// When the last call of any process ended.
    last_ns: u64,
    /// The process of the last request.
    call: Call,
}

impl Syscall {
    fn new(own: &ClockOptions) -> Syscall {
        let clock = Clock::new(own, TimeUnit::MICROSECOND, expected::MICROSECONDS);
        Syscall {
            clock,
            durations: clock.of_durations(),
            ended_ns: HashMap::default(),
            last_ns: 0,
            call: Call::default(),
        }
    }
}

impl LineParser for Syscall {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<b','>::new(line);
        let time_ns = fields.ticks(&self.clock)?;
        let process = fields.number(PID)?;
        let process = u32::try_from(process).map_err(|_| fields.fault(PID))?;
        let file = fields.number(FILE)?;
        let offset = fields.number(expected::OFFSET_BYTES)?;
        let length = fields.number(expected::LENGTH_BYTES)?;
        let op = fields.op(kind, OP)?;
        let took_ns = match fields.has_more() {
            true => fields.ticks(&self.durations)?,
            false => 0,
        };
        fields.end()?;
        let (offset_bytes, length_bytes) = EXTENT.bytes(op, offset, length)?;
        let volume = volumes.numbered(file, 3)?;
        let end_ns = time_ns.saturating_add(took_ns);
        let since_ns = self.ended_ns.insert(process, end_ns).unwrap_or(self.last_ns);
        self.last_ns = end_ns;
        self.call = Call { process, pause_ns: time_ns.saturating_sub(since_ns) };
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn call(&self) -> Option<Call> {
        Some(self.call)
    }

    fn length_column(&self) -> u32 {
        EXTENT.length_column
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }
}

#[inline]
fn kind(word: &[u8]) -> Option<Op> {
    match word {
        b"R" => Some(Op::Read),
        b"W" => Some(Op::Write),
        b"S" => Some(Op::Flush),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, read_all, record};
    use crate::{Batch, ByteSource, OpenOptions, TraceReader};

    #[test]
    fn files_are_volumes_and_fsync_a_flush() {
        let text = "0,16344,5,0,32768,R\n1343,16345,2,1572864,100,W\n1579,16344,5,0,0,S\n";
        let (records, volumes) = read_all("syscall", text);
        let expected = [
            record(0, Op::Read, 0, 32_768, 0),
            record(1_343_000, Op::Write, 1_572_864, 100, 1),
            record(1_579_000, Op::Flush, 0, 0, 0),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["5", "2"]);
    }

    #[test]
    fn pauses_are_between_the_calls_of_one_process() {
        let pauses = |text: &str| {
            let source = ByteSource::from_bytes("trace", text.as_bytes()).unwrap();
            let mut reader = TextReader::new(
                source,
                Syscall::new(&ClockOptions::default()),
                &OpenOptions::default(),
            );
            let mut batch = Batch::default();
            assert_eq!(reader.read(&mut batch, 9).unwrap_or(0), 4);
            batch.calls.iter().map(|call| call.pause_ns).collect::<Vec<u64>>()
        };
        let calls = |durations: [&str; 4]| {
            let lines = ["0,7,1,0,9,R", "5,8,1,0,9,R", "40,7,1,9,9,R", "45,8,1,0,0,S"];
            let lines = lines.iter().zip(durations).map(|(line, took)| format!("{line}{took}\n"));
            lines.collect::<String>()
        };
        assert_eq!(pauses(&calls([""; 4])), [0, 5_000, 40_000, 40_000]);
        assert_eq!(pauses(&calls([",3", ",100", ",1", ",9"])), [0, 2_000, 37_000, 0]);
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(bad("syscall", "0,1,5,0,0,R\n").contains("column 5: found `0`"));
        assert!(
            bad("syscall", "0,1,5,0,9,X\n").contains("column 6: found `X`, expected R, W or S")
        );
    }
}
