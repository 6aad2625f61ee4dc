//! A result folder: whose results it holds, its documents, the answers kept case by case, and
//! tables in Parquet.
//!
//! Every file appears whole or not at all. Two stacks are the same if their names, their tenants'
//! names and their traces are: other settings are other cases of one stack. A trace is the same by
//! its path, or by its file's name and bytes.

use crate::{ExperimentError, Spec, VERSION, json};
use cachewright_result::document::SCHEMA_VERSION;
use cachewright_result::run::RunAnswer;
use cachewright_result::run::SeriesRow;
use cachewright_stack::TenantSpec;
use cachewright_system::Row;
use cachewright_system::series::QuotaState;
use cachewright_types::seed::mix;
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::{DataType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The document of a folder of `run` and `compare`.
pub const RESULT: &str = "result.json";
/// The document of `mrc`.
pub const CURVES: &str = "mrc.json";
/// The document of `plan`.
pub const PLAN: &str = "plan.json";
/// The document of `wa`.
pub const AMPLIFICATION: &str = "wa.json";
const DOCUMENTS: [&str; 4] = [RESULT, CURVES, PLAN, AMPLIFICATION];
/// Tenants that a message names.
const NAMED: usize = 4;

/// What of a document says whose it is.
#[derive(Debug, Deserialize)]
struct Document {
    name: String,
    #[serde(flatten)]
    tenants: DocumentTenants,
}

/// Where a document names its tenants: in its stack, or in what was replayed of each.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum DocumentTenants {
    Stack { spec: Tenants },
    Replayed { tenants: Vec<ReplayedTrace> },
}

#[derive(Debug, Deserialize)]
struct Tenants {
    tenant: Vec<OwnedTrace>,
}

#[derive(Debug, Deserialize)]
struct ReplayedTrace {
    #[serde(flatten)]
    trace: OwnedTrace,
    part: String,
}

impl Document {
    fn owner(self) -> FolderOwner {
        let tenants = match self.tenants {
            DocumentTenants::Stack { spec } => spec.tenant,
            DocumentTenants::Replayed { tenants } => {
                // A load is another file of the same tenant.
                let run = tenants.into_iter().filter(|tenant| tenant.part == "run");
                run.map(|tenant| tenant.trace).collect()
            }
        };
        FolderOwner { name: self.name, tenants }
    }
}

#[derive(Debug)]
struct FolderOwner {
    name: String,
    tenants: Vec<OwnedTrace>,
}

#[derive(Debug, Deserialize)]
struct OwnedTrace {
    name: String,
    trace: String,
}

impl FolderOwner {
    fn new(spec: &Spec) -> FolderOwner {
        let tenants = spec
            .tenants
            .iter()
            .map(|tenant| OwnedTrace { name: tenant.name.clone(), trace: tenant.trace.clone() });
        FolderOwner { name: spec.name.clone(), tenants: tenants.collect() }
    }

    /// Whether a document of `self` is of the stack `spec`.
    fn is(&self, spec: &Spec) -> bool {
        let folder = spec.origin.parent().unwrap_or(Path::new(""));
        let alike = |(theirs, ours): (&OwnedTrace, &TenantSpec)| {
            theirs.name == ours.name
                && (theirs.trace == ours.trace
                    || is_same_trace(&folder.join(&theirs.trace), &ours.path))
        };
        self.name == spec.name
            && self.tenants.len() == spec.tenants.len()
            && self.tenants.iter().zip(&spec.tenants).all(alike)
    }

    fn text(&self) -> String {
        let tenant = |tenant: &OwnedTrace| format!("{} from {}", tenant.name, tenant.trace);
        let named: Vec<String> = self.tenants.iter().take(NAMED).map(tenant).collect();
        let more = match self.tenants.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("`{}` ({}{more})", self.name, named.join(", "))
    }
}

/// Whether two files of one name hold the same. A file that is gone says nothing of what it held:
/// its name decides.
fn is_same_trace(theirs: &Path, ours: &Path) -> bool {
    let is_one =
        || matches!((theirs.canonicalize(), ours.canonicalize()), (Ok(a), Ok(b)) if a == b);
    theirs.file_name() == ours.file_name()
        && (!theirs.exists() || is_one() || holds_same(theirs, ours).unwrap_or(false))
}

fn holds_same(a: &Path, b: &Path) -> std::io::Result<bool> {
    let (a, b) = (File::open(a)?, File::open(b)?);
    if a.metadata()?.len() != b.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (BufReader::new(a), BufReader::new(b));
    loop {
        let (left, right) = (a.fill_buf()?, b.fill_buf()?);
        let both = left.len().min(right.len());
        if both == 0 {
            return Ok(left.len() == right.len());
        }
        if left[..both] != right[..both] {
            return Ok(false);
        }
        a.consume(both);
        b.consume(both);
    }
}

