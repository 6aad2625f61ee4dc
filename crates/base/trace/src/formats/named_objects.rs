//! Requests to parts of named objects: Meta's Tectonic (and Baleen), Google's Thesios.
//!
//! Tables whose rows name an object (a block and its shard, a file), a range of bytes in it, who
//! asks, and when. Units: seconds, bytes. Objects have no addresses, so that each gets `span` bytes
//! of address space, in the order of first sight. A volume is a tenant (`user_name`,
//! `application`). Columns are found by their names in the header, in any order; Baleen's files
//! have none and separate by blanks. Sources: cacheMon/cache_dataset and CacheLib's sample
//! (Tectonic), Baleen (Wong et al., FAST'24), google-research-datasets/thesios (Phothilimthana et
//! al., ASPLOS'24).
//!
//! Operations of Tectonic: `getChunkData.*` reads and `putChunk.*` writes; as numbers 1, 2, 5 and
//! 3, 4, 6. Others move no data of a block and are counted. A row stands for `op_count` requests.

use super::csv::next_field;
use super::registry::{NearMiss, TraceFormat, Unit};
use crate::clock::{Clock, ClockOptions};
use crate::fields::{BLANKS, Extent, FieldFault, expected, whole};
use crate::intern::Numbered;
use crate::reader::{declared, shown};
use crate::text::{Header, LineParser, TextReader, VolumeNames, first_row, near_miss, trial};
use crate::units::TimeUnit;
use crate::{ByteSource, OpenOptions, Record, TraceError, TraceReader};
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Nanos, Op, declare};

/// The row of Tectonic in the table of formats.
pub const TECTONIC_ENTRY: TraceFormat = TraceFormat {
    name: "tectonic",
    doc: "Meta Tectonic (CSV with block_id, io_offset, io_size, op_name, op_count) and Baleen \
          (blanks): seconds; bytes",
    source: "cacheMon/cache_dataset; CacheLib block_traces; Baleen, FAST'24",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "the columns, from the header; without one Baleen's",
    to_say: &["span"],
    options: NamedObjectOptions::keys,
    recognise: |head| TECTONIC.recognise(head),
    near_miss: |head| TECTONIC.near_miss(head),
    open: |source, options| TECTONIC.open(source, options),
};

/// The row of Thesios in the table of formats.
pub const THESIOS_ENTRY: TraceFormat = TraceFormat {
    name: "thesios",
    doc: "CSV with filename, file_offset, request_io_size_bytes, op_type, start_time: seconds; \
          bytes",
    source: "google-research-datasets/thesios; ASPLOS'24",
    time: Unit::Of(1_000_000_000),
    offset: Unit::Of(1),
    length: Unit::Of(1),
    detected: "the columns, from the header",
    to_say: &["span"],
    options: NamedObjectOptions::keys,
    recognise: |head| THESIOS.recognise(head),
    near_miss: |head| THESIOS.near_miss(head),
    open: |source, options| THESIOS.open(source, options),
};

declare! {
    /// Options of reading.
    pub struct NamedObjectOptions {
        /// bytes of address space for each object; default: 64MiB for `tectonic`, 64GiB for
        /// `thesios`
        span: Option<Bytes> = None, "bytes", 1 ..= 1_152_921_504_606_846_976;
        /// unit of times; default: seconds
        time_unit: Option<TimeUnit> = None, "";
        /// added to every time, for times before zero
        time_shift: Option<Nanos> = None, "";
    }
}

/// What a row holds that is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Time,
    Object,
    /// The part of an object's name in a second column.
    Shard,
    Offset,
    Length,
    Op,
    Tenant,
    Count,
}

const ROLES: usize = 8;

/// What an operation asks.
enum Meaning {
    Data(Op),
    /// No data of an object.
    Nothing,
    /// A word that is none.
    Unknown,
}

