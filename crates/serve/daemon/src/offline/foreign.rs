//! What a device holds that is no cache of this program.
//!
//! For: a format that overwrites nothing by mistake. Must never know: why a device is formatted.
//! Units: bytes. Signatures are looked for where their formats have them (source: libblkid of
//! util-linux, and the kernel's headers); any other byte in the first and the last MiB counts, too.

use cachewright_live::io::{ALIGNMENT, FileId, Io, IoError, batch};

/// Bytes at either end of a device that are looked at.
const EDGE_BYTES: u64 = 1 << 20;

/// A name, the byte from the start at which a signature stands, and the signature.
type Signature = (&'static str, usize, &'static [u8]);

const SIGNATURES: &[Signature] = &[
    ("an XFS file system", 0, b"XFSB"),
    ("a LUKS volume", 0, b"LUKS\xba\xbe"),
    ("a qcow2 image", 0, b"QFI\xfb"),
    ("a squashfs file system", 0, b"hsqs"),
    ("a dm-writecache", 0, &[0x21, 0x93, 0x48, 0x23]),
    ("an MD RAID member", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("an MD RAID member", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    ("an LVM physical volume", 0, b"LABELONE"),
    ("an LVM physical volume", 512, b"LABELONE"),
    ("an LVM physical volume", 1024, b"LABELONE"),
    ("an LVM physical volume", 1536, b"LABELONE"),
    ("a GUID partition table", 512, b"EFI PART"),
    ("a GUID partition table", 4096, b"EFI PART"),
    ("metadata of dm-cache", 32, &[0x03, 0x20, 0x14, 0x06]),
    ("an ext2, ext3 or ext4 file system", 1080, &[0x53, 0xef]),
    ("an F2FS file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    ("a bcache", 4120, b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81"),
    ("swap space", 4086, b"SWAPSPACE2"),
    ("an ISO 9660 file system", 32769, b"CD001"),
    ("a btrfs file system", 65600, b"_BHRfS_M"),
    ("an NTFS file system", 3, b"NTFS    "),
    // Behind all others: boot sectors of file systems end like this as well.
    ("a partition table or a boot sector", 510, &[0x55, 0xaa]),
];

/// What a device holds, in words; nothing where its first and last MiB are zeroes. Errors: it
/// cannot be read.
pub fn foreign_content(io: &mut impl Io, file: FileId) -> Result<Option<String>, IoError> {
    let bytes = io.file_bytes(file) / ALIGNMENT as u64 * ALIGNMENT as u64;
    let length = bytes.min(EDGE_BYTES);
    let edges = [0, bytes - length].map(|offset| (file, offset, length as usize));
    let mut found = batch::read(io, edges).into_iter();
    let first = found.next().unwrap_or(Err(IoError::IO))?;
    let last = found.next().unwrap_or(Err(IoError::IO))?;
    let is_there = |(_, offset, magic): &&Signature| {
        first.get(*offset..).is_some_and(|rest| rest.starts_with(magic))
    };
    if let Some((name, ..)) = SIGNATURES.iter().find(is_there) {
        return Ok(Some((*name).to_owned()));
    }
    let in_use = |edge: &[u8]| edge.iter().any(|byte| *byte != 0);
    let unknown = match (in_use(&first), in_use(&last)) {
        (false, false) => None,
        (true, _) => Some("content in its first MiB"),
        (false, true) => Some("content in its last MiB"),
    };
    Ok(unknown.map(str::to_owned))
}