/// Whose a document is; nothing where there is none, or it is damaged.
fn owner(path: &Path) -> Option<FolderOwner> {
    let found: Document = serde_json::from_slice(&std::fs::read(path).ok()?).ok()?;
    Some(found.owner())
}

/// Refuses a folder that holds a document of another stack, or in place of `document` something
/// else; `option` replaces it.
pub fn check_owner(
    out: &Path,
    document: &str,
    spec: &Spec,
    option: &str,
) -> Result<(), ExperimentError> {
    let expected = format!(
        "expected that of {}; name another folder, or replace it with `{option}`",
        FolderOwner::new(spec).text()
    );
    for name in DOCUMENTS {
        let path = out.join(name);
        let found = match owner(&path) {
            Some(found) if found.is(spec) => continue,
            Some(found) => format!("found the result of {}", found.text()),
            None if name == document && path.is_file() => {
                format!("found a `{document}` that is no result")
            }
            None => continue,
        };
        return Err(ExperimentError::spec(out, format!("{found}, {expected}")));
    }
    Ok(())
}

/// Removes the documents of another stack, which would stand beside the one to come. Errors: the
/// operating system's.
pub fn remove_others(out: &Path, spec: &Spec) -> Result<(), ExperimentError> {
    for path in DOCUMENTS.map(|name| out.join(name)) {
        if owner(&path).is_some_and(|found| !found.is(spec)) {
            std::fs::remove_file(&path).map_err(|error| ExperimentError::io(&path, error))?;
        }
    }
    Ok(())
}

/// Where a document goes; nothing is written without a folder.
#[derive(Clone, Copy, Debug)]
pub struct DocumentPlace<'a> {
    /// The result folder.
    pub folder: Option<&'a Path>,
    /// The document's file.
    pub file: &'static str,
}

impl DocumentPlace<'_> {
    /// Makes the folder. Errors: a file is in its place, the document there is of another stack and
    /// `force` does not say to replace it, the operating system's.
    pub fn claim(&self, spec: &Spec, force: bool) -> Result<(), ExperimentError> {
        let Some(folder) = self.folder else { return Ok(()) };
        make_folder(folder, folder)?;
        if force {
            remove_others(folder, spec)
        } else {
            check_owner(folder, self.file, spec, "--force")
        }
    }

    /// Writes the document.
    pub fn write(&self, document: &impl Serialize) -> Result<(), ExperimentError> {
        self.folder.map_or(Ok(()), |folder| write_document(&folder.join(self.file), document))
    }
}

/// Makes a folder of the results in `out`. Errors: a file is in its place, the operating system's.
pub fn make_folder(out: &Path, folder: &Path) -> Result<(), ExperimentError> {
    if out.is_file() {
        return Err(ExperimentError::spec(out, "found a file, expected a folder for results"));
    }
    std::fs::create_dir_all(folder).map_err(|error| ExperimentError::io(folder, error))
}

/// Writes a document for people and programs; it appears whole or not at all.
pub fn write_document(path: &Path, document: &impl Serialize) -> Result<(), ExperimentError> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder).map_err(|error| ExperimentError::io(folder, error))?;
    }
    write_whole(path, &json::page(document)?)
}

fn write_whole(path: &Path, text: &str) -> Result<(), ExperimentError> {
    let part = PartialFile::new(path);
    std::fs::write(part.path(), text).map_err(|error| part.failure(&error))?;
    part.finish()
}

/// Parts begun by this process.
static PARTS: AtomicU64 = AtomicU64::new(0);

/// A file that is being written.
/// It stands beside its target under a name of its own, so that no other writer touches it, in this
/// process or another; it is removed unless it was finished.
pub(crate) struct PartialFile {
    part: PathBuf,
    target: PathBuf,
    finished: bool,
}

impl PartialFile {
    /// The part of what will stand at `target`.
    pub fn new(target: &Path) -> PartialFile {
        let number = PARTS.fetch_add(1, Ordering::Relaxed);
        let part = target.with_extension(format!("{}-{number}.part", std::process::id()));
        PartialFile { part, target: target.to_owned(), finished: false }
    }

    /// Where to write.
    pub fn path(&self) -> &Path {
        &self.part
    }

    /// Puts what was written in its place. Errors: the operating system's.
    pub fn finish(mut self) -> Result<(), ExperimentError> {
        std::fs::rename(&self.part, &self.target).map_err(|error| self.failure(&error))?;
        self.finished = true;
        Ok(())
    }

