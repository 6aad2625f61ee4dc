//! The recording that is rehearsed: any trace whose volumes are tenants of the stack.
//!
//! It is read once before the rehearsal, so that a volume that the stack does not have is an error
//! at once, and so that volumes whose devices are not there get their sizes. Units: bytes,
//! nanoseconds from the first request on.

use crate::error::LiveError;
use crate::plan::LivePlan;
use cachewright_trace::merge::EarlyEnd;
use cachewright_trace::{
    Batch, MergedRequests, OpenOptions, TenantInput, TraceError, WorkloadBatch, recordings_in,
};
use cachewright_types::{Bytes, Nanos, Request, TenantId};
use std::path::{Path, PathBuf};

/// Requests read at a time.
const BATCH: usize = 4096;

/// A recording, of which all volumes are known.
pub struct Recording {
    path: PathBuf,
    /// By tenant; nothing for one of which there is no request.
    volumes: Vec<Option<RecordedVolume>>,
}

/// What a recording has of a tenant.
struct RecordedVolume {
    /// Its name in the recording; nothing where all of the recording is the tenant's.
    name: Option<String>,
    /// The first byte behind all requests.
    end_bytes: u64,
}

impl Recording {
    /// Looks through a recording; of a folder of a server's recordings, through the last one that
    /// is finished. Errors: it is not there, cannot be read, has no times, or has a volume that the
    /// stack does not have.
    pub fn open(plan: &LivePlan, path: &Path) -> Result<Recording, LiveError> {
        let path = chosen(path)?;
        let wrong = |error: TraceError| refuse(&path, error);
        let mut reader = cachewright_trace::open(&path, &OpenOptions::default()).map_err(wrong)?;
        if !reader.has_times() {
            return Err(refuse(&path, "found requests without times, expected a recording"));
        }
        if reader.counts_objects() {
            return Err(refuse(&path, "found objects, expected requests to volumes of bytes"));
        }
        let (mut batch, mut ends) = (Batch::default(), Vec::<u64>::new());
        while reader.read(&mut batch, BATCH).map_err(wrong)? > 0 {
            for record in batch.iter() {
                let volume = record.volume as usize;
                ends.resize(ends.len().max(volume + 1), 0);
                let end = record.offset_bytes.saturating_add(record.length_bytes);
                ends[volume] = ends[volume].max(end);
            }
            batch.clear();
        }
        let names: Vec<&str> = plan.volumes.iter().map(|volume| volume.name.as_str()).collect();
        let mut volumes: Vec<Option<RecordedVolume>> = names.iter().map(|_| None).collect();
        let found = reader.volumes();
        if let ([only], [_]) = (found, &names[..])
            && *only != *names[0]
        {
            let end_bytes = ends.first().copied().unwrap_or_default();
            volumes[0] = Some(RecordedVolume { name: None, end_bytes });
            return Ok(Recording { path, volumes });
        }
        for (name, end_bytes) in found.iter().zip(ends) {
            let tenant = match plan.tenant_named(name) {
                // Of a tenant that was removed before the recording began.
                Err(_) if end_bytes == 0 => continue,
                found => found.map_err(|error| refuse(&path, error))?,
            };
            volumes[tenant] = Some(RecordedVolume { name: Some(name.clone()), end_bytes });
        }
        match volumes.iter().any(Option::is_some) {
            true => Ok(Recording { path, volumes }),
            false => Err(refuse(&path, "found no requests, expected some")),
        }
    }

    /// The first byte behind all requests of a tenant.
    pub fn end_bytes(&self, tenant: usize) -> u64 {
        self.volumes[tenant].as_ref().map_or(0, |volume| volume.end_bytes)
    }

    /// The requests of all tenants by their times, each of which is divided by `speed`; those
    /// before `until`, if that is given. Errors: the file's.
    pub fn all(&self, speed: f64, until: Option<Nanos>) -> Result<RequestStream, LiveError> {
        self.stream((0..self.volumes.len()).collect(), speed, until)
    }

    /// The same of one tenant.
    pub fn of(&self, tenant: usize, until: Option<Nanos>) -> Result<RequestStream, LiveError> {
        self.stream(vec![tenant], 1.0, until)
    }

    fn stream(
        &self,
        mut tenants: Vec<usize>,
        speed: f64,
        until: Option<Nanos>,
    ) -> Result<RequestStream, LiveError> {
        tenants.retain(|tenant| self.volumes[*tenant].is_some());
        let input = |tenant: &usize| {
            let mut input =
                TenantInput::path(&tenant.to_string(), &self.path, OpenOptions::default());
            let volume = self.volumes[*tenant].as_ref();
            input.volume = volume.and_then(|volume| volume.name.clone());
            input.time_scale = 1.0 / speed;
            input.stop = until.map(EarlyEnd::At);
            input
        };
        let inputs: Vec<TenantInput> = tenants.iter().map(input).collect();
        let requests = match inputs.is_empty() {
            true => None,
            false => {
                let opened = MergedRequests::open(inputs);
                Some(opened.map_err(|error| refuse(&self.path, error))?)
            }
        };
        let (path, batch) = (self.path.clone(), WorkloadBatch::default());
        Ok(RequestStream { path, requests, tenants, batch, next: 0 })
    }
}

fn refuse(path: &Path, message: impl std::fmt::Display) -> LiveError {
    LiveError::Refused(format!("--recording: {}: {message}", path.display()))
}

/// The file of a recording. Errors: there is none.
fn chosen(path: &Path) -> Result<PathBuf, LiveError> {
    if path.is_file() {
        return Ok(path.to_owned());
    }
    if !path.is_dir() {
        return Err(refuse(path, "found nothing there, expected a recording or a folder of some"));
    }
    let last = recordings_in(path).into_iter().max();
    let last = last.map(|name| path.join(name.to_string()));
    last.ok_or_else(|| refuse(path, "found no finished recording, expected one at least"))
}

/// Requests in the order of their times.
pub struct RequestStream {
    path: PathBuf,
    /// Nothing where there are none.
    requests: Option<MergedRequests>,
    /// The tenant of each input.
    tenants: Vec<usize>,
    batch: WorkloadBatch,
    next: usize,
}

impl RequestStream {
    /// The next request; nothing at the end. Errors: the file's.
    pub fn peek(&mut self) -> Result<Option<Request>, LiveError> {
        if self.next == self.batch.len() {
            (self.next, _) = (0, self.batch.clear());
            if let Some(requests) = &mut self.requests {
                let read = requests.read(&mut self.batch, BATCH);
                read.map_err(|error| refuse(&self.path, error))?;
            }
        }
        let at = self.next;
        Ok((at < self.batch.len()).then(|| Request {
            time: Nanos(self.batch.time_ns[at]),
            offset: Bytes(self.batch.offset_bytes[at]),
            length: Bytes(self.batch.length_bytes[at]),
            op: self.batch.op[at],
            tenant: TenantId(self.tenants[usize::from(self.batch.tenant[at])] as u16),
        }))
    }

    /// Goes on to the request behind that.
    pub fn pass(&mut self) {
        self.next = (self.next + 1).min(self.batch.len());
    }
}
