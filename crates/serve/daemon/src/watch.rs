//! A server that is watched over HTTP.
//!
//! For: a status for each monitor that asks, between requests. Must never know: HTTP, what is in a
//! status. Units: nanoseconds.

use crate::changes::Member;
use crate::curves::TenantCurves;
use crate::error::LiveError;
use crate::monitor::{Monitor, local_address};
use crate::plan::LivePlan;
use crate::recordings::Recordings;
use crate::status::StatusMaker;
use cachewright_live::blocks::ServedVolume;
use cachewright_live::exports::Node;
use cachewright_live::io::Io;
use cachewright_live::io::system::SystemIo;
use std::net::SocketAddr;

/// A monitor, and what makes statuses for it.
pub struct Watch {
    monitor: Monitor,
    maker: StatusMaker,
}

/// Where the stack wants a monitor, if it does. Errors: others reach the address.
pub fn monitor_address(plan: &LivePlan) -> Result<Option<SocketAddr>, LiveError> {
    let text = plan.serve.monitor.as_ref();
    let address = text.map(|text| local_address(text)).transpose();
    address.map_err(|error| plan.refuse(format!("`serve.monitor`: {error}")))
}

impl Watch {
    /// The watch that the stack asks for, if it does.
    /// Errors: an address that others reach or that is taken; a goal that no hit ratio meets.
    pub fn start(
        plan: &LivePlan,
        served: &[ServedVolume],
        io: &SystemIo,
    ) -> Result<Option<Watch>, LiveError> {
        let Some(address) = monitor_address(plan)? else { return Ok(None) };
        let refuse = |error| plan.refuse(format!("`serve.monitor`: {error}"));
        let sizes: Vec<u64> = served.iter().map(|volume| volume.bytes).collect();
        let maker = StatusMaker::new(plan, &sizes, (io.name(), io.now_ns()))?;
        let monitor = Monitor::start(address).map_err(|error| refuse(error.to_string()))?;
        Ok(Some(Watch { monitor, maker }))
    }

    /// A line that says where the page is.
    pub fn described(&self) -> String {
        format!("monitor: http://{}/", self.monitor.address())
    }

    /// The server goes on by another stack, with volumes of these sizes.
    pub fn follow(&mut self, plan: &LivePlan, sizes: &[u64], members: &[Member]) {
        self.maker.follow(plan, sizes, members);
    }

    /// A tenant of this number is served otherwise.
    pub fn set_member(&mut self, tenant: usize, member: Member) {
        self.maker.set_member(tenant, member);
    }

    /// Another stack was taken over, or refused with this sentence.
    pub fn reloaded(&mut self, error: Option<String>) {
        self.maker.reloaded(error);
    }

    /// The times that 99 of 100 requests of each tenant are to keep, in nanoseconds.
    pub fn limits(&self) -> Vec<Option<u64>> {
        self.maker.limits().collect()
    }

    /// Hands over what is asked for: a status, the last hour. To be called some times a second.
    pub fn tick(&mut self, (node, recordings): (&mut Node, Option<&Recordings>), now_ns: u64) {
        self.maker.tick(node, now_ns);
        if self.monitor.wants_history() {
            self.monitor.publish_history(self.maker.history());
        }
        if self.monitor.is_wanted() {
            let curves = TenantCurves::last_hour(node.blocks_mut(), now_ns);
            self.monitor.publish(self.maker.status((node, recordings), curves, now_ns));
        }
    }
}