    /// Why the target could not be written.
    pub fn failure(&self, error: &dyn std::fmt::Display) -> ExperimentError {
        ExperimentError::io(&self.target, error)
    }
}

impl Drop for PartialFile {
    fn drop(&mut self) {
        if !self.finished {
            // There may be none; and what failed is said already.
            let _ = std::fs::remove_file(&self.part);
        }
    }
}

/// The shape of kept answers; another one, or another schema of documents, makes all of them
/// unknown.
const SHAPE: u32 = 4;

/// Where answers are kept, if anywhere.
/// A key is made of the versions, the resolved settings and the traces' identity; a changed input
/// has another key, so stale answers are never used.
pub struct AnswerStore {
    cases: Option<PathBuf>,
    fresh: bool,
    /// Answers written and found so far.
    kept: AtomicUsize,
}

impl AnswerStore {
    /// Whether answers are kept at all.
    pub fn keeps(&self) -> bool {
        self.cases.is_some()
    }

    /// Answers of this run that the folder holds.
    pub fn kept(&self) -> usize {
        self.kept.load(Ordering::Relaxed)
    }

    /// Opens (and makes) the directory; with `fresh` old answers are not read. Errors: a file is
    /// in its place, the operating system's.
    pub fn open(out: Option<&Path>, fresh: bool) -> Result<AnswerStore, ExperimentError> {
        let cases = out.map(|out| out.join("cases"));
        if let (Some(out), Some(cases)) = (out, &cases) {
            make_folder(out, cases)?;
        }
        Ok(AnswerStore { cases, fresh, kept: AtomicUsize::new(0) })
    }

    /// The key of a case, from its settings and the facts read from its traces, both as JSON text,
    /// and the fingerprint of their block accesses.
    pub fn key(resolved: &str, tenants: &str, fingerprint: u64) -> String {
        let text =
            format!("{VERSION} {SCHEMA_VERSION} {SHAPE} {resolved} {tenants} {fingerprint:x}");
        let hash = |seed: u64| text.bytes().fold(seed, |hash, byte| mix(hash ^ u64::from(byte)));
        format!("{:016x}{:016x}", hash(1), hash(2))
    }

    /// The answer kept under `key`; one that cannot be read is none.
    pub fn load<T: DeserializeOwned>(
        &self,
        key: &str,
    ) -> Result<Option<(T, Vec<Row>)>, ExperimentError> {
        let Some(cases) = self.cases.as_ref().filter(|_| !self.fresh) else { return Ok(None) };
        let path = cases.join(format!("{key}.json"));
        let bytes = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(ExperimentError::io(&path, error)),
        };
        let kept: Option<(T, Vec<[u64; 8]>)> = serde_json::from_slice(&bytes).ok();
        self.kept.fetch_add(usize::from(kept.is_some()), Ordering::Relaxed);
        Ok(kept.map(|(answer, rows)| (answer, rows.into_iter().map(row_of).collect())))
    }

    /// Keeps an answer; it appears whole or not at all.
    pub fn save(
        &self,
        key: &str,
        answer: &impl Serialize,
        rows: &[Row],
    ) -> Result<(), ExperimentError> {
        let Some(cases) = &self.cases else { return Ok(()) };
        let rows: Vec<[u64; 8]> = rows.iter().map(columns_of).collect();
        write_whole(&cases.join(format!("{key}.json")), &json::text(&(answer, rows))?)?;
        self.kept.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// Writes `result.json`.
    pub fn write_result(&self, out: &Path, result: &RunAnswer) -> Result<(), ExperimentError> {
        write_document(&out.join(RESULT), result)
    }
}

fn columns_of(row: &Row) -> [u64; 8] {
    let (window, tenant) = (u64::from(row.window), u64::from(row.tenant));
    let (held, quota) = (row.occupancy_blocks, row.quota_blocks);
    [window, row.time_ns, tenant, row.accesses, row.hits, held, quota, row.state as u64]
}

fn row_of([window, time_ns, tenant, accesses, hits, held, quota, state]: [u64; 8]) -> Row {
    Row {
        window: window as u32,
        time_ns,
        tenant: tenant as u32,
        accesses,
        hits,
        occupancy_blocks: held,
        quota_blocks: quota,
        state: QuotaState::ALL.get(state as usize).copied().unwrap_or_default(),
    }
}

