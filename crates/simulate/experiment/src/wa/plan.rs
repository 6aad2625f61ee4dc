//! The options of `wa`, checked, and the combinations they ask for.
//!
//! For: refusing in words before a trace is read. Must never know: traces, results. Units: pages;
//! over-provisioning is a ratio.

use super::options::{DriveOptions, WaOptions};
use super::training::TrainingChoice;
use crate::case::Case;
use crate::spec::flash::{
    PAGE, PAGES_LIMIT, block_pages, check_over_provisioning, check_page, check_schemes,
};
use crate::spec::{FlashSpec, Scheme, Spec};
use cachewright_ftl::{Geometry, Need, Space, reclaim, separation};
use cachewright_stack::FlashTable;
use cachewright_types::declare::Percent;
use cachewright_types::{Size, Value, parse_size};

/// How large the drive is.
#[derive(Clone, Copy, Debug)]
enum PlannedCapacity {
    /// As large as what is ever written.
    Written,
    /// As large as what is live at once.
    Live,
    /// As asked.
    Of(Size),
}

/// Checked options.
#[derive(Clone, Debug)]
pub struct DrivePlan {
    /// The drive, but for its schemes and its over-provisioning.
    pub flash: FlashSpec,
    /// What was left out and why.
    pub warnings: Vec<String>,
    /// Where models come from.
    pub training: TrainingChoice,
    /// Logical size of the drive as it was asked for.
    pub capacity_text: String,
    ops: Vec<f64>,
    separations: Vec<Scheme>,
    reclaims: Vec<Scheme>,
    capacity: PlannedCapacity,
}

impl DrivePlan {
    /// Checks names, settings and sizes; what is left out is that of the stack's drive, or the
    /// default.
    pub fn new(options: &WaOptions, spec: &Spec) -> Result<DrivePlan, String> {
        let drive = &options.drive;
        let own = spec.flash.as_deref().cloned().unwrap_or_default();
        let page = drive.page.or(own.page).unwrap_or(PAGE);
        check_page("page", page)?;
        let superblock = drive.superblock.unwrap_or(own.superblock);
        block_pages("superblock", superblock, page)?;
        let capacity = match drive.capacity.as_str() {
            "auto" => PlannedCapacity::Written,
            "live" => PlannedCapacity::Live,
            text => PlannedCapacity::Of(parse_size(text).map_err(|error| {
                format!("`capacity`: {error}; `auto` and `live` follow the trace")
            })?),
        };
        let ops = if drive.op.is_empty() {
            vec![own.over_provisioning.0]
        } else {
            let each = drive.op.iter().map(|op| check_over_provisioning("op", *op));
            each.collect::<Result<_, _>>()?
        };
        let reserve = drive.reserve.unwrap_or(own.reserve);
        let mut plan = DrivePlan {
            flash: FlashSpec::of_pages(FlashTable { superblock, reserve, ..own }, page),
            warnings: Vec::new(),
            training: TrainingChoice::new(drive.model.as_deref(), options.trainer.as_ref())?,
            capacity_text: drive.capacity.clone(),
            ops,
            separations: Vec::new(),
            reclaims: Vec::new(),
            capacity,
        };
        plan.schemes(drive)?;
        Ok(plan)
    }

    fn schemes(&mut self, options: &DriveOptions) -> Result<(), String> {
        for text in &options.separations {
            if text != "all" {
                self.separations.push(crate::spec::scheme_of_option("separation", text)?);
                continue;
            }
            for entry in separation::entries() {
                if entry.needs.contains(&Need::Model) {
                    let name = entry.name;
                    self.warnings.push(format!("`{name}` is left out: it needs a model"));
                } else {
                    self.separations.push(bare(entry.name));
                }
            }
        }
        for text in &options.reclaims {
            if text == "all" {
                self.reclaims.extend(reclaim::entries().iter().map(|entry| bare(entry.name)));
            } else {
                self.reclaims.push(crate::spec::scheme_of_option("reclaim", text)?);
            }
        }
        let lists = [("separations", &self.separations), ("reclaims", &self.reclaims)];
        for (key, empty) in lists.map(|(key, list)| (key, list.is_empty())) {
            if empty {
                return Err(format!("`{key}`: found nothing, expected at least one"));
            }
        }
        // Names and settings are refused here, before a trace is read.
        check_schemes(&self.separations, &self.reclaims)?;
        self.training.check(&self.separations)
    }

