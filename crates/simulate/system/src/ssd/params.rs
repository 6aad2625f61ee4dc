//! How the data cache of a drive treats pages: what decides response time as a function of the
//! cache's size, beside capacity, policy and write mode, which are those of every cache.
//!
//! The defaults are MQSim's data cache (`Data_Cache_Manager_Flash_Advanced`; Tavakkol et al.,
//! FAST'18).

use cachewright_device::ssd::params::AddressableBytes;
use cachewright_types::declare::Declared;
use cachewright_types::{Nanos, SettingError, Value, choices, declare};

choices! {
    /// When a dirty page is written to flash.
    pub enum WriteBack {
        /// At once, unless it was written already within the window.
        Eager = "eager",
        /// When it leaves the cache.
        OnEviction = "on-eviction",
        /// The pages longest dirty, when too many are.
        Watermark = "watermark",
    }
}

choices! {
    /// What a write waits for beside its own data.
    pub enum WriteWaits {
        /// Nothing: it is done when its data are in memory.
        Never = "never",
        /// The dirty pages that it pushed out: it is done when flash has them.
        Victim = "victim",
    }
}

choices! {
    /// How room changes hands when the cache is divided anew.
    pub enum Handover {
        /// A tenant above its target gives up its least recent pages, at most `shrink_depth` of
        /// them on their way to flash at a time; others grow as room is free.
        Paced = "paced",
        /// All pages leave and all quotas hold at once: memory holds more than its size until what
        /// leaves is in flash.
        AtOnce = "at-once",
    }
}

declare! {
    /// How the data cache of a drive treats pages.
    pub struct DataCacheParams {
        "data cache" {
            /// pages read from flash enter the cache
            read_fill: bool = false, "-"; "MQSim WRITE_CACHE: no; WRITE_READ_CACHE: yes";
            /// when a dirty page is written to flash
            write_back: WriteBack = WriteBack::Eager, "-"; "MQSim, kept";
            /// what a write waits for beside its own data
            write_waits: WriteWaits = WriteWaits::Never, "-"; "MQSim, kept";
            /// a page written again within this time is hot and waits for eviction (eager)
            hot_window: Nanos = Nanos(1_000_000_000), "time", 0 ..= 1e15; "MQSim, kept";
            /// share of dirty pages above which write-back begins (watermark)
            dirty_high: f64 = 0.5, "ratio", 0.0 ..= 1.0; "typical";
            /// share of dirty pages at which it ends (watermark)
            dirty_low: f64 = 0.4, "ratio", 0.0 ..= 1.0; "typical";
            /// a page stays in the cache once it is written to flash
            keep_destaged: bool = false, "-"; "MQSim, kept";
            /// bytes on their way to flash above which writes wait; auto is a page of every plane
            back_pressure: AddressableBytes = AddressableBytes::Auto, "bytes"; "MQSim, kept";
            /// how room changes hands when the cache is divided anew
            handover: Handover = Handover::Paced, "-"; "iCache, section IV-F";
            /// pages that a tenant gives up to flash at a time (paced)
            shrink_depth: u32 = 8, "pages", 1 ..= 65_536; "background pace: one per channel";
        }
    }
}

impl DataCacheParams {
    /// Defaults with `pairs` set over them, checked. Errors: a key or value is refused.
    pub fn checked(pairs: &[(String, Value)]) -> Result<DataCacheParams, SettingError> {
        let params = DataCacheParams::from_pairs(pairs)?;
        params.check()?;
        Ok(params)
    }

    /// Checks the values together. Errors: marks of dirty pages in the wrong order.
    pub fn check(&self) -> Result<(), SettingError> {
        if self.dirty_low <= self.dirty_high {
            return Ok(());
        }
        Err(SettingError {
            key: "dirty_low".to_owned(),
            found: format!("{:?}", self.dirty_low),
            expected: format!("at most dirty_high = {}", self.dirty_high),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_in_the_wrong_order_are_refused() {
        let pairs = [("dirty_low".to_owned(), Value::Float(0.6))];
        let words = DataCacheParams::checked(&pairs).unwrap_err().to_string();
        assert_eq!(words, "`dirty_low`: found 0.6, expected at most dirty_high = 0.5");
        let pairs = [("write_back".to_owned(), Value::Text("on eviction".into()))];
        let words = DataCacheParams::checked(&pairs).unwrap_err().to_string();
        assert!(words.ends_with("nearest is `on-eviction`"), "{words}");
    }
}
