//! What a characterizer sees of a trace, as numbers.
//!
//! For: training with the very code that will run. Must never know: windows, kinds, labels.

use super::{TraceChoice, is_access, request, scan};
use crate::ExperimentError;
use crate::progress::OnProgress;
use cachewright_policy::characterize::{RequestFeatures, features};
use std::path::Path;

/// The rows of one volume, in order of arrival.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VolumeRows {
    /// The volume's name.
    pub name: String,
    /// When each read and write came, since the trace's first request.
    pub time_ns: Vec<u64>,
    /// The numbers of each, one request after another.
    pub rows: Vec<f32>,
}

/// The rows of every volume of a trace, and how many numbers a row has.
pub fn rows(
    path: &Path,
    choice: &TraceChoice,
    by: &str,
    progress: OnProgress<'_>,
) -> Result<(Vec<VolumeRows>, usize), ExperimentError> {
    let refuse = |message: String| ExperimentError::spec(path, message);
    let fresh = || features(by, &[]).map_err(|error| refuse(error.to_string()));
    let width = fresh()?.names().len();
    let mut volumes: Vec<(Box<dyn RequestFeatures>, VolumeRows)> = Vec::new();
    let names = scan(path, choice, progress, |record, time_ns| {
        let index = record.volume as usize;
        while volumes.len() <= index {
            volumes.push((fresh()?, VolumeRows::default()));
        }
        if is_access(record) {
            let (sees, found) = &mut volumes[index];
            sees.row(&request(record, time_ns), &mut found.rows);
            found.time_ns.push(time_ns);
        }
        Ok(())
    })?
    .volumes;
    let named = volumes.into_iter().zip(names);
    let found = named.map(|((_, rows), name)| VolumeRows { name, ..rows });
    Ok((found.filter(|volume| !volume.time_ns.is_empty()).collect(), width))
}
