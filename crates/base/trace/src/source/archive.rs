//! Files in files: archives of one file (tar, zip), and streams of several members (gzip, bzip2,
//! LZ4), passed from the first byte to the last.
//!
//! Folders, links, empty files and the companions that macOS adds are passed over. A second file is
//! refused by its name, when it is met: a stream cannot tell which is meant. Sources: POSIX.1-2001
//! pax with GNU's long names, PKWARE's APPNOTE.TXT.

use bzip2::bufread::BzDecoder;
use flate2::bufread::{DeflateDecoder, GzDecoder};
use lz4_flex::frame::FrameDecoder;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read};

const BLOCK_BYTES: usize = 512;
/// Longest extended header of a tar.
const HEADER_LIMIT_BYTES: u64 = 1 << 20;

/// Why an archive is not read, though it is not damaged.
#[derive(Debug)]
pub(super) struct NotRead {
    pub(super) found: String,
    pub(super) expected: String,
}

impl fmt::Display for NotRead {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}, expected {}", self.found, self.expected)
    }
}

impl std::error::Error for NotRead {}

fn not_read(found: String, expected: &str) -> io::Error {
    let expected = expected.to_owned();
    io::Error::new(io::ErrorKind::Unsupported, NotRead { found, expected })
}

fn damaged(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

fn is_companion(name: &str) -> bool {
    let file = name.rsplit('/').next().unwrap_or_default();
    file.starts_with("._") || file == ".DS_Store" || name.starts_with("__MACOSX/")
}

fn several(kind: &str, first: &str, second: &str, way_out: &str) -> io::Error {
    let (first, second) = (shown(first), shown(second));
    not_read(format!("{kind} of several files, `{first}` and `{second}`"), way_out)
}

fn shown(name: &str) -> String {
    crate::reader::shown(name.as_bytes())
}

/// Whether content begins with the header of a tar.
pub(super) fn is_tar(head: &[u8]) -> bool {
    head.get(257..262) == Some(b"ustar") && head.get(..BLOCK_BYTES).is_some_and(sum_fits)
}

/// Whether the header's own checksum is right.
fn sum_fits(header: &[u8]) -> bool {
    let stated = header.get(148..156).and_then(octal);
    let bytes = header.iter().enumerate();
    let sum = bytes
        .map(|(position, byte)| if (148..156).contains(&position) { 32 } else { u64::from(*byte) });
    stated == Some(sum.sum())
}

fn octal(field: &[u8]) -> Option<u64> {
    // GNU tar writes lengths from 8 GiB on in binary.
    if let [0x80, rest @ ..] = field {
        let (high, low) = rest.split_at(rest.len().checked_sub(8)?);
        let low: [u8; 8] = low.try_into().ok()?;
        return high.iter().all(|byte| *byte == 0).then(|| u64::from_be_bytes(low));
    }
    let text = std::str::from_utf8(field).ok()?;
    u64::from_str_radix(text.trim_matches([' ', '\0']), 8).ok()
}

/// The one file of a tar.
pub(super) struct TarFile {
    packed: Packed,
    /// The file being read; nothing before the first.
    name: Option<String>,
    left: u64,
    padding: u64,
    at_end: bool,
}

impl TarFile {
    /// Reads from the first header on.
    pub(super) fn new(packed: Packed) -> TarFile {
        TarFile { packed, name: None, left: 0, padding: 0, at_end: false }
    }

    /// Goes to the next file with content; ends where there is none.
    fn next_file(&mut self) -> io::Result<()> {
        let mut long_name = None;
        loop {
            pass(&mut self.packed, self.padding)?;
            self.padding = 0;
            let mut header = [0; BLOCK_BYTES];
            let count = super::fill(&mut self.packed, &mut header)?;
            if count == 0 || header.iter().all(|byte| *byte == 0) {
                self.at_end = true;
                // What follows is padding; it is read for the checksum of a stream around it.
                io::copy(&mut self.packed, &mut io::sink())?;
                return Ok(());
            }
            if count < BLOCK_BYTES || !sum_fits(&header) {
                return Err(damaged("a header of tar that does not fit its checksum"));
            }
            let len = octal(&header[124..136]).ok_or_else(|| damaged("a length in tar"))?;
            let padding = len.next_multiple_of(BLOCK_BYTES as u64) - len;
            let kind = header[156];
            match kind {
                b'x' | b'L' => {
                    if len > HEADER_LIMIT_BYTES {
                        return Err(damaged("a name in tar of more than 1 MiB"));
                    }
                    let mut text = vec![0; len as usize];
                    self.packed.read_exact(&mut text)?;
                    self.padding = padding;
                    long_name = if kind == b'L' { Some(text_of(&text)) } else { pax_name(&text) };
                    continue;
                }
                b'0' | 0 | b'7' => {
                    let name = long_name.take().unwrap_or_else(|| text_of(&header[..100]));
                    if len > 0 && !is_companion(&name) {
                        return self.begin(name, len, padding);
                    }
                }
                b'S' => {
                    let found = "a sparse file in a tar archive".to_owned();
                    return Err(not_read(found, "the archive to be unpacked first (`tar -xf`)"));
                }
                _ => long_name = None,
            }
            pass(&mut self.packed, len)?;
            self.padding = padding;
        }
    }

    fn begin(&mut self, name: String, len: u64, padding: u64) -> io::Result<()> {
        if let Some(first) = &self.name {
            let way_out = "an archive of one trace; `tar -xOf FILE NAME | cachewright ... -` reads \
                           one of several";
            return Err(several("a tar archive", first, &name, way_out));
        }
        (self.name, self.left, self.padding) = (Some(name), len, padding);
        Ok(())
    }
}

impl Read for TarFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 && !self.at_end {
            self.next_file()?;
        }
        let wanted = buffer.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let count = self.packed.read(&mut buffer[..wanted])?;
        if count == 0 && wanted > 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= count as u64;
        Ok(count)
    }
}

