//! `docs/design/cache-device.md` draws the bytes that the code writes: every row of its tables of
//! fields is compared with an encoded structure whose fields all differ.

use cachewright_live::io::FileId;
use cachewright_live::log::DeviceSet;
use cachewright_live::log::format::{
    Bypassed, FORMAT_VERSION, Footer, FooterRecord, GROUP_RECORDS, GroupHeader, HOLDER_OFFSET,
    Holder, Home, LogRecord, LogRecordKind, PAGE, RECORD_BYTES, SUPERBLOCK_BYTES, SegmentHeader,
    SegmentState, SetGeometry, SetId, Superblock, Version, Volume, VolumeId, data_checksum,
};
use std::path::Path;

const SET: SetId = SetId(0x0102_0304_0506_0708_090a_0b0c_0d0e_0f10);
const HOME: Home = Home { set: SET, device: 0x21, segment: 0x22, generation: 0x23 };

/// A row of a table of fields.
struct Field {
    name: String,
    offset: usize,
    /// Nothing for a field whose size differs.
    bytes: Option<usize>,
}

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/design/cache-device.md");
    std::fs::read_to_string(path).unwrap()
}

/// The rows of the first table of fields behind `start`.
fn fields(page: &str, start: &str) -> Vec<Field> {
    let (_, rest) = page.split_once(start).unwrap_or_else(|| panic!("no `{start}` on the page"));
    let (_, table) = rest.split_once("| offset | size | field |").unwrap();
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        Field {
            offset: cells[1].parse().unwrap(),
            bytes: cells[2].parse().ok(),
            name: cells[3].to_owned(),
        }
    })
    .collect()
}

/// Errors of the page: fields in another order, with a gap, or with other bytes than the code's.
fn compare(start: &str, written: &[u8], expected: &[(&str, Vec<u8>)]) {
    let found = fields(&page(), start);
    let names: Vec<&str> = found.iter().map(|field| field.name.as_str()).collect();
    let known: Vec<&str> = expected.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, known, "{start}");
    let mut end = 0;
    for (field, (name, bytes)) in found.iter().zip(expected) {
        assert_eq!(field.offset, end, "{start}: {name} begins where the field before it ends");
        assert_eq!(field.bytes.unwrap_or(bytes.len()), bytes.len(), "{start}: size of {name}");
        end += bytes.len();
        assert_eq!(&written[field.offset..end], bytes, "{start}: {name}");
    }
}

fn u32_bytes(number: u32) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

fn u64_bytes(number: u64) -> Vec<u8> {
    number.to_le_bytes().to_vec()
}

