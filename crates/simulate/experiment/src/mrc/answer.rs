//! The curves of a call as a document and as a table of points.
//!
//! For: `mrc.json` and `mrc.parquet`. Must never know: how curves are measured. Schema of the
//! table: `tenant`, `policy`, `method` as text, `window` as UINT_32 (nothing for the whole trace),
//! `size_blocks` and `size_bytes` as UINT_64, `miss_ratio`, `low` and `high` as DOUBLE (nothing
//! where exact); one row group.

use super::CurveJob;
use super::measure::{How, WantedCurve};
use super::remarks::Remarks;
use crate::ExperimentError;
use crate::series::{RowGroupWriter, column, write_file};
use crate::spec::resolved;
use cachewright_curve::{Curve, MiniSettings};
use cachewright_result::curves::{CurvesAnswer, MissRatioCurve};
use cachewright_result::written::Written;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use std::path::Path;

/// The table in the result folder.
const TABLE: &str = "mrc.parquet";
const SCHEMA: &str = "message mrc {
    REQUIRED BYTE_ARRAY tenant (UTF8);
    REQUIRED BYTE_ARRAY policy (UTF8);
    OPTIONAL INT32 window (UINT_32);
    REQUIRED BYTE_ARRAY method (UTF8);
    REQUIRED INT64 size_blocks (UINT_64);
    REQUIRED INT64 size_bytes (UINT_64);
    REQUIRED DOUBLE miss_ratio;
    OPTIONAL DOUBLE low;
    OPTIONAL DOUBLE high;
}";

impl CurveJob<'_> {
    /// Everything but verification and response times.
    pub(super) fn answer(
        &self,
        wanted: &[WantedCurve],
        curves: &[Vec<Curve>],
        remarks: &Remarks,
    ) -> Result<CurvesAnswer, ExperimentError> {
        let each = wanted.iter().zip(curves);
        let rate = self.options.rate.unwrap_or(MiniSettings::default().rate);
        Ok(CurvesAnswer {
            written: Written::here(),
            name: self.spec.name.clone(),
            spec: resolved(self.spec)?,
            block_bytes: self.spec.cache.block.0,
            method: self.options.method.word().to_owned(),
            sizes_blocks: self.sizes.clone(),
            tenants: self.recorded.tenants.clone(),
            curves: each.flat_map(|(wanted, found)| self.windows(wanted, found)).collect(),
            notes: remarks.sentences(self.options, rate),
            verify: Vec::new(),
            latency: None,
        })
    }

    fn windows(&self, wanted: &WantedCurve, curves: &[Curve]) -> Vec<MissRatioCurve> {
        let by_window = self.options.windows > 0;
        let windowed = |(window, curve): (usize, &Curve)| MissRatioCurve {
            tenant: wanted.tenant.clone(),
            policy: wanted.policy.clone(),
            window: by_window.then_some(window),
            method: curve.provenance().to_string(),
            accesses: curve.accesses(),
            distinct: wanted.whose.distinct_blocks(self.recording()),
            trusted_from_blocks: curve.trusted_from_blocks(),
            points: self.points(wanted, curve),
        };
        curves.iter().enumerate().map(windowed).collect()
    }

    /// The curve on the grid, without the sizes that a sample does not serve for.
    fn points(&self, wanted: &WantedCurve, curve: &Curve) -> Vec<Point> {
        let banded = curve.band().is_some();
        let accesses = curve.accesses().max(1) as f64;
        let from = if wanted.how == How::Stack { curve.trusted_from_blocks() } else { 0 };
        let point = |&size: &u32| {
            let (low, high) = curve.interval(size);
            let band = |misses: f64| banded.then_some((misses / accesses).clamp(0.0, 1.0));
            (size, curve.miss_ratio(size), band(low), band(high))
        };
        self.sizes.iter().filter(|size| **size >= from).map(point).collect()
    }
}

/// Size in blocks, miss ratio, low and high end of its band.
type Point = (u32, f64, Option<f64>, Option<f64>);

/// One row of the table.
struct CurveRow<'a> {
    curve: &'a MissRatioCurve,
    block_bytes: u64,
    point: Point,
}

/// Writes the points of all curves as a table.
pub(super) fn write_points(folder: &Path, answer: &CurvesAnswer) -> Result<(), ExperimentError> {
    let block_bytes = answer.block_bytes;
    let points = answer.curves.iter().flat_map(|curve| {
        curve.points.iter().map(move |point| CurveRow { curve, block_bytes, point: *point })
    });
    let rows: Vec<CurveRow<'_>> = points.collect();
    write_file(&folder.join(TABLE), SCHEMA, |group| columns(group, &rows))
}

fn columns(group: &mut RowGroupWriter<'_>, rows: &[CurveRow<'_>]) -> Result<(), ParquetError> {
    let text = |text: &String| ByteArray::from(text.as_str());
    column::<ByteArrayType, _, _>(group, rows, |row| text(&row.curve.tenant))?;
    column::<ByteArrayType, _, _>(group, rows, |row| text(&row.curve.policy))?;
    optional::<Int32Type, _>(group, rows, |row| row.curve.window.map(|window| window as i32))?;
    column::<ByteArrayType, _, _>(group, rows, |row| text(&row.curve.method))?;
    column::<Int64Type, _, _>(group, rows, |row| i64::from(row.point.0))?;
    let bytes = |row: &CurveRow<'_>| u64::from(row.point.0).saturating_mul(row.block_bytes) as i64;
    column::<Int64Type, _, _>(group, rows, bytes)?;
    column::<DoubleType, _, _>(group, rows, |row| row.point.1)?;
    optional::<DoubleType, _>(group, rows, |row| row.point.2)?;
    optional::<DoubleType, _>(group, rows, |row| row.point.3)
}

/// Writes the next column of a group, which may lack values.
fn optional<D: DataType, F: Fn(&CurveRow<'_>) -> Option<D::T>>(
    group: &mut RowGroupWriter<'_>,
    rows: &[CurveRow<'_>],
    value: F,
) -> Result<(), ParquetError> {
    let found: Vec<Option<D::T>> = rows.iter().map(value).collect();
    let levels: Vec<i16> = found.iter().map(|value| i16::from(value.is_some())).collect();
    let values: Vec<D::T> = found.into_iter().flatten().collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<D>().write_batch(&values, Some(&levels), None)?;
        column.close()?;
    }
    Ok(())
}
