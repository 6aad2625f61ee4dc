//! libCacheSim's `lcs` files, versions 1 to 8.
//!
//! A header of 8 KiB and packed little-endian records. Units: seconds; objects of the option
//! `address_unit`; bytes. The header holds a mark at either end, the version and the writer's
//! counts. Only the number of requests is used, for progress.
//!
//! ```text
//! header   mark u64 | version u64 | stat version, requests, ... i64 | ... | mark u64   (8192 B)
//! v1       seconds u32 | object u64 | bytes u32 | next i64                               (24 B)
//! v2       seconds u32 | object u64 | bytes u32 | op u8, tenant u24 | next i64           (28 B)
//! v3       seconds u32 | object u64 | bytes i64 | op u8, tenant u24 | ttl u32 | next i64 (36 B)
//! v4 .. v8 as v3, followed by 1, 2, 4, 8, 16 features of u32
//! ```
//!
//! A tenant is a volume. Next access, time to live and features are not used. An op of 0 (none
//! stated) is a read. Source: libCacheSim `lcs.h`, `lcs.c`, `enum.h`.

use super::objects::{NumberedObject, ObjectNumbers, ObjectOptions};
use super::oracle_general::op_of;
use super::registry::{NO_LINES, TraceFormat, Unit};
use crate::binary::{Parsed, Records, extent, le_u32, le_u64};
use crate::reader::declared;
use crate::text::VOLUMES_LIMIT;
use crate::units::TimeUnit;
use crate::{Batch, ByteSource, OpenOptions, Record, Skipped, TraceError, TraceReader};
use cachewright_types::Op;
use cachewright_types::declare::Declared;
use hashbrown::HashMap;

/// The row of the table of formats.
pub const ENTRY: TraceFormat = TraceFormat {
    name: "lcs",
    doc: "8 KiB header, then 24 to 100 B binary: seconds, object, bytes, op, tenant (the volume)",
    source: "libCacheSim lcs.h (versions 1 to 8) and enum.h",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(512),
    length: Unit::Of(1),
    detected: "the version; numbers of objects, as with `oracle-general`",
    to_say: &["address_unit"],
    options: ObjectOptions::keys,
    recognise: |head| if LcsHeader::parse(head).is_ok() { 99 } else { 0 },
    near_miss: NO_LINES,
    open,
};

const MARK: u64 = 0x1234_5678_9abc_def0;
const HEADER_BYTES: usize = 8192;
const OBJECT: usize = 4;
const LENGTH: usize = 12;
const EXPECTED: &str = "the header of an lcs file of version 1 to 8";

/// Where fields are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LcsLayout {
    /// Bytes of a record.
    size: usize,
    /// Whether the length has 8 bytes.
    is_wide: bool,
    /// Byte of the op, after which the tenant comes; nothing where there is neither.
    op: Option<usize>,
}