/// One published set of traces.
struct DataSet {
    /// The name of each role's column, in the order of [`Role`]; empty where there is none.
    names: [&'static str; ROLES],
    /// Columns from 1 of files without a header, which separate by blanks.
    without_header: Option<[u32; ROLES]>,
    meaning: fn(&[u8]) -> Meaning,
    /// What an operation is refused with.
    operation: &'static str,
    /// What a file without the columns is refused with.
    columns: &'static str,
    span_bytes: u64,
}

static TECTONIC: DataSet = DataSet {
    names: [
        "op_time",
        "block_id",
        "rs_shard_id",
        "io_offset",
        "io_size",
        "op_name",
        "user_name",
        "op_count",
    ],
    without_header: Some([4, 1, 8, 2, 3, 5, 7, 9]),
    meaning: |word| match word {
        b"1" | b"2" | b"5" => Meaning::Data(Op::Read),
        b"3" | b"4" | b"6" => Meaning::Data(Op::Write),
        _ if word.starts_with(b"getChunkData") => Meaning::Data(Op::Read),
        _ if word.starts_with(b"putChunk") => Meaning::Data(Op::Write),
        b"100" => Meaning::Nothing,
        [first, ..] if first.is_ascii_alphabetic() => Meaning::Nothing,
        _ => Meaning::Unknown,
    },
    operation: "getChunkData.*, putChunk.*, another operation's name or a number from 1 to 6",
    columns: "a header with `op_time`, `block_id`, `io_offset`, `io_size` and `op_name`, or \
    Baleen's \
              ten columns separated by blanks",
    span_bytes: 64 << 20,
};

static THESIOS: DataSet = DataSet {
    names: [
        "start_time",
        "filename",
        "",
        "file_offset",
        "request_io_size_bytes",
        "op_type",
        "application",
        "",
    ],
    without_header: None,
    meaning: |word| match word {
        b"READ" => Meaning::Data(Op::Read),
        b"WRITE" => Meaning::Data(Op::Write),
        _ => Meaning::Unknown,
    },
    operation: "READ or WRITE",
    columns: "a header with `filename`, `file_offset`, `request_io_size_bytes`, `op_type` and \
              `start_time`",
    span_bytes: 64 << 30,
};

const ROW: &str = "a field for each column that is read";
const COUNT: &str = "how often the operation was made, a whole number from 1";
const BEYOND_SPAN: &str = "a range within the address space of an object (`span` widens it)";

impl DataSet {
    /// The columns of a file with this head, and what separates them.
    fn layout(&self, head: &[u8]) -> Option<Layout> {
        let first = first_row(head)?;
        for delimiter in [b',', BLANKS] {
            let mut columns = [0; ROLES];
            let mut rest = Some(first);
            let mut column = 0;
            while let Some(name) = next_field(&mut rest, delimiter) {
                column += 1;
                let role = self.names.iter().position(|known| known.as_bytes() == name);
                if let Some(role) = role.filter(|role| !name.is_empty() && columns[*role] == 0) {
                    columns[role] = column;
                }
            }
            let needed = [Role::Time, Role::Object, Role::Offset, Role::Length, Role::Op];
            if needed.iter().all(|role| columns[*role as usize] > 0) {
                return Some(Layout { columns, delimiter, has_header: true });
            }
        }
        let columns = self.without_header?;
        Some(Layout { columns, delimiter: BLANKS, has_header: false })
    }

    fn parser(&'static self, head: &[u8], own: &NamedObjectOptions) -> Option<NamedObjects> {
        let given = ClockOptions { time_unit: own.time_unit, time_shift: own.time_shift };
        Some(NamedObjects {
            set: self,
            layout: self.layout(head)?,
            clock: Clock::new(&given, TimeUnit::SECOND, expected::SECONDS),
            span_bytes: own.span.map_or(self.span_bytes, |span| span.0),
            objects: Numbered::default(),
            name: Vec::new(),
            repeats: 1,
        })
    }

    fn recognise(&'static self, head: &[u8]) -> u8 {
        match self.parser(head, &NamedObjectOptions::default()) {
            Some(parser) if parser.layout.has_header => trial(parser, head, 100),
            Some(parser) => trial(parser, head, 85),
            None => 0,
        }
    }

    fn near_miss(&'static self, head: &[u8]) -> Option<NearMiss> {
        let parser = self.parser(head, &NamedObjectOptions::default())?;
        if !parser.layout.has_header {
            return None;
        }
        near_miss(parser, head)
    }

    fn open(
        &'static self,
        source: ByteSource,
        options: &OpenOptions,
    ) -> Result<Box<dyn TraceReader>, TraceError> {
        let own: NamedObjectOptions = declared(&options.format_options)?;
        let Some(parser) = self.parser(source.head(), &own) else {
            let first = first_row(source.head()).unwrap_or_default();
            return Err(TraceError::File {
                path: source.path().to_owned(),
                found: format!("`{}` in the first line", shown(first)),
                expected: self.columns.to_owned(),
            });
        };
        Ok(TextReader::boxed(source, parser, options))
    }
}

/// Where a file keeps its columns.
#[derive(Clone, Copy)]
struct Layout {
    /// The column of each role, from 1; 0 where there is none.
    columns: [u32; ROLES],
    delimiter: u8,
    has_header: bool,
}

#[derive(Clone)]
struct NamedObjects {
    set: &'static DataSet,
    layout: Layout,
    clock: Clock,
    span_bytes: u64,
    objects: Numbered,
    /// The name of the last object, with its shard.
    name: Vec<u8>,
    repeats: u64,
}

impl NamedObjects {
    fn column(&self, role: Role) -> u32 {
        self.layout.columns[role as usize]
    }