/// `series.parquet`: the tenant 4294967295 stands for all; states are 0 none, 1 supply, 2 demand, 3
/// stable; one row group.
const SCHEMA: &str = "message series {
    REQUIRED INT32 case (UINT_32);
    REQUIRED INT32 window (UINT_32);
    REQUIRED INT64 time_ns (UINT_64);
    REQUIRED INT32 tenant (UINT_32);
    REQUIRED INT64 accesses (UINT_64);
    REQUIRED INT64 hits (UINT_64);
    REQUIRED INT64 occupancy_blocks (UINT_64);
    REQUIRED INT64 quota_blocks (UINT_64);
    REQUIRED INT32 state (UINT_32);
}";

/// Rows of several cases: (case, row).
pub type Rows = Vec<(u32, Row)>;
/// The columns of a file that are being written.
pub(crate) type RowGroupWriter<'a> = SerializedRowGroupWriter<'a, File>;

/// Writes the rows; the file appears whole or not at all.
pub fn write_series(path: &Path, rows: &Rows) -> Result<(), ExperimentError> {
    write_file(path, SCHEMA, |group| columns(group, rows))
}

/// Writes a file of one row group, whose columns `fill` writes in the order of `schema`; it appears
/// whole or not at all.
pub(crate) fn write_file(
    path: &Path,
    schema: &str,
    fill: impl FnOnce(&mut RowGroupWriter<'_>) -> Result<(), ParquetError>,
) -> Result<(), ExperimentError> {
    let part = PartialFile::new(path);
    let file = File::create(part.path()).map_err(|error| part.failure(&error))?;
    write_to(file, schema, fill).map_err(|error| part.failure(&error))?;
    part.finish()
}

fn write_to(
    file: File,
    schema: &str,
    fill: impl FnOnce(&mut RowGroupWriter<'_>) -> Result<(), ParquetError>,
) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(schema)?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(Default::default()))
        .set_created_by(format!("cachewright {}", crate::VERSION))
        .build();
    let mut writer = SerializedFileWriter::new(file, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    fill(&mut group)?;
    group.close()?;
    writer.close()?;
    Ok(())
}

fn columns(group: &mut RowGroupWriter<'_>, rows: &Rows) -> Result<(), ParquetError> {
    column::<Int32Type, _, _>(group, rows, |(case, _)| *case as i32)?;
    column::<Int32Type, _, _>(group, rows, |(_, row)| row.window as i32)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.time_ns as i64)?;
    column::<Int32Type, _, _>(group, rows, |(_, row)| row.tenant as i32)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.accesses as i64)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.hits as i64)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.occupancy_blocks as i64)?;
    column::<Int64Type, _, _>(group, rows, |(_, row)| row.quota_blocks as i64)?;
    column::<Int32Type, _, _>(group, rows, |(_, row)| row.state as i32)
}

/// Writes rows of numbers in order, as wide as `schema` says; returns whether there are any, since
/// without them there is no file.
pub(crate) fn write_numbers<const N: usize>(
    path: &Path,
    schema: &str,
    rows: &mut [[u64; N]],
) -> Result<bool, ExperimentError> {
    rows.sort_unstable();
    if rows.is_empty() {
        return Ok(false);
    }
    write_file(path, schema, |group| {
        for place in 0..N {
            let Some(mut column) = group.next_column()? else { break };
            let values = rows.iter().map(|row| row[place]);
            if let ColumnWriter::Int32ColumnWriter(narrow) = column.untyped() {
                let values: Vec<i32> = values.map(|value| value as i32).collect();
                narrow.write_batch(&values, None, None)?;
            } else {
                let values: Vec<i64> = values.map(|value| value as i64).collect();
                column.typed::<Int64Type>().write_batch(&values, None, None)?;
            }
            column.close()?;
        }
        Ok(())
    })?;
    Ok(true)
}

/// Writes the next column of a group.
pub(crate) fn column<D: DataType, R, F: Fn(&R) -> D::T>(
    group: &mut RowGroupWriter<'_>,
    rows: &[R],
    value: F,
) -> Result<(), ParquetError> {
    let values: Vec<D::T> = rows.iter().map(value).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<D>().write_batch(&values, None, None)?;
        column.close()?;
    }
    Ok(())
}

/// The rows as a result without a directory has them.
pub fn plain_rows(rows: &Rows) -> Vec<SeriesRow> {
    let plain = |(case, row): &(u32, Row)| {
        let (held, quota, state) = (row.occupancy_blocks, row.quota_blocks, row.state as u8);
        let (accesses, hits) = (row.accesses, row.hits);
        (*case, row.window, row.time_ns, row.tenant, accesses, hits, held, quota, state)
    };
    rows.iter().map(plain).collect()
}