fn text_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// The path of an extended header, whose lines are `LENGTH KEY=VALUE`.
fn pax_name(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let path = text.lines().find_map(|line| line.split_once(' ')?.1.strip_prefix("path="));
    path.map(str::to_owned)
}

/// Passes over exactly `count` bytes.
fn pass(packed: &mut impl Read, count: u64) -> io::Result<()> {
    match io::copy(&mut packed.take(count), &mut io::sink())? == count {
        true => Ok(()),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

const ZIP_FILE: u32 = 0x0403_4b50;
const ZIP_DESCRIPTOR: u32 = 0x0807_4b50;
const ENCRYPTED: u16 = 1;
const LENGTH_BEHIND: u16 = 1 << 3;

enum ZipContent {
    /// Between two files.
    None(BufReader<Packed>),
    Deflated(DeflateDecoder<BufReader<Packed>>),
    Stored(io::Take<BufReader<Packed>>),
    /// Nothing is left, or it failed.
    End,
}

/// The one file of a zip archive, deflated or stored.
pub(super) struct ZipFile {
    content: ZipContent,
    name: Option<String>,
    crc: crc32fast::Hasher,
    /// The checksum stated before the content; nothing where it stands behind.
    stated: Option<u32>,
}

impl ZipFile {
    /// Reads from the first file on.
    pub(super) fn new(packed: Packed) -> ZipFile {
        let content = ZipContent::None(BufReader::new(packed));
        ZipFile { content, name: None, crc: crc32fast::Hasher::new(), stated: None }
    }

    /// Goes to the next file with content; the directory of all files is the end.
    fn next_file(&mut self, mut packed: BufReader<Packed>) -> io::Result<()> {
        loop {
            if read_u32(&mut packed)? != ZIP_FILE {
                return Ok(());
            }
            let mut header = [0; 26];
            packed.read_exact(&mut header)?;
            let short =
                |position: usize| u16::from_le_bytes([header[position], header[position + 1]]);
            let long =
                |position: usize| u32::from(short(position)) | u32::from(short(position + 2)) << 16;
            let (flags, method) = (short(2), short(4));
            let mut name = vec![0; usize::from(short(22))];
            packed.read_exact(&mut name)?;
            let name = String::from_utf8_lossy(&name).into_owned();
            let mut extra = vec![0; usize::from(short(24))];
            packed.read_exact(&mut extra)?;
            let len = zip_len(long(14), &extra);
            let is_known = flags & LENGTH_BEHIND == 0;
            let is_passed = name.ends_with('/') || is_companion(&name) || len == 0;
            if is_known && is_passed {
                pass(&mut packed, len)?;
                continue;
            }
            if let Some(first) = &self.name {
                let way_out = "an archive of one trace; `unzip -p FILE NAME | cachewright ... -` \
                               reads one of several";
                return Err(several("a zip archive", first, &name, way_out));
            }
            if flags & ENCRYPTED != 0 {
                let found = format!("a zip archive whose `{}` is encrypted", shown(&name));
                return Err(not_read(found, "it to be unpacked first"));
            }
            self.stated = is_known.then(|| long(10));
            self.content = match method {
                8 => ZipContent::Deflated(DeflateDecoder::new(packed)),
                0 if is_known => ZipContent::Stored(packed.take(len)),
                _ => {
                    let found = format!("`{}` in a zip archive by method {method}", shown(&name));
                    return Err(not_read(found, "method 8 (deflate), or it to be unpacked first"));
                }
            };
            self.name = Some(name);
            return Ok(());
        }
    }

    /// Checks the content that has ended and goes on behind it.
    fn end(&mut self, mut packed: BufReader<Packed>) -> io::Result<()> {
        let stated = match self.stated {
            Some(stated) => stated,
            None => behind(&mut packed)?,
        };
        if std::mem::take(&mut self.crc).finalize() != stated {
            return Err(damaged("content that does not fit its checksum"));
        }
        self.next_file(packed)
    }
}

/// The packed length, from the extension for long files where the header has no room.
fn zip_len(short: u32, extra: &[u8]) -> u64 {
    if short != u32::MAX {
        return u64::from(short);
    }
    let mut rest = extra;
    while let [id_low, id_high, low, high, fields @ ..] = rest {
        let len = usize::from(u16::from_le_bytes([*low, *high]));
        if (*id_low, *id_high) == (1, 0) {
            let packed = fields.get(8..16).and_then(|bytes| bytes.try_into().ok());
            return packed.map_or(u64::MAX, u64::from_le_bytes);
        }
        rest = fields.get(len..).unwrap_or_default();
    }
    u64::from(short)
}

/// The checksum behind a file's content; the lengths that follow have 4 or 8 bytes.
fn behind(packed: &mut BufReader<Packed>) -> io::Result<u32> {
    let first = read_u32(packed)?;
    let crc = if first == ZIP_DESCRIPTOR { read_u32(packed)? } else { first };
    pass(packed, 8)?;
    let is_next = packed.fill_buf()?.starts_with(b"PK");
    if !is_next {
        pass(packed, 8)?;
    }
    Ok(crc)
}

fn read_u32(packed: &mut impl Read) -> io::Result<u32> {
    let mut bytes = [0; 4];
    packed.read_exact(&mut bytes)?;
    Ok(u32::from_le_bytes(bytes))
}

impl Read for ZipFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = match &mut self.content {
                ZipContent::Deflated(content) => content.read(buffer)?,
                ZipContent::Stored(content) => content.read(buffer)?,
                ZipContent::None(_) => 0,
                ZipContent::End => return Ok(0),
            };
            if count > 0 || buffer.is_empty() {
                self.crc.update(&buffer[..count]);
                return Ok(count);
            }
            match std::mem::replace(&mut self.content, ZipContent::End) {
                ZipContent::None(packed) => self.next_file(packed)?,
                ZipContent::Deflated(content) => self.end(content.into_inner())?,
                ZipContent::Stored(content) if content.limit() > 0 => {
                    return Err(io::ErrorKind::UnexpectedEof.into());
                }
                ZipContent::Stored(content) => self.end(content.into_inner())?,
                ZipContent::End => return Ok(0),
            }
        }
    }
}

