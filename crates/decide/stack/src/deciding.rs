//! The keys of a stack that decide, with their values: what a snapshot of a live server's decisions
//! stands beside, so that a replay of another stack does not continue from it.
//!
//! All schemes stand with every setting. Keys of devices, traces and clients decide nothing.

use crate::stack::{MachineTables, ResolvedEntry, Stack};
use cachewright_partition::Models;
use cachewright_types::Value;
use cachewright_types::seed::mix;

/// Keys of `[cache]` that decide. The capacity stands in blocks.
const OF_CACHE: [&str; 10] = [
    "block",
    "policy",
    "partition",
    "workload",
    "characterize",
    "write",
    "trim",
    "shrink",
    "sequential_cutoff",
    "sequential_streams",
];
/// Keys of `[replay]` that decide.
const OF_REPLAY: [&str; 3] = ["interval", "hit_time", "miss_time"];
/// Keys of a tenant by which the cache is divided; they decide, and so does its name.
pub const DIVIDING: [&str; 7] = [
    "weight",
    "schedule",
    "sensitive",
    "goal_hit_ratio",
    "goal_latency",
    "goal_response",
    "goal_p99",
];

/// The models that decide, by what they are.
#[derive(Clone, Copy, Debug)]
pub struct DecidingModels<'a> {
    /// Those of the partitioner.
    pub partition: &'a Models,
    /// Those of the policy, by the kind of workload.
    pub policy: &'a [(String, Vec<u8>)],
    /// That of the characterizer.
    pub characterizer: Option<&'a [u8]>,
}

impl DecidingModels<'_> {
    /// A number that differs for different models, but for accidents.
    fn digest(self) -> u64 {
        let Models { each, later, joint } = self.partition;
        let partition = each.iter().chain(later.iter().flatten()).chain(joint);
        let policy = self.policy.iter().flat_map(|(kind, file)| [kind.as_bytes(), file.as_slice()]);
        let all = partition.map(Vec::as_slice).chain(policy).chain(self.characterizer);
        all.fold(1, |digest, bytes| mix(digest ^ digest_of(bytes)))
    }
}

fn digest_of(bytes: &[u8]) -> u64 {
    let word = |chunk: &[u8]| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    };
    bytes.chunks(8).fold(bytes.len() as u64, |digest, chunk| mix(digest ^ word(chunk)))
}

impl<M: MachineTables> Stack<M> {
    /// The keys that decide with their values as text, in one order for all stacks. Errors: a
    /// scheme's setting is refused.
    pub fn deciding(
        &self,
        capacity_blocks: u32,
        models: DecidingModels<'_>,
    ) -> Result<Vec<(String, String)>, String> {
        let mut found = vec![
            ("seed".to_owned(), self.seed.0.to_string()),
            ("cache.capacity".to_owned(), format!("{capacity_blocks} blocks")),
            ("models".to_owned(), format!("{:016x}", models.digest())),
        ];
        let ResolvedEntry::Table(tables) = self.resolved()? else { return Ok(found) };
        for (table, keys) in [("cache", &OF_CACHE[..]), ("replay", &OF_REPLAY)] {
            let own = tables.iter().find(|(name, _)| name == table);
            found.extend(own.into_iter().flat_map(|(_, own)| values(own, table, keys)));
        }
        for (name, entry) in &tables {
            let ResolvedEntry::List(tenants) = entry else { continue };
            for (number, tenant) in tenants.iter().enumerate() {
                let name = format!("{name}[{}]", number + 1);
                found.extend(values(tenant, &name, &["name"]));
                found.extend(values(tenant, &name, &DIVIDING));
            }
        }
        Ok(found)
    }
}

