//! The control loop: measured -> partition -> quotas.
//!
//! For: one loop that the simulator and a live cache share. It is fed by requests, accesses and
//! answers, and at each interval returns the quotas that a partitioner chose. Must never know:
//! where requests come from, devices, files, stack files. Units: blocks; nanoseconds on the
//! decision clock, which the caller hands in as numbers.

mod answer_prices;
pub mod control;
pub mod decider;
mod engine_division;
mod interval_curves;
mod interval_steps;
pub mod kept_curves;
pub mod presence;
pub mod quota_churn;
pub mod request_meter;
mod shadow_partitions;
pub mod signal_meter;
pub mod standing;
pub mod tenancy;

pub use cachewright_curve::signal::Signals;
pub use cachewright_partition::Models;
pub use control::Control;
pub use decider::{CacheDecider, Decider};
pub use engine_division::{divide, standings};
pub use interval_curves::{CachePolicy, head_curves, interval_curves};
pub use kept_curves::{KeptCurve, KeptCurves, KeptPoint};
pub use presence::{Presence, PresenceState};
pub use quota_churn::ChurnTotals;
pub use request_meter::RequestMeter;
pub use signal_meter::{AnswerTimes, BlockUse, SignalMeter, SignalNeeds};
pub use standing::Standing;
pub use tenancy::ChannelTenancy;
