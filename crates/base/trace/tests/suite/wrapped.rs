//! Traces as they are handed out: compressed and in archives, by the tools that people use.
//!
//! For: files of tar, zip, lz4, lzma, gzip and bzip2 in `tests/written`, each of the same 200
//! requests. Must never know: the readers' insides.
#![allow(clippy::expect_used, clippy::panic)]

use cachewright_trace::{Batch, OpenOptions, open, open_bytes};
use std::path::{Path, PathBuf};

fn written(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/written").join(name)
}

fn requests(name: &str, bytes: &[u8]) -> Result<usize, String> {
    let options = OpenOptions { format: Some("alibaba".to_owned()), ..OpenOptions::default() };
    let mut reader = open_bytes(name, bytes, &options).map_err(|error| error.to_string())?;
    let mut batch = Batch::default();
    while reader.read(&mut batch, 64).map_err(|error| error.to_string())? > 0 {}
    Ok(batch.len())
}

fn read(name: &str) -> Result<usize, String> {
    requests(name, &std::fs::read(written(name)).expect("is there"))
}

#[test]
fn one_trace_is_read_whatever_it_is_wrapped_in() {
    for name in [
        "hour.csv.lz4",
        "hour.csv.lzma",
        "hour.tgz",
        "hour.tar.xz",
        "hour-gz.tar",
        "hour.zip",
        "piped.zip",
        "stored.zip",
        "padded.csv.gz",
        "padded.csv.bz2",
    ] {
        assert_eq!(read(name), Ok(200), "{name}");
        // Its format is recognised as well.
        let mut reader = open(&written(name), &OpenOptions::default()).expect("is recognised");
        assert_eq!(reader.read(&mut Batch::default(), 1000).expect("is valid"), 200, "{name}");
    }
}

#[test]
fn an_archive_of_several_files_names_them_and_the_way_out() {
    let error = read("two.tgz").expect_err("is of two files");
    assert!(
        error.contains("a tar archive of several files, `hour.csv` and `second.csv`"),
        "{error}"
    );
    assert!(error.contains("tar -xOf FILE NAME | cachewright ... -"), "{error}");
    let error = read("two.zip").expect_err("is of two files");
    assert!(
        error.contains("a zip archive of several files, `hour.csv` and `second.csv`"),
        "{error}"
    );
    let error = read("secret.zip").expect_err("is encrypted");
    assert!(error.contains("`hour.csv` is encrypted") && !error.contains("damaged"), "{error}");
}

#[test]
fn a_wrapped_trace_that_breaks_off_or_is_changed_is_refused() {
    for name in [
        "hour.csv.lz4",
        "hour.csv.lzma",
        "hour.tgz",
        "hour.zip",
        "piped.zip",
        "stored.zip",
        "hour-gz.tar",
    ] {
        let bytes = std::fs::read(written(name)).expect("is there");
        // The last bytes of archives are padding, or the directory of a zip.
        let content = match name {
            "hour-gz.tar" => 512 + 400,
            _ if name.ends_with(".zip") => bytes.len() / 2,
            _ => bytes.len() - 1,
        };
        for end in (20..content).step_by(content / 40 + 1) {
            assert!(requests(name, &bytes[..end]).is_err(), "{name} cut at {end}");
        }
        for at in (0..bytes.len()).step_by(7) {
            let mut changed = bytes.clone();
            changed[at] ^= 0x55;
            // What matters is that it returns.
            let _ = requests(name, &changed);
        }
    }
}

#[test]
fn what_follows_a_stream_is_passed_over_only_if_it_is_padding() {
    let mut bytes = std::fs::read(written("padded.csv.gz")).expect("is there");
    let again = bytes.clone();
    bytes.extend(&again);
    assert_eq!(requests("two members with padding", &bytes), Ok(400));
    bytes.extend(b"rubbish");
    assert!(requests("rubbish", &bytes).is_err());
}

#[test]
fn a_zstd_window_beyond_the_bound_names_the_way_out() {
    // A frame header: magic, a window of 2^31 bytes, then a raw block of one byte.
    let frame = [0x28, 0xb5, 0x2f, 0xfd, 0, 21 << 3, 0x09, 0, 0, b'x'];
    let error = requests("long.zst", &frame).expect_err("has too large a window");
    assert!(error.contains("found a zstd stream whose window is larger than 1 GiB"), "{error}");
    assert!(error.contains("`zstd -dc --long=31 FILE | cachewright ... -`"), "{error}");
    let within = [0x28, 0xb5, 0x2f, 0xfd, 0, 20 << 3, 0x09, 0, 0, b'x'];
    let error = requests("long.zst", &within).expect_err("is no request");
    assert!(error.contains("line 1"), "{error}");
}
