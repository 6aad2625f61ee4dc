//! What the tests of stores share: a small store over any device, and replaying commands on it.

use cachewright_device::store::{LogStore, StoreError, StoreLayer, StoreSettings};
use cachewright_device::{AnyDevice, Command, Completion, Device};
use cachewright_ftl::layer::Layer;
use cachewright_ftl::reclaim::{self, Named};
use cachewright_ftl::separation::{self, Registered, SeparationVisitor};
use cachewright_ftl::{Ftl, FtlError, Geometry, Space};
use cachewright_types::Value;
use cachewright_types::declare::Declared;
use cachewright_types::{Bytes, Nanos, Seed};

/// Bytes of a page.
pub const PAGE: u64 = 4096;

/// The size of a small store and its schemes.
#[derive(Clone, Copy, Debug)]
pub struct Shape<'a> {
    pub logical_pages: u32,
    pub segment_pages: u32,
    pub segments: u32,
    pub page: u64,
    pub separation: &'a str,
    pub reclaim: &'a str,
}

impl Shape<'_> {
    pub fn geometry(&self) -> Geometry {
        let (blocks, reserve_blocks) = (self.segments, 2);
        Geometry {
            logical_pages: self.logical_pages,
            block_pages: self.segment_pages,
            space: Space::Fixed { blocks, reserve_blocks, idle_blocks: reserve_blocks },
        }
    }

    /// The translation layer, empty.
    pub fn layer(&self) -> Result<Box<dyn Layer>, FtlError> {
        let geometry = self.geometry();
        let reclaim = reclaim::by_name(self.reclaim, &[], &geometry, Seed(2))?;
        separation::visit(self.separation, &[], Making { geometry, reclaim })?
    }
}

struct Making {
    geometry: Geometry,
    reclaim: Named,
}

impl SeparationVisitor for Making {
    type Output = Result<Box<dyn Layer>, FtlError>;

    fn visit<S: Registered>(self, settings: S::Settings) -> Self::Output {
        let scheme = S::new(&self.geometry, &settings, Seed(1));
        Ok(Box::new(Ftl::new(self.geometry, scheme, self.reclaim)?))
    }
}

/// A store with some settings given as text, which follows its pages.
pub fn store(
    inner: AnyDevice,
    shape: &Shape<'_>,
    pairs: &[(&str, &str)],
) -> Result<LogStore, StoreError> {
    let mut settings = StoreSettings::default();
    for (key, text) in pairs {
        settings.set(key, &Value::read(text)).unwrap();
    }
    let (layer, geometry, page) = (shape.layer()?, shape.geometry(), Bytes(shape.page));
    let mut store = LogStore::new(inner, StoreLayer { layer, geometry, page }, &settings)?;
    store.follow();
    Ok(store)
}

/// Submits commands at their times and runs to the end, with an audit at every step; the
/// completions in their order.
pub fn replay(store: &mut LogStore, commands: &[(u64, Command)]) -> Vec<Completion> {
    let (mut done, mut now) = (Vec::new(), 0);
    let mut commands = commands.iter().copied().peekable();
    loop {
        let due = store.next_due().map(|due| due.0);
        match (due, commands.peek()) {
            (None, None) => break,
            (Some(due), next) if next.is_none_or(|(time, _)| due <= *time) => {
                assert!(due >= now, "an event in the past");
                now = due;
                store.advance(Nanos(due), &mut done);
            }
            (_, Some((time, command))) => {
                now = *time;
                store.submit(Nanos(now), *command);
                commands.next();
            }
            (Some(_), None) => {}
        }
        assert_eq!(store.audit(), Ok(()), "at {now} ns");
    }
    assert_eq!(store.outstanding(), 0);
    for one in &done {
        assert_eq!(one.spent.total_ns(), one.finished.0 - one.submitted.0, "{one:?}");
    }
    done
}
