//! The server of blocks that a plan describes, on devices of any kind: those of this machine, or
//! models of devices in a rehearsal.

use crate::devices::{SPARE_SEGMENTS, group_blocks, unsynced};
use crate::error::LiveError;
use crate::history::Ahead;
use crate::plan::{LaidOut, LivePlan};
use cachewright_cache::Cache;
use cachewright_live::blocks::{
    BlockServer, Division, RestoreError, Restored, ServedVolume, ServerParts,
};
use cachewright_live::front::BlockService;
use cachewright_live::io::{FileId, Io};
use cachewright_live::log::{DeviceSet, OpenSet, RecoveredLog};
use cachewright_policy::Policy;
use cachewright_types::TenantId;

/// What a plan says of a server, checked against a set of devices. Nothing is written yet.
pub struct PlannedServer {
    laid_out: LaidOut,
    cache: Cache<Box<dyn Policy>>,
    division: Option<Division>,
}

impl PlannedServer {
    /// The server of a plan on a set, whose devices the stack lists as `listed`; `ahead` is what
    /// was taken from histories. Errors: a setting is refused, or the devices do not suffice.
    pub fn new(
        plan: &LivePlan,
        set: &DeviceSet,
        listed: &[FileId],
        ahead: &[Ahead],
    ) -> Result<PlannedServer, LiveError> {
        let laid_out = plan.layout(set, listed, ahead)?;
        let cache = plan.cache(ahead, &laid_out.limits)?;
        let division = plan.division(ahead, &laid_out.limits)?;
        Ok(PlannedServer { laid_out, cache, division })
    }

    /// Which devices hold which tenants' blocks.
    pub fn laid_out(&self) -> &LaidOut {
        &self.laid_out
    }

    /// The server, with what recovery found in its cache. It divides the cache while it serves, and
    /// keeps curves, as the stack wants it. Errors: a device fails, or curves cannot be kept.
    pub fn open(
        self,
        plan: &LivePlan,
        io: &mut impl Io,
        set: &OpenSet,
        volumes: Vec<ServedVolume>,
        found: RecoveredLog,
    ) -> Result<(BlockServer, Restored), LiveError> {
        let parts = ServerParts {
            cache: self.cache,
            open: set.clone(),
            group_blocks: group_blocks(&set.set),
            spare_segments: SPARE_SEGMENTS,
            cleaning: plan.cleaning(),
            layout: self.laid_out.devices,
            volumes,
        };
        let opened = BlockServer::open(io, parts, found);
        let (mut blocks, restored) = opened.map_err(|error| match error {
            RestoreError::Unsynced { tenant, error } => {
                unsynced(&plan.volumes[tenant].backing, error)
            }
            error => LiveError::Failed(error.to_string()),
        })?;
        blocks.set_background(plan.background());
        blocks.set_memory(plan.serve.memory.0);
        blocks.cut_off(plan.cutoff());
        self.division.into_iter().for_each(|division| blocks.divide_by(division));
        blocks.keep_curves(io.now_ns(), plan.kept_curves()?);
        Ok((blocks, restored))
    }
}

/// The server with what is kept of its clients, who may do what the plan says.
pub fn capped_service(plan: &LivePlan, blocks: BlockServer) -> BlockService {
    let mut service = BlockService::new(blocks, plan.volumes.len());
    for tenant in 0..plan.volumes.len() {
        service.clients.cap(TenantId(tenant as u16), plan.caps(tenant));
    }
    service
}