    /// Whether the drive is as large as what is written, or live.
    pub fn scaled(&self) -> bool {
        !matches!(self.capacity, PlannedCapacity::Of(Size::Bytes(_) | Size::Blocks(_)))
    }

    /// Whether trimmed pages give their numbers to others.
    pub fn recycles(&self) -> bool {
        matches!(self.capacity, PlannedCapacity::Live)
    }

    /// Logical pages of the drive for so many distinct written pages, of which so many are live at
    /// once.
    pub fn logical_pages(&self, working_pages: u32, live_pages: u32) -> Result<u32, String> {
        let pages = match self.capacity {
            PlannedCapacity::Written => u64::from(working_pages),
            PlannedCapacity::Live => u64::from(live_pages),
            PlannedCapacity::Of(Size::Bytes(bytes)) => bytes.0 / self.flash.page.0,
            PlannedCapacity::Of(Size::Blocks(blocks)) => blocks,
            PlannedCapacity::Of(Size::WorkingSetPercent(percent)) => {
                (f64::from(working_pages) * percent / 100.0).round() as u64
            }
        };
        let min = if self.recycles() { live_pages } else { working_pages };
        if (u64::from(min)..=PAGES_LIMIT).contains(&pages) {
            return Ok(pages as u32);
        }
        Err(format!(
            "`capacity`: found {pages} pages, expected {working_pages} (what the trace writes) to \
             {PAGES_LIMIT}, or `live` for the {live_pages} that are live at once"
        ))
    }

    /// Every combination as a case of the stack with that drive: over-provisioning, then
    /// separation, then reclaim. Errors: a drive of too few superblocks.
    pub fn cases(&self, spec: &Spec, logical_pages: u32) -> Result<Vec<Case>, String> {
        let mut cases = Vec::new();
        for op in &self.ops {
            let (block_pages, reserve) = (self.flash.block_pages(), self.flash.reserve);
            let geometry =
                Geometry::with_over_provisioning(logical_pages, block_pages, *op, reserve);
            self.check(&geometry)?;
            for separation in &self.separations {
                for reclaim in &self.reclaims {
                    let table = FlashTable {
                        separation: separation.clone(),
                        reclaim: reclaim.clone(),
                        over_provisioning: Percent(*op),
                        ..(*self.flash).clone()
                    };
                    let flash = Some(FlashSpec::of_pages(table, self.flash.page));
                    let case = Case::single(Spec { flash, ..spec.clone() });
                    cases.push(Case { index: cases.len(), ..case });
                }
            }
        }
        Ok(cases)
    }

    /// Refuses a drive that is all reserve; finer limits are those of the translation layer.
    fn check(&self, geometry: &Geometry) -> Result<(), String> {
        let Space::Fixed { blocks, reserve_blocks, .. } = geometry.space else { return Ok(()) };
        if blocks > reserve_blocks {
            return Ok(());
        }
        let superblock = self.flash.superblock;
        Err(format!(
            "`superblock`: found {superblock}, of which a drive of {} pages has {blocks}, expected \
             more than the {reserve_blocks} kept free: a smaller `superblock`, more `op`, or a \
             larger `capacity`",
            geometry.logical_pages
        ))
    }
}

fn bare(name: &str) -> Scheme {
    Scheme { name: name.to_owned(), pairs: Vec::new() }
}

/// A scheme in a few words: its name, then the settings given.
pub fn label(named: &Scheme) -> String {
    let pairs: Vec<String> = named
        .pairs
        .iter()
        .map(|(key, value)| match value {
            Value::Float(number) => format!("{key}={number}"),
            other => format!("{key}={}", other.shown()),
        })
        .collect();
    if pairs.is_empty() {
        named.name.clone()
    } else {
        format!("{}({})", named.name, pairs.join(", "))
    }
}
