//! The curves of a call as a document and as a table of points.
//!
//! For: `mrc.json` and `mrc.parquet`. Must never know: how curves are measured. Schema of the
//! table: `tenant`, `policy`, `method` as text, `window` as UINT_32 (nothing for the whole trace),
//! `size_blocks` and `size_bytes` as UINT_64, `miss_ratio`, `low` and `high` as DOUBLE (nothing
//! where exact); one row group.

use super::Job;
use super::measure::{How, Wanted};
use super::remarks::Remarks;
use crate::series::{Group, column, write_file};
use crate::spec::resolved;
use crate::{ExperimentError, VERSION};
use cachewright_curve::{Curve, MiniSettings};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::errors::ParquetError;
use serde_json::{Value, json};
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

impl Job<'_> {
    /// Everything but verification and response times.
    pub(super) fn document(
        &self,
        wanted: &[Wanted],
        curves: &[Vec<Curve>],
        remarks: &Remarks,
    ) -> Result<Value, ExperimentError> {
        let each = wanted.iter().zip(curves);
        let curves: Vec<Value> = each.flat_map(|(one, found)| self.windows(one, found)).collect();
        let rate = self.options.rate.unwrap_or(MiniSettings::default().rate);
        Ok(json!({
            "cachewright": VERSION,
            "name": self.spec.name,
            "spec": resolved(self.spec).map_err(|message| self.refuse(message))?,
            "block_bytes": self.spec.cache.block.0,
            "method": self.options.method,
            "sizes_blocks": self.sizes,
            "tenants": self.recorded.tenants,
            "curves": curves,
            "notes": remarks.sentences(self.options, rate),
        }))
    }

    fn windows(&self, wanted: &Wanted, curves: &[Curve]) -> Vec<Value> {
        let by_window = self.options.windows > 0;
        let one = |(window, curve): (usize, &Curve)| {
            json!({
                "tenant": wanted.tenant,
                "policy": wanted.policy,
                "window": by_window.then_some(window),
                "method": curve.provenance().to_string(),
                "accesses": curve.accesses(),
                "distinct": wanted.whose.distinct_blocks(self.recording()),
                "trusted_from_blocks": curve.trusted_from_blocks(),
                "points": self.points(wanted, curve),
            })
        };
        curves.iter().enumerate().map(one).collect()
    }

    /// The curve on the grid, without the sizes that a sample does not serve for.
    fn points(&self, wanted: &Wanted, curve: &Curve) -> Vec<Value> {
        let banded = curve.band().is_some();
        let accesses = curve.accesses().max(1) as f64;
        let from = if wanted.how == How::Stack { curve.trusted_from_blocks() } else { 0 };
        let point = |&size: &u32| {
            let (low, high) = curve.interval(size);
            let band = |misses: f64| banded.then_some((misses / accesses).clamp(0.0, 1.0));
            json!([size, curve.miss_ratio(size), band(low), band(high)])
        };
        self.sizes.iter().filter(|size| **size >= from).map(point).collect()
    }
}

/// One row of the table.
struct Row<'a> {
    curve: &'a Value,
    block_bytes: u64,
    /// Size, miss ratio, low and high.
    point: &'a [Value],
}

impl Row<'_> {
    fn text(&self, key: &str) -> ByteArray {
        ByteArray::from(self.curve[key].as_str().unwrap_or_default())
    }

    fn size_blocks(&self) -> u64 {
        self.point.first().and_then(Value::as_u64).unwrap_or(0)
    }

    fn ratio(&self, at: usize) -> Option<f64> {
        self.point.get(at).and_then(Value::as_f64)
    }
}

/// Writes the points of all curves of a document as a table.
pub(super) fn write_points(folder: &Path, document: &Value) -> Result<(), ExperimentError> {
    let block_bytes = document["block_bytes"].as_u64().unwrap_or(0);
    let mut rows = Vec::new();
    for curve in document["curves"].as_array().into_iter().flatten() {
        for point in curve["points"].as_array().into_iter().flatten() {
            let point = point.as_array().map_or(&[][..], Vec::as_slice);
            rows.push(Row { curve, block_bytes, point });
        }
    }
    write_file(&folder.join(TABLE), SCHEMA, |group| columns(group, &rows))
}

fn columns(group: &mut Group<'_>, rows: &[Row<'_>]) -> Result<(), ParquetError> {
    column::<ByteArrayType, _, _>(group, rows, |row| row.text("tenant"))?;
    column::<ByteArrayType, _, _>(group, rows, |row| row.text("policy"))?;
    let window = |row: &Row<'_>| row.curve["window"].as_u64().map(|window| window as i32);
    optional::<Int32Type, _>(group, rows, window)?;
    column::<ByteArrayType, _, _>(group, rows, |row| row.text("method"))?;
    column::<Int64Type, _, _>(group, rows, |row| row.size_blocks() as i64)?;
    let bytes = |row: &Row<'_>| row.size_blocks().saturating_mul(row.block_bytes) as i64;
    column::<Int64Type, _, _>(group, rows, bytes)?;
    column::<DoubleType, _, _>(group, rows, |row| row.ratio(1).unwrap_or(0.0))?;
    optional::<DoubleType, _>(group, rows, |row| row.ratio(2))?;
    optional::<DoubleType, _>(group, rows, |row| row.ratio(3))
}

/// Writes the next column of a group, which may lack values.
fn optional<D: DataType, F: Fn(&Row<'_>) -> Option<D::T>>(
    group: &mut Group<'_>,
    rows: &[Row<'_>],
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
