//! The `[flash]` table: the drive under the cache, and what `wa` and it have in common.
//!
//! For: the keys of a drive, each with one rule whether it stands in a stack file or on the command
//! line. Must never know: the translation layer's state, traces. Units: bytes; over-provisioning is
//! a ratio here and a percentage in the file.

use crate::document::Reader;
use crate::kinds::Capacity;
use crate::tables::FlashTable;
use cachewright_ftl::separation::{self, Registered, SeparationVisitor};
use cachewright_ftl::{FtlError, Geometry, Need, reclaim};
use cachewright_types::declare::{Percent, Scheme};
use cachewright_types::{Bytes, Seed, Size};
use std::ops::Deref;
use std::slice::from_ref;

/// Bytes of a page when none are given.
pub const PAGE: Bytes = Bytes(4096);
/// The most over-provisioning, as the table has it.
const MAX_OVER_PROVISIONING: Percent = Percent(10.0);
/// The most pages a drive can have.
pub const PAGES_LIMIT: u64 = 1 << 31;
/// Most pages of a superblock.
const SUPERBLOCK_PAGES: u64 = 1 << 24;

/// The `[flash]` table with every default filled in.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashSpec {
    table: FlashTable,
    /// Unit of writing; its default depends on the block of the cache.
    pub page: Bytes,
}

impl Deref for FlashSpec {
    type Target = FlashTable;

    fn deref(&self) -> &FlashTable {
        &self.table
    }
}

impl FlashSpec {
    /// The table, if the file has one, for blocks of so many bytes.
    pub fn read(file: &Reader<'_>, block: Bytes) -> Result<Option<FlashSpec>, String> {
        let reader = file.table("flash")?;
        if !reader.is_there() {
            return Ok(None);
        }
        let mut table: FlashTable = reader.read()?;
        let page = table.page.unwrap_or(PAGE.min(block));
        check_page("flash.page", page)?;
        if page > block {
            let expected = format!("expected at most `cache.block` ({block})");
            return Err(format!("`flash.page`: found {page}, {expected}"));
        }
        block_pages("flash.superblock", table.superblock, page)?;
        if table.over_provisioning.0 <= 0.0 {
            return Err(no_spare("flash.over_provisioning", &table.over_provisioning.text()));
        }
        table.page = Some(page);
        let flash = FlashSpec { table, page };
        flash.check_schemes()?;
        Ok(Some(flash))
    }

    /// A checked table with pages of so many bytes, of a drive that stands in no file.
    pub fn of_pages(table: FlashTable, page: Bytes) -> FlashSpec {
        FlashSpec { table: FlashTable { page: Some(page), ..table }, page }
    }

    fn check_schemes(&self) -> Result<(), String> {
        check_schemes(from_ref(&self.separation), from_ref(&self.reclaim))?;
        if is_bound(&self.separation) {
            let name = &self.separation.name;
            return Err(format!(
                "`flash.separation`: found `{name}`, which needs the future; a running cache has \
                 none, expected another (`wa` measures bounds)"
            ));
        }
        Ok(())
    }

    /// Logical pages of a drive that holds `what`: so many blocks of so many pages. Errors: fewer
    /// than these, or more than a drive can have.
    pub fn logical_pages(&self, blocks: u64, block_pages: u32, what: &str) -> Result<u32, String> {
        let min = blocks.saturating_mul(block_pages.into());
        let pages = match self.capacity {
            Capacity::Auto => min,
            Capacity::Size(Size::Bytes(bytes)) => bytes.0 / self.page.0,
            Capacity::Size(Size::Blocks(blocks)) => blocks.saturating_mul(block_pages.into()),
            Capacity::Size(Size::WorkingSetPercent(percent)) => {
                return Err(format!(
                    "`flash.capacity`: found `{percent}%wss`, expected a size, or `auto` for a \
                     drive as large as {what}"
                ));
            }
        };
        if (min..=PAGES_LIMIT).contains(&pages) {
            return Ok(pages as u32);
        }
        Err(format!(
            "`flash.capacity`: found {pages} pages, expected {min} ({what}) to {PAGES_LIMIT}"
        ))
    }