const BUFFER_BYTES: usize = 32 << 10;

/// Bytes as they stand in a file.
pub(super) type Packed = Box<dyn Read + Send>;

/// A decoder of one member, which leaves what is behind it.
pub(super) trait Member: Read + Sized {
    /// Begins a member.
    fn begin(packed: BufReader<Packed>) -> Self;

    /// What is behind the member.
    fn rest(self) -> BufReader<Packed>;
}

impl Member for GzDecoder<BufReader<Packed>> {
    fn begin(packed: BufReader<Packed>) -> Self {
        GzDecoder::new(packed)
    }

    fn rest(self) -> BufReader<Packed> {
        self.into_inner()
    }
}

impl Member for BzDecoder<BufReader<Packed>> {
    fn begin(packed: BufReader<Packed>) -> Self {
        BzDecoder::new(packed)
    }

    fn rest(self) -> BufReader<Packed> {
        self.into_inner()
    }
}

/// The content of all members in order. Zeroes behind a member are padding of tapes and blocks,
/// which gzip and bzip2 pass over; anything else there is refused.
pub(super) struct Members<M> {
    /// Nothing once the end was met.
    member: Option<M>,
}

impl<M: Member> Members<M> {
    /// Reads from the first member on.
    pub(super) fn new(packed: Packed) -> Members<M> {
        let packed = BufReader::with_capacity(BUFFER_BYTES, packed);
        Members { member: Some(M::begin(packed)) }
    }
}

