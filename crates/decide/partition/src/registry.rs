//! The table of partitioners: one line per partitioner, read by all other code.
//!
//! For: names, sentences, sources, needs and settings of every partitioner. Must never know: any
//! caller. A new partitioner is one file and one line in `partitioners!` below.

use crate::Partitioner;
use crate::entry::{Entry, Registered};
use cachewright_types::registry::{settings, unknown};
use cachewright_types::{RegistryError, Seed, Value};

macro_rules! partitioners {
    ($($partitioner:ty),* $(,)?) => {
        cachewright_types::registry!("partitioner": $($partitioner),*);

        /// The partitioner registered as `name`, with `pairs` set over its defaults.
        pub fn boxed(
            name: &str,
            pairs: &[(String, Value)],
            tenants: usize,
            seed: Seed,
        ) -> Result<Box<dyn Partitioner>, RegistryError> {
            $(if <$partitioner as Registered>::ENTRY.name == name {
                let settings = settings("partitioner", <$partitioner>::ENTRY.name, pairs)?;
                return Ok(Box::new(<$partitioner>::new(&settings, tenants, seed)));
            })*
            Err(unknown("partitioner", name, &entries()))
        }
    };
}

partitioners! {
    crate::shared::SharedPool,
    crate::equal::Equal,
    crate::static_weights::Static,
    crate::scheduled::Scheduled,
    crate::hull::HullShares,
    crate::dp::Dp,
    crate::dp::response::DpResponse,
    crate::memshare::Memshare,
    crate::robinhood::RobinHood,
    crate::costpi::CostPi,
    crate::justitia::Justitia,
    crate::soft_qos::SoftQos,
    crate::soft_qos_x::SoftQosX,
    crate::icache::ICache,
    crate::icache_x::ICacheX,
    crate::mlcache::MlCache,
    crate::opt::Opt,
}