impl LcsLayout {
    /// The bytes that a record asks for.
    fn length(self, record: &[u8]) -> u64 {
        match self.is_wide {
            true => le_u64(record, LENGTH),
            false => u64::from(le_u32(record, LENGTH)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LcsHeader {
    layout: LcsLayout,
    requests: Option<u64>,
}

impl LcsHeader {
    /// The header at the beginning of `head`, or what is there instead.
    fn parse(head: &[u8]) -> Result<LcsHeader, String> {
        if head.len() < HEADER_BYTES {
            return Err(format!("{} bytes", head.len()));
        }
        if [0, HEADER_BYTES - 8].iter().any(|offset| le_u64(head, *offset) != MARK) {
            return Err("no marks".to_owned());
        }
        let layout = match le_u64(head, 8) {
            1 => LcsLayout { size: 24, is_wide: false, op: None },
            2 => LcsLayout { size: 28, is_wide: false, op: Some(16) },
            version @ 3..=8 => {
                let features = [0, 1, 2, 4, 8, 16][version as usize - 3];
                LcsLayout { size: 36 + 4 * features, is_wide: true, op: Some(20) }
            }
            version => return Err(format!("version {version}")),
        };
        let requests = le_u64(head, 24);
        let stated = requests > 0 && requests < 1 << 48;
        Ok(LcsHeader { layout, requests: stated.then_some(requests) })
    }
}

struct Lcs {
    records: Records,
    header: LcsHeader,
    numbers: ObjectNumbers,
    time_unit: TimeUnit,
    volumes: Vec<String>,
    volume_of: HashMap<u32, u32, foldhash::fast::FixedState>,
}

fn open(source: ByteSource, options: &OpenOptions) -> Result<Box<dyn TraceReader>, TraceError> {
    let own: ObjectOptions = declared(&options.format_options)?;
    let header = LcsHeader::parse(source.head()).map_err(|found| TraceError::File {
        path: source.path().to_owned(),
        found,
        expected: EXPECTED.to_owned(),
    })?;
    let layout = header.layout;
    let body = source.head().get(HEADER_BYTES..).unwrap_or_default();
    let first = body.chunks_exact(layout.size).map(|record| NumberedObject {
        space: layout.op.map_or(0, |op| le_u32(record, op) >> 8),
        id: le_u64(record, OBJECT),
        bytes: layout.length(record),
    });
    let numbers = ObjectNumbers::new(own.address_unit, first);
    let mut records = Records::new(source.into_stream(), options);
    records.ahead(HEADER_BYTES)?;
    records.pass(HEADER_BYTES, 0);
    Ok(Box::new(Lcs {
        records,
        header,
        numbers,
        time_unit: own.time_unit,
        volumes: Vec::new(),
        volume_of: HashMap::default(),
    }))
}

impl Lcs {
    /// One record, or where and what is wrong.
    fn parse_record(&mut self, bytes: &[u8]) -> Parsed {
        let layout = self.header.layout;
        let (op, tenant) = match layout.op {
            None => (Op::Read, 0),
            Some(offset) => {
                let word = le_u32(bytes, offset);
                let op = op_of(word as u8, Some(Op::Read));
                (op.ok_or((offset, "an op from 0 (none) to 14 (update)"))?, word >> 8)
            }
        };
        let length = layout.length(bytes);
        let (offset_bytes, length_bytes) =
            extent(op, le_u64(bytes, OBJECT), self.numbers.unit_bytes, length)
                .map_err(|expected| (if length == 0 { LENGTH } else { OBJECT }, expected))?;
        let volume = self.volume(tenant).ok_or((17, "at most 1048576 tenants"))?;
        let time_ns = self.time_unit.short_ns(le_u32(bytes, 0));
        Ok(Some(Record { time_ns, offset_bytes, length_bytes, op, volume }))
    }

    fn volume(&mut self, tenant: u32) -> Option<u32> {
        if let Some(volume) = self.volume_of.get(&tenant) {
            return Some(*volume);
        }
        let next = u32::try_from(self.volumes.len()).ok().filter(|n| *n < VOLUMES_LIMIT as u32)?;
        self.volumes.push(tenant.to_string());
        self.volume_of.insert(tenant, next);
        Some(next)
    }
}

impl TraceReader for Lcs {
    fn read(&mut self, batch: &mut Batch, max: usize) -> Result<usize, TraceError> {
        let size = self.header.layout.size;
        let mut count = 0;
        while count < max {
            let Some(bytes) = self.records.whole::<100>(size)? else { break };
            let parsed = self.parse_record(&bytes[..size]);
            count += self.records.take(parsed, size, LENGTH, batch)?;
        }
        Ok(count)
    }

    fn volumes(&self) -> &[String] {
        &self.volumes
    }

    fn skipped(&self) -> &Skipped {
        &self.records.skipped
    }

    fn requests_hint(&self) -> Option<u64> {
        self.header.requests
    }

    fn notes(&self) -> Vec<String> {
        self.numbers.note.iter().cloned().collect()
    }

    fn counts_objects(&self) -> bool {
        self.numbers.are_objects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: u64 = 1_000_000_000;
    use crate::binary::testing::{bad_bytes, read_bytes};
    use crate::formats::registry::open_bytes;
    use crate::formats::testing::{options, record};
    use crate::recognise_bytes;

    /// A file of `version` with records of (seconds, object, bytes, op, tenant).
    fn file(version: u64, records: &[(u32, u64, u64, u8, u32)]) -> Vec<u8> {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MARK.to_le_bytes());
        bytes[8..16].copy_from_slice(&version.to_le_bytes());
        bytes[24..32].copy_from_slice(&(records.len() as u64).to_le_bytes());
        bytes[HEADER_BYTES - 8..].copy_from_slice(&MARK.to_le_bytes());
        for (seconds, object, length, op, tenant) in records {
            bytes.extend(seconds.to_le_bytes());
            bytes.extend(object.to_le_bytes());
            if version >= 3 {
                bytes.extend(length.to_le_bytes());
            } else {
                bytes.extend((*length as u32).to_le_bytes());
            }
            if version >= 2 {
                bytes.extend((tenant << 8 | u32::from(*op)).to_le_bytes());
            }
            if version >= 3 {
                bytes.extend(600_u32.to_le_bytes());
            }
            bytes.extend((-1_i64).to_le_bytes());
            let features = if version > 3 { 1 << (version - 4) } else { 0 };
            bytes.extend(vec![0xee; 4 * features]);
        }
        bytes
    }

    const RECORDS: [(u32, u64, u64, u8, u32); 4] =
        [(5, 7, 4096, 1, 3), (5, 9, 512, 3, 70_000), (6, 7, 4096, 9, 3), (7, 1, 1, 0, 3)];

    #[test]
    fn every_version_is_read() {
        let sizes = [24, 28, 36, 40, 44, 52, 68, 100];
        for (version, size) in (1..).zip(sizes) {
            let bytes = file(version, &RECORDS);
            assert_eq!(bytes.len(), HEADER_BYTES + RECORDS.len() * size, "version {version}");
            assert_eq!(recognise_bytes(&bytes).unwrap().name, "lcs");
            let (records, volumes) = read_bytes(&options("lcs", &[]), &bytes);
            let has_op = version > 1;
            let op_or_read = |op| if has_op { op } else { Op::Read };
            let second = u32::from(has_op);
            let expected = [
                record(5 * SECOND_NS, Op::Read, 7 * 512, 4096, 0),
                record(5 * SECOND_NS, op_or_read(Op::Write), 9 * 512, 512, second),
                record(6 * SECOND_NS, op_or_read(Op::Trim), 7 * 512, 4096, 0),
                record(7 * SECOND_NS, Op::Read, 512, 1, 0),
            ];
            assert_eq!(records, expected, "version {version}");
            let names: &[&str] = if has_op { &["3", "70000"] } else { &["0"] };
            assert_eq!(volumes, names);
            let reader = open_bytes("sample", &bytes, &options("lcs", &[])).unwrap();
            assert_eq!(reader.requests_hint(), Some(4));
        }
        let by_object = options("lcs", &[("address_unit", "object")]);
        assert_eq!(read_bytes(&by_object, &file(3, &RECORDS)).0[0].offset_bytes, 7);
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |bytes: &[u8]| bad_bytes(&options("lcs", &[]), bytes);
        let header = file(9, &RECORDS);
        assert_eq!(error(&header), format!("sample: found version 9, expected {EXPECTED}"));
        assert!(error(&header[..8000]).starts_with("sample: found 8000 bytes, expected"));
        let mut unmarked = file(1, &RECORDS);
        unmarked[HEADER_BYTES - 1] = 0;
        assert!(error(&unmarked).starts_with("sample: found no marks"));
        let error_of = |records: &[(u32, u64, u64, u8, u32)]| error(&file(3, records));
        let found = error_of(&[RECORDS[0], (5, 9, 512, 99, 0)]);
        assert!(found.starts_with("sample: record 2, byte 8248: found `0x63"), "{found}");
        assert!(error_of(&[(5, 9, 0, 1, 0)]).contains("byte 8204: found"));
        assert!(
            error_of(&[(5, u64::MAX, 512, 1, 0)]).contains("expected a request that ends below")
        );
        let long = error_of(&[(5, 9, 1 << 62, 1, 0)]);
        assert!(
            long.ends_with(
                "byte 8204: found `4611686018427387904 B`, expected at most 1GiB in \
                            one request (`max_request`)"
            ),
            "{long}"
        );
        let cut = file(3, &RECORDS);
        let cut = error(&cut[..cut.len() - 1]);
        assert!(cut.contains("record 4, byte 8300: "), "{cut}");
        assert!(cut.ends_with("expected a record of 36 bytes"), "{cut}");
    }
}