impl<M: Member> Read for Members<M> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let count = member.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let Some(member) = self.member.take() else { break };
            let mut rest = member.rest();
            if pass_zeroes(&mut rest)? {
                self.member = Some(M::begin(rest));
            }
        }
        Ok(0)
    }
}

/// Passes over zeroes; whether something follows them.
fn pass_zeroes(packed: &mut BufReader<Packed>) -> io::Result<bool> {
    loop {
        let held = match packed.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            held => held?,
        };
        if held.is_empty() {
            return Ok(false);
        }
        let zeroes = held.iter().take_while(|byte| **byte == 0).count();
        let is_over = zeroes < held.len();
        packed.consume(zeroes);
        if is_over {
            return Ok(true);
        }
    }
}

/// Bytes of which is known whether their end was met.
struct Counted {
    packed: BufReader<Packed>,
    /// Bytes read since the last frame ended.
    count: u64,
    at_end: bool,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.packed.read(buffer)?;
        self.count += count as u64;
        self.at_end |= count == 0 && !buffer.is_empty();
        Ok(count)
    }
}

/// The content of LZ4 frames in order. The decoder takes a stream that breaks off between two
/// blocks for one that has ended, which is told apart here.
pub(super) struct Lz4Frames(FrameDecoder<Counted>);

impl Lz4Frames {
    /// Reads from the first frame on.
    pub(super) fn new(packed: Packed) -> Lz4Frames {
        let packed = BufReader::with_capacity(BUFFER_BYTES, packed);
        Lz4Frames(FrameDecoder::new(Counted { packed, count: 0, at_end: false }))
    }
}

impl Read for Lz4Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.0.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            let packed = self.0.get_mut();
            match (packed.at_end, packed.count) {
                (true, 0) => return Ok(0),
                (true, _) => return Err(io::ErrorKind::UnexpectedEof.into()),
                (false, _) => packed.count = 0,
            }
        }
    }
}