    /// Pages of a superblock; both sizes were checked.
    pub fn block_pages(&self) -> u32 {
        (self.superblock.0 / self.page.0) as u32
    }
}

/// Refuses a page size that no drive has.
pub fn check_page(key: &str, page: Bytes) -> Result<(), String> {
    if page.0.is_power_of_two() && (512..=1 << 20).contains(&page.0) {
        return Ok(());
    }
    let page = page.exact();
    Err(format!("`{key}`: found `{page}`, expected a power of two from 512B to 1MiB"))
}

/// Pages of a superblock.
pub fn block_pages(key: &str, superblock: Bytes, page: Bytes) -> Result<u32, String> {
    let pages = superblock.0 / page.0.max(1);
    if superblock.0.is_multiple_of(page.0.max(1)) && (2..=SUPERBLOCK_PAGES).contains(&pages) {
        return Ok(pages as u32);
    }
    let max = SUPERBLOCK_PAGES;
    let found = superblock.exact();
    Err(format!("`{key}`: found `{found}`, expected 2 to {max} pages of {page}"))
}

/// Over-provisioning as an option gives it. Errors: none at all, or more than the table takes.
pub fn check_over_provisioning(key: &str, given: Percent) -> Result<f64, String> {
    let max = MAX_OVER_PROVISIONING.text();
    match given.0 {
        ratio if ratio > 0.0 && ratio <= MAX_OVER_PROVISIONING.0 => Ok(ratio),
        0.0 => Err(no_spare(key, &given.text())),
        _ => Err(format!(
            "`{key}`: found `{}`, expected a percentage such as `7%`, up to {max}",
            given.text()
        )),
    }
}

/// A ratio as its percentage.
pub fn percent_text(ratio: f64) -> String {
    Percent(ratio).text()
}

fn no_spare(key: &str, text: &str) -> String {
    format!(
        "`{key}`: found `{text}`, expected more than 0: without spare pages no superblock can be \
         cleaned"
    )
}

/// Refuses unknown schemes and settings.
pub fn check_schemes(separations: &[Scheme], reclaims: &[Scheme]) -> Result<(), String> {
    for Scheme { name, pairs } in separations {
        separation::visit(name, pairs, AnyScheme).map_err(|error| error.to_string())?;
    }
    let geometry = Geometry::with_over_provisioning(1, 2, 1.0, 2);
    for Scheme { name, pairs } in reclaims {
        reclaim::by_name(name, pairs, &geometry, Seed(0)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Accepts whatever has a name and good settings.
struct AnyScheme;

impl SeparationVisitor for AnyScheme {
    type Output = ();
    fn visit<S: Registered>(self, _: S::Settings) {}
}

/// Whether a separation reads the future, so that it is a bound and not a choice.
pub fn is_bound(named: &Scheme) -> bool {
    separation::entry(&named.name).is_ok_and(|entry| entry.needs.contains(&Need::Future))
}

/// What the user can change about a drive that was refused or ran full; the keys stand in `table`,
/// which is empty on the command line.
pub fn advice(error: &FtlError, table: &str) -> String {
    let key = |name: &str| match table {
        "" => format!("`{name}`"),
        table => format!("`{table}.{name}`"),
    };
    let op = key(if table.is_empty() { "op" } else { "over_provisioning" });
    let (superblock, reserve) = (key("superblock"), key("reserve"));
    match error {
        FtlError::OverProvisioning { .. } => {
            format!("; raise {op}, or lower {superblock} or {reserve}")
        }
        FtlError::Geometry { what: "superblocks kept free", .. } => {
            format!("; change {reserve}, or lower {superblock}")
        }
        FtlError::Geometry { what: "superblocks", found: 0, .. } => {
            format!(": the drive is smaller than one; lower {superblock}")
        }
        FtlError::Full { .. } => format!("; raise {op} or {reserve}, or lower {superblock}"),
        _ => String::new(),
    }
}
