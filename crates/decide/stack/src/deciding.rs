//! The keys of a stack that decide, with their values: what a snapshot of a live server's decisions
//! stands beside, so that a replay of another stack does not continue from it.
//!
//! All schemes stand with every setting. Keys of devices, traces and clients decide nothing.

use crate::stack::{MachineTables, ResolvedEntry, Stack};
use cachewright_partition::Models;
use cachewright_types::seed::mix;
use cachewright_types::{TenantId, Value};

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

/// Stands with a tenant that a reload removed, in the place of the keys by which it divided.
const REMOVED: &str = "removed";

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
    /// The keys that decide with their values as text, in one order for all stacks; tenants by the
    /// numbers that `tenants` gives them. Errors: a scheme's setting is refused.
    pub fn deciding(
        &self,
        capacity_blocks: u32,
        models: DecidingModels<'_>,
        tenants: &ServerTenants,
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
        let own = tables.iter().find_map(|(name, entry)| match entry {
            ResolvedEntry::List(own) if name == "tenant" => Some(&own[..]),
            _ => None,
        });
        for (number, tenant) in tenants.0.iter().enumerate() {
            let table = format!("tenant[{}]", number + 1);
            let Some(place) = tenant.place else {
                found.push((format!("{table}.name"), tenant.name.clone()));
                found.push((format!("{table}.{REMOVED}"), "true".to_owned()));
                continue;
            };
            let Some(own) = own.and_then(|own| own.get(place)) else { continue };
            found.extend(values(own, &table, &["name"]));
            found.extend(values(own, &table, &DIVIDING));
        }
        Ok(found)
    }
}

/// The tenants of a server by their numbers: those of a stack, and those that a reload removed,
/// whose numbers are not given again. Behind reloads the order may be another than the stack's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerTenants(Vec<NumberedTenant>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct NumberedTenant {
    name: String,
    /// Its place in the stack; none of one that was removed.
    place: Option<usize>,
}

impl ServerTenants {
    /// Tenants with their places in a stack; those without were removed.
    pub fn new(tenants: impl IntoIterator<Item = (String, Option<usize>)>) -> ServerTenants {
        let numbered = |(name, place)| NumberedTenant { name, place };
        ServerTenants(tenants.into_iter().map(numbered).collect())
    }

    /// Those of the settings beside a server's state, as tenants of a stack that has tenants of
    /// these `names`. Errors: the stack has others than those that the server served, in words.
    pub fn of_settings(
        settings: &[(String, String)],
        names: &[&str],
    ) -> Result<ServerTenants, String> {
        let value = |key: String| settings.iter().find(|(own, _)| *own == key).map(|own| &own.1);
        let mut tenants = Vec::new();
        while let Some(name) = value(format!("tenant[{}].name", tenants.len() + 1)) {
            let was_removed = value(format!("tenant[{}].{REMOVED}", tenants.len() + 1)).is_some();
            let place = names.iter().position(|own| own == name).filter(|_| !was_removed);
            tenants.push((NumberedTenant { name: name.clone(), place }, was_removed));
        }
        let served = tenants.iter().filter(|(_, was_removed)| !was_removed);
        let is_same = served.clone().count() == names.len()
            && served.clone().all(|(tenant, _)| tenant.place.is_some());
        if !is_same {
            let expected: Vec<&str> = served.map(|(tenant, _)| tenant.name.as_str()).collect();
            return Err(format!(
                "`tenant.name`: found {}, expected {}, which the server served",
                quoted(names),
                quoted(&expected)
            ));
        }
        Ok(ServerTenants(tenants.into_iter().map(|(tenant, _)| tenant).collect()))
    }

    /// How many numbers are given.
    pub fn count(&self) -> usize {
        self.0.len()
    }

    /// The name of each.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|tenant| tenant.name.as_str()).collect()
    }

    /// The place of each in the stack; none of those that were removed.
    pub fn places(&self) -> Vec<Option<usize>> {
        self.0.iter().map(|tenant| tenant.place).collect()
    }

    /// Which were removed.
    pub fn absent(&self) -> Vec<bool> {
        self.0.iter().map(|tenant| tenant.place.is_none()).collect()
    }

    /// The number of each tenant of the stack.
    pub fn numbers(&self) -> Vec<TenantId> {
        let numbered = self.0.iter().enumerate();
        let mut served: Vec<(usize, TenantId)> = numbered
            .filter_map(|(number, tenant)| Some((tenant.place?, TenantId(number as u16))))
            .collect();
        served.sort_unstable_by_key(|(place, _)| *place);
        served.into_iter().map(|(_, number)| number).collect()
    }
}

/// Names as a list in words.
fn quoted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
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
        let own = stack.tenants.iter().enumerate();
        let tenants = own.map(|(place, tenant)| (tenant.name.clone(), Some(place)));
        stack.deciding(8, models, &ServerTenants::new(tenants)).unwrap()
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

    #[test]
    fn tenants_have_the_numbers_of_the_server_whatever_their_order() {
        let served = [("a", Some(0)), ("gone", None), ("tenant2", Some(1))];
        let served = served.map(|(name, place)| (name.to_owned(), place));
        let server = ServerTenants::new(served);
        let stack: Stack<NoMachine> = Stack::parse(TEXT, Path::new("s.toml"), &[]).unwrap();
        let models =
            DecidingModels { partition: &Models::default(), policy: &[], characterizer: None };
        let settings = stack.deciding(8, models, &server).unwrap();
        let value = |key: &str| {
            settings.iter().find(|(own, _)| own == key).map(|(_, value)| value.as_str())
        };
        assert_eq!(value("tenant[2].name").zip(value("tenant[2].removed")), Some(("gone", "true")));
        assert_eq!((value("tenant[2].weight"), value("tenant[3].name")), (None, Some("tenant2")));

        let other = ServerTenants::of_settings(&settings, &["tenant2", "a"]).unwrap();
        assert_eq!(other.places(), [Some(1), None, Some(0)]);
        assert_eq!(other.numbers(), [TenantId(2), TenantId(0)]);
        assert_eq!((other.absent(), other.names()), (vec![false, true, false], server.names()));
        assert_eq!(ServerTenants::of_settings(&settings, &["a", "tenant2"]).unwrap(), server);
        for names in [&["a"][..], &["a", "gone"], &["a", "gone", "tenant2"], &["a", "tenant2", "x"]]
        {
            let error = ServerTenants::of_settings(&settings, names).unwrap_err();
            assert!(error.ends_with("expected `a`, `tenant2`, which the server served"), "{error}");
        }
        // The name of one that was removed may be given again.
        let again = [("a", None), ("b", Some(0)), ("a", Some(1))];
        let again = ServerTenants::new(again.map(|(name, place)| (name.to_owned(), place)));
        let text = TEXT
            .replace("name = \"a\"", "name = \"b\"")
            .replace("[[tenant]]\ntrace", "[[tenant]]\nname = \"a\"\ntrace");
        let stack: Stack<NoMachine> = Stack::parse(&text, Path::new("s.toml"), &[]).unwrap();
        let settings = stack.deciding(8, models, &again).unwrap();
        let found = ServerTenants::of_settings(&settings, &["b", "a"]).unwrap();
        assert_eq!((found.numbers(), found), (vec![TenantId(1), TenantId(2)], again));
    }
}