    fn fault(&self, role: Role, expected: &'static str) -> FieldFault {
        FieldFault { column: self.column(role), expected }
    }
}

impl LineParser for NamedObjects {
    const REPEATS: bool = true;

    fn line(
        &mut self,
        line: &[u8],
        volumes: &mut VolumeNames,
    ) -> Result<Option<Record>, FieldFault> {
        let mut fields: [&[u8]; ROLES] = [b""; ROLES];
        let last = self.layout.columns.iter().copied().max().unwrap_or(0);
        let mut rest = Some(line);
        for column in 1..=last {
            let Some(field) = next_field(&mut rest, self.layout.delimiter) else {
                return Err(FieldFault { column, expected: ROW });
            };
            let role = self.layout.columns.iter().position(|known| *known == column);
            if let Some(role) = role {
                fields[role] = field;
            }
        }
        let field = |role: Role| fields[role as usize];
        let time_ns = self.clock.ns(field(Role::Time));
        let time_ns = time_ns.map_err(|expected| self.fault(Role::Time, expected))?;
        let op = match (self.set.meaning)(field(Role::Op)) {
            Meaning::Data(op) => op,
            Meaning::Nothing => return Ok(None),
            Meaning::Unknown => return Err(self.fault(Role::Op, self.set.operation)),
        };
        let number =
            |role: Role, expected| whole(field(role)).ok_or_else(|| self.fault(role, expected));
        let offset = number(Role::Offset, expected::OFFSET_BYTES)?;
        let length = number(Role::Length, expected::LENGTH_BYTES)?;
        let repeats = match self.column(Role::Count) {
            0 => 1,
            _ => number(Role::Count, COUNT)?,
        };
        if repeats == 0 {
            return Err(self.fault(Role::Count, COUNT));
        }
        if offset.checked_add(length).is_none_or(|end| end > self.span_bytes) {
            return Err(self.fault(Role::Offset, BEYOND_SPAN));
        }
        if length == 0 {
            return Err(self.fault(Role::Length, "a length above 0"));
        }
        if field(Role::Object).is_empty() {
            return Err(self.fault(Role::Object, "the name of an object"));
        }
        let volume = match field(Role::Tenant) {
            b"" => volumes.numbered(0, 0)?,
            tenant => volumes.keyed(tenant, self.column(Role::Tenant), str::to_owned)?,
        };
        self.name.clear();
        self.name.extend_from_slice(fields[Role::Object as usize]);
        self.name.push(0);
        self.name.extend_from_slice(fields[Role::Shard as usize]);
        let object = self.objects.number(&self.name);
        let object = object.map_err(|expected| self.fault(Role::Object, expected))?;
        let extent = Extent {
            offset_column: self.column(Role::Object),
            offset_unit: self.span_bytes,
            length_column: self.column(Role::Length),
            length_unit: 1,
        };
        let (base_bytes, _) = extent.bytes(op, object, self.span_bytes)?;
        self.repeats = repeats;
        let offset_bytes = base_bytes + offset;
        Ok(Some(Record { time_ns, offset_bytes, length_bytes: length, op, volume }))
    }

    fn repeats(&self) -> u64 {
        self.repeats
    }

    fn length_column(&self) -> u32 {
        self.column(Role::Length)
    }

    fn clock(&mut self) -> Option<&mut Clock> {
        Some(&mut self.clock)
    }

    fn passed_over(&self) -> Option<&'static str> {
        Some("operation that moves no data of an object")
    }

    fn delimiter(&self) -> u8 {
        self.layout.delimiter
    }

