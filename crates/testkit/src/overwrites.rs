//! Volumes of overwrites as pages, and a trainer that compares precisions.
//!
//! Units: pages of 4 KiB; lifetimes in host page writes. Records are lines
//! `device,opcode,offset,length,` (opcodes R, W, T; others are skipped); files may be compressed
//! with zstd.

use cachewright_ftl::NEVER;
use cachewright_ftl::separation::shiro::{
    Confusion, Dataset, NativeTrainer, TrainError, Trainer, evaluate,
};
use cachewright_model::{StoredModel, quantise};
use std::error::Error;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Bytes of a page.
pub const PAGE_BYTES: u64 = 4096;

/// What a request does.
#[derive(Clone, Copy)]
pub enum Op {
    /// Reads.
    Read,
    /// Writes.
    Write,
    /// Forgets.
    Trim,
}

/// One request.
pub struct Request {
    /// What it does.
    pub op: Op,
    /// Its first page.
    pub first: u32,
    /// Its pages.
    pub pages: u32,
}

/// The requests of a volume.
pub struct Trace {
    /// Pages of the volume.
    pub pages: u32,
    /// The requests in order.
    pub requests: Vec<Request>,
    /// Per written page the host page writes until it is written or trimmed again.
    pub lifetimes: Vec<u32>,
    last: Vec<usize>,
}

impl Trace {
    /// A volume of so many pages, no requests.
    pub fn new(pages: u32) -> Trace {
        let last = vec![usize::MAX; pages as usize];
        Trace { pages, requests: Vec::new(), lifetimes: Vec::new(), last }
    }

    /// Adds a file of records. Errors: the file's, a record without offset or length.
    pub fn add(&mut self, file: &Path) -> Result<(), Box<dyn Error>> {
        let mut bytes = std::fs::read(file)?;
        if file.extension().is_some_and(|extension| extension == "zst") {
            bytes = zstd::decode_all(bytes.as_slice())?;
        }
        for line in String::from_utf8(bytes)?.lines() {
            let mut fields = line.split(',').skip(1);
            let op = match fields.next() {
                Some("R") => Op::Read,
                Some("W") => Op::Write,
                Some("T") => Op::Trim,
                _ => continue,
            };
            let offset: u64 = fields.next().ok_or("no offset")?.parse()?;
            let length: u64 = fields.next().ok_or("no length")?.parse()?;
            let end = (offset + length).div_ceil(PAGE_BYTES).min(u64::from(self.pages)) as u32;
            let first = (offset / PAGE_BYTES).min(u64::from(end)) as u32;
            self.request(op, first, end - first);
        }
        Ok(())
    }

    /// Adds a request within the volume; one of no pages is left out.
    pub fn request(&mut self, op: Op, first: u32, pages: u32) {
        for place in &mut self.last[first as usize..(first + pages) as usize] {
            let written = self.lifetimes.len();
            if let (Op::Write | Op::Trim, Some(before)) = (op, self.lifetimes.get_mut(*place)) {
                *before = (written - *place) as u32;
            }
            match op {
                Op::Write => {
                    *place = written;
                    self.lifetimes.push(NEVER);
                }
                Op::Trim => *place = usize::MAX,
                Op::Read => {}
            }
        }
        if pages > 0 {
            self.requests.push(Request { op, first, pages });
        }
    }
}

/// Right and wrong of the model in use, in f32 and int8, on the dataset after its own.
#[derive(Clone, Copy, Debug, Default)]
pub struct Precision {
    /// In single precision.
    pub float: Confusion,
    /// In int8.
    pub int8: Confusion,
}

/// Trains as the scheme itself would, and judges each model on the next window's dataset.
pub struct Comparing {
    inner: NativeTrainer,
    before: Option<(StoredModel, StoredModel)>,
    found: Arc<Mutex<Precision>>,
}

impl Comparing {
    /// A trainer that has seen nothing; what it finds goes to `found`.
    pub fn new(inner: NativeTrainer, found: Arc<Mutex<Precision>>) -> Comparing {
        Comparing { inner, before: None, found }
    }
}

impl Trainer for Comparing {
    fn train(&mut self, dataset: &Dataset) -> Result<StoredModel, TrainError> {
        if let (Some((float, int8)), Ok(mut found)) = (&self.before, self.found.lock()) {
            found.float += evaluate(float, dataset)?;
            found.int8 += evaluate(int8, dataset)?;
        }
        let float = self.inner.train(dataset)?;
        let ones = vec![1.0; dataset.encoding.inputs()];
        let int8 = quantise(&float, &[&ones, &dataset.rows])?;
        self.before = Some((float.clone(), int8));
        Ok(float)
    }
}