/// The values of some keys of a table; nothing for a key that has none.
fn values(table: &ResolvedEntry, name: &str, keys: &[&str]) -> Vec<(String, String)> {
    let ResolvedEntry::Table(entries) = table else { return Vec::new() };
    let value = |key: &&str| {
        let (_, entry) = entries.iter().find(|(own, _)| own == key)?;
        let ResolvedEntry::Value(Some(value)) = entry else { return None };
        let text = match value {
            Value::Text(text) => text.clone(),
            other => other.to_string(),
        };
        Some((format!("{name}.{key}"), text))
    };
    keys.iter().filter_map(value).collect()
}

/// The first key in which what is `found` differs from what is `expected`, with both values; an
/// empty text stands for none.
pub fn first_difference<'a>(
    found: &'a [(String, String)],
    expected: &'a [(String, String)],
) -> Option<(&'a str, &'a str, &'a str)> {
    let value = |of: &'a [(String, String)], key: &str| {
        of.iter().find(|(own, _)| own == key).map_or("", |(_, value)| value.as_str())
    };
    let keys = found.iter().chain(expected).map(|(key, _)| key.as_str());
    let mut both = keys.map(|key| (key, value(found, key), value(expected, key)));
    both.find(|(_, found, expected)| found != expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::Reader;
    use crate::stack::Rest;
    use std::path::Path;

    struct NoMachine;

    impl MachineTables for NoMachine {
        const TABLES: &'static [&'static str] = &["device"];

        fn read(_: &Reader<'_>, _: &Rest<'_>) -> Result<Option<NoMachine>, String> {
            Ok(None)
        }

        fn check(_: Option<&NoMachine>, _: &Rest<'_>) -> Result<(), String> {
            Ok(())
        }

        fn resolved(&self) -> Result<Vec<(&'static str, Value)>, String> {
            Ok(Vec::new())
        }
    }

    const TEXT: &str = "[cache]\ncapacity = \"8 blocks\"\npolicy = \"arc\"\n[replay]\n\
                        [[tenant]]\nname = \"a\"\ntrace = \"x\"\n[[tenant]]\ntrace = \"x\"\n";

    fn deciding(text: &str, file: &[u8]) -> Vec<(String, String)> {
        let stack: Stack<NoMachine> = Stack::parse(text, Path::new("s.toml"), &[]).unwrap();
        let partition = &Models { each: vec![file.to_vec()], ..Models::default() };
        let models = DecidingModels { partition, policy: &[], characterizer: None };
        stack.deciding(8, models).unwrap()
    }

    #[test]
    fn keys_that_decide_are_told_apart_and_others_are_not() {
        let known = deciding(TEXT, b"model");
        let differs = |from: &str, to: &str| {
            let text = TEXT.replace(from, to);
            assert_ne!(text, TEXT);
            let other = deciding(&text, b"model");
            let found = first_difference(&other, &known);
            found.map(|(key, found, expected)| format!("{key}: {found}, {expected}"))
        };
        assert_eq!(differs("trace = \"x\"", "trace = \"y\""), None);
        assert_eq!(differs("[replay]\n", "[replay]\nwindows = 7\n"), None);
        assert_eq!(
            differs("[replay]\n", "[replay]\ninterval = \"7s\"\n").as_deref(),
            Some("replay.interval: 7s, 2s")
        );
        assert_eq!(
            differs("\"arc\"", "\"lru\"").as_deref(),
            Some("cache.policy: { name = \"lru\" }, { name = \"arc\" }")
        );
        assert_eq!(
            differs("name = \"a\"", "name = \"b\"").as_deref(),
            Some("tenant[1].name: b, a")
        );
        let weighted = differs("name = \"a\"\n", "name = \"a\"\nweight = 2\n");
        assert_eq!(weighted.as_deref(), Some("tenant[1].weight: 2.0, 1.0"));
        let other = deciding(TEXT, b"other");
        assert_eq!(first_difference(&known, &other).map(|found| found.0), Some("models"));
        let one = TEXT.rsplit_once("[[tenant]]").unwrap().0;
        let fewer = deciding(one, b"model");
        let found = first_difference(&fewer, &known).unwrap();
        assert_eq!(found, ("tenant[2].name", "", "tenant2"));
    }
}
