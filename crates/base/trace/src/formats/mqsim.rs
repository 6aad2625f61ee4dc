//! MQSim's ASCII traces; SSDsim's have the same columns and the same sense of the type.
//!
//! The columns `time device lba sectors type`, separated by blanks. Units: time by the option
//! `time_unit`; LBA and length in sectors of 512 B. MQSim states the unit of time in its workload
//! file; the published samples and SSDsim have nanoseconds. Type 0 is a WRITE and 1 a READ. Traces
//! of zoned drives (github:umn-cris/MQSim) have type 2, the reset of a zone, which asks nothing
//! here, and lines that begin with `//`. MQSim reads the device and does nothing with it; in
//! SSDsim, and in traces made of others, it tells volumes apart: the option `devices` decides.
//! Source: MQSim README and `ASCII_Trace_Definition.h` (Tavakkol et al., FAST'18); SSDsim `ssd.c`
//! (Hu et al., ICS'11).

use super::registry::{TraceFormat, Unit};
use crate::Record;
use crate::clock::{Clock, ClockOptions};
use crate::fields::{BLANKS, Extent, FieldFault, Fields, SECTOR_BYTES, whole};
use crate::text::{LineParser, TextReader, VolumeNames, near_miss, trial, whole_lines};
use crate::units::{AddressUnit, TimeUnit};
use cachewright_types::declare::Declared;
use cachewright_types::{Nanos, Op, choices, declare};

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "mqsim",
    doc: "time device lba sectors type (also SSDsim): sectors of 512 B; 0 write, 1 read",
    source: "MQSim README and ASCII_Trace_Definition.h; SSDsim ssd.c",
    time: Unit::Of(1),
    offset: Unit::Of(512),
    length: Unit::Of(512),
    detected: "bytes in place of sectors, as with `tencent`",
    to_say: &["time_unit", "offset_unit", "length_unit", "devices"],
    options: MqsimOptions::keys,
    recognise,
    near_miss: |head| near_miss(Mqsim::new(&MqsimOptions::default()), head),
    open: |source, options| TextReader::opened(source, options, Mqsim::new),
};

choices! {
    /// What the second column means.
    pub enum Devices {
        /// Each number is a volume.
        Volumes = "volumes",
        /// Nothing: all requests are of one volume, `0`.
        Ignore = "ignore",
    }
}

declare! {
    /// Options of reading.
    pub struct MqsimOptions {
        /// unit of the first column; default: nanoseconds
        time_unit: Option<TimeUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
        /// unit of the third column
        offset_unit: AddressUnit = AddressUnit(SECTOR_BYTES), "";
        /// unit of the fourth column
        length_unit: AddressUnit = AddressUnit(SECTOR_BYTES), "";
        /// whether each device number is a volume, or none has a meaning, as in MQSim
        devices: Devices = Devices::Volumes, "word";
    }
}

const TIME: &str = "a time, a whole number below 2^64 nanoseconds";
const DEVICE: &str = "a device number";
const LBA: &str = "a first sector of 512 B, a whole number from 0";
const SECTORS: &str = "a number of sectors of 512 B";
const TYPE: &str = "0 (write), 1 (read) or 2 (zone reset)";

#[derive(Clone)]
struct Mqsim {
    clock: Clock,
    extent: Extent,
    devices: Devices,
}

impl Mqsim {
    fn new(own: &MqsimOptions) -> Mqsim {
        let given = ClockOptions { time_unit: own.time_unit, time_shift: own.time_shift };
        let extent = Extent {
            offset_column: 3,
            offset_unit: own.offset_unit.0,
            length_column: 4,
            length_unit: own.length_unit.0,
        };
        let clock = Clock::new(&given, TimeUnit::NANOSECOND, TIME);
        Mqsim { clock, extent, devices: own.devices }
    }
}

/// Times with a point are DiskSim's, in milliseconds, and its last column means another thing.
fn recognise(head: &[u8]) -> u8 {
    let has_point =
        |line: &[u8]| Fields::<BLANKS>::new(line).next().is_some_and(|t| t.contains(&b'.'));
    if whole_lines(head).any(has_point) {
        return 0;
    }
    trial(Mqsim::new(&MqsimOptions::default()), head, 75)
}

impl LineParser for Mqsim {
    #[inline]
    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields = Fields::<BLANKS>::new(line);
        let time_ns = fields.ticks(&self.clock)?;
        let device = fields.number(DEVICE)?;
        let device = if self.devices == Devices::Ignore { 0 } else { device };
        let offset = fields.number(LBA)?;
        let length = fields.number(SECTORS)?;
        let op = match fields.word(TYPE)? {
            b"0" => Op::Write,
            b"1" => Op::Read,
            other => match whole(other) {
                Some(0) => Op::Write,
                Some(1) => Op::Read,
                Some(2) => return fields.end().map(|()| None),
                _ => return Err(fields.fault(TYPE)),
            },
        };
        fields.end()?;
        let (offset_bytes, length_bytes) = self.extent.bytes(op, offset, length)?;
        let volume = volumes.numbered(device, 2)?;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn length_column(&self) -> u32 {
        self.extent.length_column
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn passed_over(&self) -> Option<&'static str> {
        Some("zone reset")
    }

    fn delimiter(&self) -> u8 {
        BLANKS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, bad_with, options, read_all, read_with, record};

    const TEXT: &str = "938513000 4 264719034 16 0\r\n938828000  3\t197570570 8 1 \n";

    #[test]
    fn one_is_a_read() {
        let (records, volumes) = read_all("mqsim", TEXT);
        let expected = [
            record(938_513_000, Op::Write, 264_719_034 * 512, 8192, 0),
            record(938_828_000, Op::Read, 197_570_570 * 512, 4096, 1),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["4", "3"]);
    }

    #[test]
    fn the_unit_of_time_is_an_option() {
        let first = |unit| read_with(&options("mqsim", &[("time_unit", unit)]), TEXT).0[0].time_ns;
        assert_eq!(first("ps"), 938_513);
        assert_eq!(first("us"), 938_513_000_000);
        let refused = bad_with(&options("mqsim", &[("time_unit", "hours")]), TEXT);
        assert!(refused.starts_with("`time_unit`: found `hours`, expected one of ps"), "{refused}");
        let refused = bad_with(&options("mqsim", &[("time_units", "ns")]), TEXT);
        assert!(refused.ends_with("nearest is `time_unit`"), "{refused}");
    }

    #[test]
    fn devices_are_volumes_unless_they_are_ignored_as_in_mqsim() {
        let (records, volumes) = read_with(&options("mqsim", &[("devices", "ignore")]), TEXT);
        assert_eq!(volumes, ["0"]);
        assert!(records.iter().all(|record| record.volume == 0));
        let refused = bad_with(&options("mqsim", &[("devices", "ignored")]), TEXT);
        assert!(refused.starts_with("`devices`: found `ignored`, expected"), "{refused}");
    }

    #[test]
    fn bad_lines_are_named() {
        assert!(bad("mqsim", "0 0 8 0 1\n").contains("column 4: found `0`, expected a length"));
        assert!(bad("mqsim", "0 0 8 8 3\n").contains("column 5: found `3`, expected 0 (write)"));
        assert!(bad("mqsim", "0.5 0 8 8 1\n").contains("column 1: found `0.5`"));
        assert!(bad("mqsim", "0 0 8 8\n").contains("column 5: found `end of line`"));
    }
}
