//! The control loop: measured -> partition -> quotas, the same in the simulator and in a live
//! cache.
//!
//! [`RequestMeter`] and [`SignalMeter`] are fed by requests, accesses and answers. At each interval
//! [`Control`] returns the quotas that a partitioner chose, and [`CacheDecider`] carries them out.
//! A live server, and a replay that continues from a snapshot of one, decide by a
//! [`RequestDecider`].
//! Units: blocks; nanoseconds on the decision clock, which the caller hands in as numbers.

mod control;
mod decider;
mod division;
mod hour_curves;
mod interval_curves;
mod meters;
pub mod tenancy;
mod trial;

pub use cachewright_curve::signal::Signals;
pub use cachewright_partition::Models;
pub use control::{ChurnTotals, Control, TenantUsage};
pub use decider::{CacheDecider, Decider, divide, standings};
pub use division::{DecisionHash, Division, QuotaChange, RequestDecider};
pub use hour_curves::{HourlyCurves, KeptCurve, KeptPoint};
pub use interval_curves::{CachePolicy, head_curves, interval_curves};
pub use meters::{AnswerTimes, BlockUse, RequestMeter, SignalMeter, SignalNeeds};
pub use tenancy::{ChannelTenancy, Presence, PresenceState};
pub use trial::{MakePolicy, SchemeTrial, TrialCounts, TrialDivision, TriedTenant};
