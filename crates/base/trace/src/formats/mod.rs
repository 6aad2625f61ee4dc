//! One module per format; [`registry`] says what is known of each, and is the table of all.

pub mod alibaba;
pub mod arc;
pub mod biosnoop;
pub mod biotracer;
pub mod blkparse;
pub mod blktrace;
pub mod csv;
pub mod disksim;
pub mod etw;
pub mod fio_iolog;
pub mod fiu;
pub mod ftrace;
pub mod ids;
pub mod iotrace;
pub mod k5cloud;
pub mod lcs;
pub mod mooncake;
pub mod mqsim;
pub mod msr;
pub mod named_objects;
pub mod objects;
pub mod oracle_general;
pub mod parquet;
pub mod raw;
pub mod registry;
pub mod spc;
pub mod syscall;
pub mod systor17;
pub mod tencent;
pub mod vscsi;

pub use registry::{
    CONFIDENT, FORMATS, TIE_MARGIN, counts_objects, files_of, find, format_of, open, open_bytes,
    recognise, recognise_bytes,
};

pub use registry::{CommonOptions, Open, TraceFormat, Unit};

#[cfg(test)]
mod damage_tests;
#[cfg(test)]
mod golden_tests;

#[cfg(test)]
pub(crate) mod testing {
    //! What the tests of all formats use.

    use super::open_bytes;
    use crate::{Batch, OpenOptions, Record};
    use cachewright_types::Op;

    /// A record by position.
    pub(crate) fn record(time_ns: u64, op: Op, offset: u64, length: u64, volume: u32) -> Record {
        Record { time_ns, offset_bytes: offset, length_bytes: length, op, volume }
    }

    /// Options that name a format and its own options.
    pub(crate) fn options(format: &str, pairs: &[(&str, &str)]) -> OpenOptions {
        let format_options =
            pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        OpenOptions { format: Some(format.to_owned()), format_options, ..OpenOptions::default() }
    }

    /// All requests and volumes of `text`, which must be valid.
    pub(crate) fn read_with(options: &OpenOptions, text: &str) -> (Vec<Record>, Vec<String>) {
        let mut reader = open_bytes("sample", text.as_bytes(), options).expect("must open");
        let mut batch = Batch::default();
        while reader.read(&mut batch, 3).expect("must be valid") > 0 {}
        (batch.iter().collect(), reader.volumes().to_vec())
    }

    /// The same without options.
    pub(crate) fn read_all(format: &str, text: &str) -> (Vec<Record>, Vec<String>) {
        read_with(&options(format, &[]), text)
    }

    /// The message that `text` is refused with.
    pub(crate) fn bad_with(options: &OpenOptions, text: &str) -> String {
        let mut reader = match open_bytes("sample", text.as_bytes(), options) {
            Ok(reader) => reader,
            Err(error) => return error.to_string(),
        };
        let mut batch = Batch::default();
        loop {
            match reader.read(&mut batch, 3) {
                Ok(0) => panic!("`{text}` must be refused"),
                Ok(_) => {}
                Err(error) => return error.to_string(),
            }
        }
    }

    /// The same without options.
    pub(crate) fn bad(format: &str, text: &str) -> String {
        bad_with(&options(format, &[]), text)
    }
}
