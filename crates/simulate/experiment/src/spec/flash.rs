//! The `[flash]` table: the drive under the cache, and what `wa` and it have in common.
//!
//! For: the keys of a drive, each with one rule whether it stands in a stack file or on the command
//! line. Must never know: the translation layer's state, traces. Units: bytes; over-provisioning is
//! a ratio here and a percentage in the file.

use super::Named;
use super::section::Section;
use cachewright_ftl::separation::{self, Registered, SeparationVisitor};
use cachewright_ftl::{FtlError, Geometry, Need, reclaim};
use cachewright_types::{Bytes, Seed, Size, parse_size};
use std::slice::from_ref;

/// Over-provisioning when none is given.
pub const OVER_PROVISIONING: &str = "7%";
/// Reclaim policy when none is given.
pub const RECLAIM: &str = "cost-benefit";
/// Bytes of a superblock when none are given.
pub const SUPERBLOCK: Bytes = Bytes(1 << 20);
/// Bytes of a page when none are given.
pub const PAGE: Bytes = Bytes(4096);
/// Superblocks kept free when no number is given.
pub const RESERVE: u32 = 4;
/// The most pages a drive can have.
pub const PAGES_LIMIT: u64 = 1 << 31;
/// Most pages of a superblock.
const SUPERBLOCK_PAGES: u64 = 1 << 24;

/// The `[flash]` table.
#[derive(Clone, Debug, PartialEq)]
pub struct FlashSpec {
    /// Which pages share a superblock.
    pub separation: Named,
    /// Which superblock is cleaned next.
    pub reclaim: Named,
    /// Physical pages beyond the logical ones, as a ratio of these.
    pub over_provisioning: f64,
    /// Unit of erasing.
    pub superblock: Bytes,
    /// Unit of writing.
    pub page: Bytes,
    /// Logical size; if nothing, as large as the cache, or as the volumes of a store.
    pub capacity: Option<Size>,
    /// Superblocks kept free for writes of the cache.
    pub reserve: u32,
    /// Whether the place of a block that leaves the cache is trimmed at once; otherwise it is
    /// overwritten by the next block.
    pub trim_evicted: bool,
}

impl FlashSpec {
    /// The keys of the table.
    pub(super) const KEYS: [&'static str; 8] = [
        "separation",
        "reclaim",
        "over_provisioning",
        "superblock",
        "page",
        "capacity",
        "reserve",
        "trim_evicted",
    ];

    /// The table, if the file has one.
    pub(super) fn from_section(
        top: &Section<'_>,
        block: Bytes,
    ) -> Result<Option<FlashSpec>, String> {
        if top.get("flash").is_none() {
            return Ok(None);
        }
        let section = top.table("flash", &FlashSpec::KEYS)?;
        let op = match section.get("over_provisioning") {
            None => OVER_PROVISIONING.to_owned(),
            Some(toml::Value::String(text)) => text.clone(),
            Some(other) => other.to_string(),
        };
        let page = section.bytes("page", PAGE.min(block))?;
        check_page("flash.page", page)?;
        if page > block {
            let expected = format!("expected at most `cache.block` ({block})");
            return Err(format!("`flash.page`: found {page}, {expected}"));
        }
        let superblock = section.bytes("superblock", SUPERBLOCK)?;
        block_pages("flash.superblock", superblock, page)?;
        let capacity = match section.text("capacity", "auto")?.as_str() {
            "auto" => None,
            text => Some(parse_size(text).map_err(|error| {
                format!("`flash.capacity`: {error}; `auto` is as large as what it holds")
            })?),
        };
        let flash = FlashSpec {
            separation: section.named("separation", "none")?,
            reclaim: section.named("reclaim", RECLAIM)?,
            over_provisioning: percent("flash.over_provisioning", &op)?,
            superblock,
            page,
            capacity,
            reserve: section.whole("reserve", u64::from(RESERVE), 2..=1 << 20)? as u32,
            trim_evicted: section.boolean("trim_evicted", false)?,
        };
        flash.check_schemes()?;
        Ok(Some(flash))
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
        let least = blocks.saturating_mul(block_pages.into());
        let pages = match self.capacity {
            None => least,
            Some(Size::Bytes(bytes)) => bytes.0 / self.page.0,
            Some(Size::Blocks(blocks)) => blocks.saturating_mul(block_pages.into()),
            Some(Size::WorkingSetPercent(percent)) => {
                return Err(format!(
                    "`flash.capacity`: found `{percent}%wss`, expected a size, or `auto` for a \
                     drive as large as {what}"
                ));
            }
        };
        if (least..=PAGES_LIMIT).contains(&pages) {
            return Ok(pages as u32);
        }
        Err(format!(
            "`flash.capacity`: found {pages} pages, expected {least} ({what}) to {PAGES_LIMIT}"
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
    let most = SUPERBLOCK_PAGES;
    let found = superblock.exact();
    Err(format!("`{key}`: found `{found}`, expected 2 to {most} pages of {page}"))
}

/// Over-provisioning, written with `%`, as a ratio of the logical size.
pub fn percent(key: &str, text: &str) -> Result<f64, String> {
    let number = text.trim().strip_suffix('%').and_then(|number| number.trim().parse().ok());
    match number {
        Some(percent) if percent > 0.0 && percent <= 1000.0 => Ok(percent / 100.0),
        Some(0.0) => Err(format!(
            "`{key}`: found `{text}`, expected more than 0: without spare pages no superblock can \
             be cleaned"
        )),
        _ => Err(format!("`{key}`: found `{text}`, expected a percentage such as `7%`")),
    }
}

/// A ratio as its percentage.
pub fn percent_text(ratio: f64) -> String {
    let text = format!("{:.6}", 100.0 * ratio);
    format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Refuses unknown schemes and settings.
pub fn check_schemes(separations: &[Named], reclaims: &[Named]) -> Result<(), String> {
    for Named { name, pairs } in separations {
        separation::visit(name, pairs, Known).map_err(|error| error.to_string())?;
    }
    let geometry = Geometry::with_over_provisioning(1, 2, 1.0, 2);
    for Named { name, pairs } in reclaims {
        reclaim::by_name(name, pairs, &geometry, Seed(0)).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Accepts whatever has a name and good settings.
struct Known;

impl SeparationVisitor for Known {
    type Output = ();
    fn visit<S: Registered>(self, _: S::Settings) {}
}

/// Whether a separation reads the future, so that it is a bound and not a choice.
pub fn is_bound(named: &Named) -> bool {
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
