//! A case on one drive with a data cache: the drive of a job, and what it did, as results have it.
//!
//! For: stack files with `machine.system = "ssd"`. Must never know: how a drive works. Units: pages
//! of the drive unless a name says otherwise.

use super::flash::share;
use super::layout;
use crate::ExperimentError;
use crate::job::Job;
use crate::spec::StackSpec;
use cachewright_cache::{Quotas, WriteMode};
use cachewright_device::ssd::host::Port;
use cachewright_partition::layout::ChannelMap;
use cachewright_result::drive::{CachedDrive, LinkBusy};
use cachewright_result::flash::Flash;
use cachewright_system::Control;
use cachewright_system::event_loop::DriveTotals;
use cachewright_system::ssd::{AnyCachedDrive, DataCacheParams, DriveDescription, build};

/// A drive, the control loop of its cache, and the map of its channels.
type Controlled = (Box<dyn AnyCachedDrive>, Option<Control>, Option<ChannelMap>);

impl Job<'_> {
    /// The idle drive of the self. A job without a cache reads and writes flash only.
    pub(super) fn drive(
        &self,
        stack: &StackSpec,
        axes: &DataCacheParams,
    ) -> Result<Controlled, ExperimentError> {
        let spec = &self.case.spec;
        let refuse = |message| self.case.refuse(message);
        let (params, map) = match layout::grouped(self.case, stack).map_err(refuse)? {
            Some(grouped) => (grouped.params, Some(grouped.map)),
            None => (stack.backing.drive().map_err(refuse)?, None),
        };
        let tenants = spec.tenants.iter();
        let ports: Vec<Port> = tenants
            .map(|tenant| Port {
                queue_depth: params.queue_depth,
                weight: tenant.weight.round().clamp(1.0, 255.0) as u32,
            })
            .collect();
        let (control, quotas) = match self.only {
            Some(_) => (None, Quotas::Shared(self.capacity_blocks)),
            None => {
                let mut control = self.control()?;
                let quotas = control.first();
                (Some(control), quotas)
            }
        };
        let off = self.capacity_blocks == 0;
        let mode = if off { WriteMode::WriteAround } else { spec.cache.write };
        let axes = DataCacheParams { read_fill: axes.read_fill && !off, ..axes.clone() };
        let policy = &spec.cache.policy;
        let drive = build(&DriveDescription {
            params: &params,
            ports: &ports,
            policy: (&policy.name, &policy.pairs),
            code: self.case.caching.foreign.as_ref(),
            quotas: &quotas,
            mode,
            axes: &axes,
            seed: spec.seed.derive("ssd"),
        });
        let drive = drive.map_err(|error| match error {
            cachewright_system::ssd::BuildError::Policy(error) => {
                self.case.refuse(format!("`cache.policy`: {error}"))
            }
            cachewright_system::ssd::BuildError::Drive(error) => {
                self.case.refuse(format!("`device.ssd`: {error}"))
            }
        })?;
        let mut drive = drive;
        if let Some((control, selector)) =
            control.as_ref().and_then(|control| Some((control, control.victim_selector()?)))
        {
            drive.follow(control.total_blocks(), selector);
        }
        Ok((drive, control, map))
    }
}

/// What a drive that is the whole machine did.
pub(super) fn cached_drive(work: &DriveTotals, flash: Flash, end_ns: u64) -> CachedDrive {
    let cache = &work.cache;
    let [to_drive, to_host] = work.link_busy_ns.map(|busy_ns| share(busy_ns, end_ns));
    CachedDrive {
        flash,
        destaged_pages: cache.destaged_pages,
        read_filled_pages: cache.filled_pages,
        held_writes: cache.held_writes,
        given_up_pages: cache.given_up_pages,
        most_outgoing_bytes: cache.max_outgoing.0,
        link_busy: LinkBusy { to_drive, to_host },
    }
}