/// Magic and checksum of a structure.
fn front(magic: &[u8; 8], written: &[u8]) -> [(&'static str, Vec<u8>); 2] {
    let sum = crc32c::crc32c_append(crc32c::crc32c(&written[..8]), &written[12..]);
    [("magic", magic.to_vec()), ("checksum", u32_bytes(sum))]
}

fn home() -> Vec<u8> {
    let numbers = [u32_bytes(0x21), u32_bytes(0x22), u64_bytes(0x23)].concat();
    [SET.0.to_le_bytes().to_vec(), numbers].concat()
}

fn record() -> LogRecord {
    let kind = LogRecordKind::Dirty { checksum: 0x35 };
    LogRecord { volume: VolumeId(0x31), number: 0x33, version: Version::written(0x34), kind }
}

fn record_bytes() -> Vec<u8> {
    let version = 4 * 0x34 + 2;
    let numbers = [u32_bytes(0x31), u32_bytes(2), u64_bytes(0x33), u64_bytes(version)].concat();
    [numbers, u32_bytes(0x35)].concat()
}

fn superblock() -> Superblock {
    let passed = [VolumeId(0x51)].into();
    Superblock {
        set: SET,
        device: 0x41,
        devices: 0x42,
        edition: 0x47,
        has_lost: true,
        geometry: SetGeometry { block_bytes: 0x43, segment_bytes: 0x44, segments: 0x45 },
        volumes: vec![Volume { id: VolumeId(0x51), name: "data".to_owned(), bytes: 0x52 }],
        bypassed: Some(Bypassed { error: 0x46, passed }),
        notes: b"{}".to_vec(),
    }
}

#[test]
fn the_page_draws_the_bytes_of_the_code() {
    let written = superblock().encode().unwrap();
    let volume = [
        ("volume", u32_bytes(0x51)),
        ("size", u64_bytes(0x52)),
        ("name length", vec![4]),
        ("volume flags", vec![1]),
        ("name", b"data".to_vec()),
    ];
    let entry: Vec<u8> = volume.iter().flat_map(|(_, bytes)| bytes.clone()).collect();
    compare("An entry of the table", &entry, &volume);
    let fields = [
        ("version", u32_bytes(FORMAT_VERSION)),
        ("device", u32_bytes(0x41)),
        ("devices", u32_bytes(0x42)),
        ("block bytes", u32_bytes(0x43)),
        ("segment bytes", u32_bytes(0x44)),
        ("segments", u32_bytes(0x45)),
        ("volumes", u32_bytes(1)),
        ("flags", vec![1 | 2 | 4, 0]),
        ("errno", vec![0x46, 0]),
        ("set", SET.0.to_le_bytes().to_vec()),
        ("edition", u64_bytes(0x47)),
        ("length", u32_bytes(PAGE as u32)),
        ("table", [entry, u32_bytes(2), b"{}".to_vec()].concat()),
    ];
    compare("## Superblock", &written, &[&front(b"CWsuperb", &written)[..], &fields].concat());

    let holder = Holder { set: SET, start: 0x61, host: 0x62, file_system: 0x63, file: 0x64 };
    let written = holder.encode();
    let fields = [
        ("set", SET.0.to_le_bytes().to_vec()),
        ("start", 0x61_u128.to_le_bytes().to_vec()),
        ("host", 0x62_u128.to_le_bytes().to_vec()),
        ("file system", u64_bytes(0x63)),
        ("file", u64_bytes(0x64)),
    ];
    compare("## Holder", &written, &[&front(b"CWholder", &written)[..], &fields].concat());

    let state = SegmentState::Doubtful;
    let written = SegmentHeader { home: HOME, state, stream: 0x71, emptied: 0x72 }.encode();
    let fields = [
        ("home", home()),
        ("state", u32_bytes(2)),
        ("stream", u32_bytes(0x71)),
        ("emptied", u64_bytes(0x72)),
    ];
    compare("### Segment header", &written, &[&front(b"CWsegmnt", &written)[..], &fields].concat());
    let fields = [
        ("set", SET.0.to_le_bytes().to_vec()),
        ("device", u32_bytes(0x21)),
        ("segment", u32_bytes(0x22)),
        ("generation", u64_bytes(0x23)),
    ];
    compare("### Home", &home(), &fields);

    let (page, number, durable, block_pages) = (0x81, 0x82, 0x83, 0x84);
    let header = GroupHeader { home: HOME, page, records: 1, number, durable, block_pages };
    let written = header.encode(&[record()]);
    let fields = [
        ("home", home()),
        ("page", u32_bytes(0x81)),
        ("records", u32_bytes(1)),
        ("number", u64_bytes(0x82)),
        ("durable", u64_bytes(0x83)),
        ("block pages", u32_bytes(0x84)),
        ("table", record_bytes()),
    ];
    compare("### Group", &written, &[&front(b"CWgroup\0", &written)[..], &fields].concat());
    let fields = [
        ("volume", u32_bytes(0x31)),
        ("kind", u32_bytes(2)),
        ("block", u64_bytes(0x33)),
        ("version", u64_bytes(4 * 0x34 + 2)),
        ("value", u32_bytes(0x35)),
    ];
    compare("### Record", &record_bytes(), &fields);

    let records = vec![FooterRecord { record: record(), page: 0x91 }];
    let written = Footer { home: HOME, groups: vec![0x92, 0x93], records }.encode();
    let placed = [record_bytes(), u32_bytes(0x91)].concat();
    let fields = [
        ("home", home()),
        ("records", u32_bytes(1)),
        ("groups", u32_bytes(2)),
        ("table", [u64_bytes(0x92), u64_bytes(0x93), placed].concat()),
    ];
    compare("### Footer", &written, &[&front(b"CWfooter", &written)[..], &fields].concat());
}

#[test]
fn sizes_in_the_text_of_the_page_are_those_of_the_code() {
    let geometry = SetGeometry { block_bytes: 4096, segment_bytes: 16 << 20, segments: 2 };
    let set = DeviceSet::new(SET, vec![FileId(0), FileId(1)], geometry);
    let (pages, footer) = (set.segment_pages(), set.footer_pages());
    let text = page().split_whitespace().collect::<Vec<&str>>().join(" ");
    let thousands = |number: u64| format!("{},{:03}", number / 1000, number % 1000);
    for said in [
        format!("format version {FORMAT_VERSION}"),
        format!("A **page** has {} bytes", thousands(PAGE as u64)),
        format!("at most {GROUP_RECORDS}: what one page holds"),
        format!("{RECORD_BYTES} bytes: what happened to one block"),
        format!("`P` is {} and `F` is {footer}", thousands(pages.into())),
        format!("{} pages for groups", thousands(u64::from(set.footer_page()) - 1)),
        format!("{} records", thousands(set.max_records() as u64)),
    ] {
        assert!(text.contains(&said), "the page does not say `{said}`");
    }
    // Copies at 0 and 1 MiB, the holder in the last page of the first, segments behind both.
    assert_eq!((SUPERBLOCK_BYTES, Superblock::offset(1)), (1 << 20, 1 << 20));
    assert_eq!(HOLDER_OFFSET, (1 << 20) - 4096);
    let first = set.page(cachewright_live::log::SegmentId(0), 0);
    let second = set.page(cachewright_live::log::SegmentId(1), 0);
    assert_eq!((first.offset, second.offset, second.file), (2 << 20, 2 << 20, FileId(1)));
    let content = [7; 4096];
    let summed = [&u32_bytes(3)[..], &u64_bytes(5), &content].concat();
    assert_eq!(data_checksum(VolumeId(3), 5, &content), crc32c::crc32c(&summed));
}
