//! What a key needs of the rest of the file.
//!
//! For: one matcher of declared needs for every table. Must never know: any key.

use crate::reader::Reader;
use cachewright_types::declare::Declared;

/// A need and what a file has that meets it.
const NEEDS: [(&str, &str); 4] = [
    ("devices", "`[device]` tables"),
    ("closed loop", "`replay.loop = \"closed\"`"),
    ("devices or live", "`[device]` tables or `serve.devices`"),
    ("devices or closed loop", "`[device]` tables or `replay.loop = \"closed\"`"),
];

/// What a file offers.
#[derive(Clone, Copy, Debug)]
pub struct Offers {
    /// It has devices.
    pub devices: bool,
    /// Requests wait for answers.
    pub closed: bool,
    /// It has devices of a live server.
    pub live: bool,
}

impl Offers {
    fn meets(self, need: &str) -> bool {
        match need {
            "devices" => self.devices,
            "closed loop" => self.closed,
            "devices or live" => self.devices || self.live,
            "devices or closed loop" => self.devices || self.closed,
            _ => false,
        }
    }

    /// Refuses a key of a table that is not at its default and needs what the file does not offer.
    pub fn check<T: Declared>(self, reader: &Reader<'_>, table: &T) -> Result<(), String> {
        for (key, (name, value)) in T::keys().iter().zip(table.values()) {
            let unmet = |need: &&str| !need.is_empty() && !self.meets(need);
            let missing: Vec<&str> = key.needs.split(", ").filter(unmet).collect();
            if missing.is_empty() || value == key.default {
                continue;
            }
            let word = |need: &&str| {
                NEEDS.iter().find(|(name, _)| name == need).map(|(_, wanted)| *wanted)
            };
            let wanted: Vec<&str> = missing.iter().filter_map(word).collect();
            let (key, missing) = (reader.key(name), missing.join(" and "));
            let wanted = wanted.join(" and ");
            return Err(format!("`{key}`: found without {missing}, expected {wanted} with it"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::ChannelWish;
    use crate::tables::{CacheTable, FlashTable, NoiseTable, ReplayTable, TenantTable, TopTable};
    use cachewright_partition::layout::Wish;
    use cachewright_types::Nanos;

    #[test]
    fn every_declared_need_is_known() {
        let tables = [
            TopTable::keys(),
            CacheTable::keys(),
            ReplayTable::keys(),
            FlashTable::keys(),
            TenantTable::keys(),
            NoiseTable::keys(),
        ];
        for key in tables.iter().flatten().filter(|key| !key.needs.is_empty()) {
            for need in key.needs.split(", ") {
                assert!(NEEDS.iter().any(|(name, _)| *name == need), "{}: {need}", key.name);
            }
        }
    }

    #[test]
    fn an_unmet_need_is_refused_with_what_would_meet_it() {
        let table = TenantTable { repeat: true, ..TenantTable::default() };
        let reader = Reader::new("tenant[1]", None);
        let check =
            |devices, closed| Offers { devices, closed, live: false }.check(&reader, &table);
        assert_eq!([check(true, true), check(false, true)], [Ok(()), Ok(())]);
        let words = "`tenant[1].repeat`: found without closed loop, expected `replay.loop = \
                     \"closed\"` with it";
        assert_eq!(check(true, false), Err(words.to_owned()));
        let table = TenantTable { channels: Some(ChannelWish(Wish::Count(1))), ..table };
        let offers = Offers { devices: false, closed: true, live: false };
        let error = offers.check(&reader, &table).unwrap_err();
        assert!(error.contains("`[device]` tables or `serve.devices`"), "{error}");
        assert_eq!(Offers { live: true, ..offers }.check(&reader, &table), Ok(()));
        let table = ReplayTable { throughput_window: Nanos(1_000_000), ..ReplayTable::default() };
        let check =
            |devices, closed| Offers { devices, closed, live: false }.check(&reader, &table);
        assert_eq!([check(true, false), check(false, true)], [Ok(()), Ok(())]);
        let error = check(false, false).unwrap_err();
        assert!(error.contains("`[device]` tables or `replay.loop = \"closed\"`"), "{error}");
    }
}