    fn header(&self) -> Header {
        if self.layout.has_header { Header::Always } else { Header::Never }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::testing::{bad, bad_with, options, read_all, read_with, record};
    use crate::recognise_bytes;

    const TECTONIC_TEXT: &str = "op_time,block_id,block_id_size,io_size,io_offset,user_name,\
         user_namespace,op_name,op_count,host_name,rs_shard_id\n\
         1702511878,12ce-9e,40,8388608,0,4235083322,3487869255,getChunkData.NotInitialized,1,5,4\n\
         1702511883,3396-8b,40,1953176,1007643,2005364192,3487869255,putChunk.Permanent,1,1,7\n\
         1702511884,12ce-9e,40,7706,1969744,4235083322,3487869255,getChunkData.Permanent,2,2,4\n\
         1702511885,12ce-9e,40,7706,1969744,4235083322,3487869255,deleteChunk,2,2,4\n\
         1702511886,12ce-9e,40,512,0,4235083322,3487869255,getChunkData.Permanent,1,2,5\n";

    fn at(seconds: u64, op: Op, object: u64, offset: u64, length: u64, volume: u32) -> Record {
        record(seconds * 1_000_000_000, op, (object << 26) + offset, length, volume)
    }

    #[test]
    fn blocks_and_their_shards_are_objects_and_users_are_volumes() {
        let (records, volumes) = read_all("tectonic", TECTONIC_TEXT);
        let again = at(1_702_511_884, Op::Read, 0, 1_969_744, 7706, 0);
        let expected = [
            at(1_702_511_878, Op::Read, 0, 0, 8_388_608, 0),
            at(1_702_511_883, Op::Write, 1, 1_007_643, 1_953_176, 1),
            again,
            again,
            at(1_702_511_886, Op::Read, 2, 0, 512, 0),
        ];
        assert_eq!(records, expected, "op_count 2 is two requests");
        assert_eq!(volumes, ["4235083322", "2005364192"]);
        assert_eq!(recognise_bytes(TECTONIC_TEXT.as_bytes()).unwrap().name, "tectonic");
    }

    #[test]
    fn baleen_has_no_header_and_numbers_for_operations() {
        let text = "7 0 4096 1632.5 2 1 9 0 1 77\n8 512 1024 1633 4 1 9 3 3 77\n\
                    8 512 1024 1634 100 1 9 3 3 77\n";
        let (records, volumes) = read_all("tectonic", text);
        let write = at(1633, Op::Write, 1, 512, 1024, 0);
        let read = Record { time_ns: 1_632_500_000_000, ..at(0, Op::Read, 0, 0, 4096, 0) };
        assert_eq!(records, [read, write, write, write]);
        assert_eq!(volumes, ["9"]);
        assert_eq!(recognise_bytes(text.as_bytes()).unwrap().name, "tectonic");
    }

    #[test]
    fn files_are_objects_and_applications_are_volumes() {
        let text = "filename,file_offset,application,c_time,io_zone,redundancy_type,op_type,\
                    service_class,from_flash_cache,cache_hit,request_io_size_bytes,\
                    disk_io_size_bytes,response_io_size_bytes,start_time,disk_time\n\
                    f00d,8192,bigtable,1,WARM,REPLICATED,READ,OTHER,0,1,4096,0,4096,\
                    1705276800.25,0\n\
                    beef,0,spanner,1,WARM,REPLICATED,WRITE,OTHER,0,-1,100,100,0,1705276801,0.1\n";
        let (records, volumes) = read_all("thesios", text);
        let expected = [
            record(1_705_276_800_250_000_000, Op::Read, 8192, 4096, 0),
            record(1_705_276_801_000_000_000, Op::Write, 64 << 30, 100, 1),
        ];
        assert_eq!(records, expected);
        assert_eq!(volumes, ["bigtable", "spanner"]);
        assert_eq!(recognise_bytes(text.as_bytes()).unwrap().name, "thesios");
        let narrow = options("thesios", &[("span", "1MiB")]);
        assert_eq!(read_with(&narrow, text).0[1].offset_bytes, 1 << 20);
    }

    #[test]
    fn bad_lines_are_named() {
        let row = |end: &str| format!("block_id io_offset io_size op_time op_name\n{end}\n");
        let found = bad("tectonic", &row("7 0 4096 1 -"));
        assert!(found.contains("line 2, column 5: found `-`, expected getChunkData"), "{found}");
        assert!(bad("tectonic", &row("7 0 0 1 1")).contains("column 3: found `0`"));
        assert!(bad("tectonic", &row("7 0 4096 1")).contains("column 5: found `end of line`"));
        assert!(bad("tectonic", &row("7 67108864 1 1 1")).contains("(`span` widens it)"));
        let found = bad("thesios", "a,b,c\n1,2,3\n");
        assert!(
            found.contains("found `a,b,c` in the first line, expected a header with `filename`")
        );
        let small = options("tectonic", &[("span", "1KiB")]);
        assert!(bad_with(&small, &row("7 0 4096 1 1")).contains("column 2"));
    }
}
