//! The schemes of the five papers and ours: which keys of a stack file carry each.
//!
//! For: `list schemes`. Must never know: how a scheme decides. A scheme of this table is one or
//! more entries of the registries; a paper's scheme has a stack file that runs it.

use crate::cache::AUTO;

/// A scheme and how a stack file asks for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NamedScheme {
    /// The name that people use.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub doc: &'static str,
    /// The paper that describes it, or [`OURS`].
    pub source: &'static str,
    /// Keys of a stack file and the value of each, as after `--set`.
    pub keys: &'static [(&'static str, &'static str)],
    /// The stack file that runs it; empty where there is none.
    pub spec: &'static str,
}

/// The source of schemes that no paper describes.
pub const OURS: &str = "ours";

/// The division that oc-cache's paper begins with, as `lab/papers/oc-cache/setup.toml` has it.
const HULL_AHEAD: (&str, &str) =
    ("cache.partition", "{ name = \"hull\", ahead = true, own_policy = true, by_ratio = true }");

/// The papers' schemes in the order of their names, then ours.
pub const SCHEMES: [NamedScheme; 13] = [
    NamedScheme {
        name: "icache",
        doc: "a model per tenant predicts demands of a drive's data cache, which are divided",
        source: "Li, Sun, Qin, iCache (TCAD 2025)",
        keys: &[("cache.partition", "icache")],
        spec: "specs/icache.toml",
    },
    NamedScheme {
        name: "oc-cache",
        doc: "tenants have channels of their own, and hot blocks stay on them",
        source: "Wang et al., OC-Cache",
        keys: &[("cache.policy", "oc-smq"), ("cache.layout", "on-demand"), HULL_AHEAD],
        spec: "specs/oc-cache.toml",
    },
    NamedScheme {
        name: "rc-rnn",
        doc: "a recurrent model decides which requests enter the cache and how long they stay",
        source: "Ebrahimi et al., RC-RNN (IEEE TETC)",
        keys: &[("cache.policy", "rc-rnn")],
        spec: "specs/rc-rnn.toml",
    },
    NamedScheme {
        name: "shiro",
        doc: "a GRU and Q-learning separate flash pages by lifetime",
        source: "Sun et al., Shiro (extends DAC'23)",
        keys: &[("flash.separation", "shiro"), ("flash.reclaim", "adjusted-greedy")],
        spec: "specs/shiro.toml",
    },
    NamedScheme {
        name: "soft-qos",
        doc: "the smallest quotas that meet hit-ratio goals, read off curves fitted while running",
        source: "Patrick et al., soft-QoS-based cache partitioning",
        keys: &[("cache.partition", "soft-qos")],
        spec: "specs/soft-qos.toml",
    },
    NamedScheme {
        name: "auto",
        doc: "the partitioner and the policy that fit: for goals, response times, else misses",
        source: OURS,
        keys: &[("cache.policy", AUTO), ("cache.partition", AUTO)],
        spec: "",
    },
    NamedScheme {
        name: "icache-x",
        doc: "least mean slowdown, predicted from curves and response times measured in the run",
        source: OURS,
        keys: &[("cache.partition", "icache-x")],
        spec: "",
    },
    NamedScheme {
        name: "oc-cache-x",
        doc: "oc-cache that lends unused channels and swaps no hot blocks",
        source: OURS,
        keys: &[
            ("cache.policy", "{ name = \"oc-smq\", hot_share = 1.0 }"),
            ("cache.layout", "{ name = \"on-demand\", lend = true }"),
            HULL_AHEAD,
        ],
        spec: "",
    },
    NamedScheme {
        name: "rc-x",
        doc: "admits and evicts by the worth of space for a block, from life tables learned online",
        source: OURS,
        keys: &[("cache.policy", "rc-x")],
        spec: "",
    },
    NamedScheme {
        name: "shiro-x",
        doc: "a life table learned from each page's past separates written and moved pages",
        source: OURS,
        keys: &[("flash.separation", "shiro-x"), ("flash.reclaim", "death-rate")],
        spec: "",
    },
    NamedScheme {
        name: "soft-qos-x",
        doc: "goals first, by curves measured in the run; the rest where curves fall most",
        source: OURS,
        keys: &[("cache.partition", "soft-qos-x")],
        spec: "",
    },
    NamedScheme {
        name: "opt",
        doc: "a bound: least mean slowdown by the response times of the interval to come",
        source: OURS,
        keys: &[("cache.partition", "opt")],
        spec: "",
    },
    NamedScheme {
        name: "shiro-known",
        doc: "a bound: shiro with the true class of every rewrite",
        source: OURS,
        keys: &[("flash.separation", "shiro-known")],
        spec: "",
    },
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::{apply, read};
    use crate::{Scheme, document};
    use cachewright_types::declare::ValueKind;

    fn registry(key: &str) -> Vec<&'static str> {
        fn names<N>(
            entries: Vec<&'static cachewright_types::registry::Entry<N>>,
        ) -> Vec<&'static str> {
            entries.iter().map(|entry| entry.name).collect()
        }
        match key {
            "cache.policy" => names(cachewright_policy::registry::entries()),
            "cache.partition" => names(cachewright_partition::registry::entries()),
            "cache.layout" => names(cachewright_partition::layout::entries()),
            "flash.separation" => names(cachewright_ftl::separation::entries()),
            "flash.reclaim" => names(cachewright_ftl::reclaim::entries()),
            _ => Vec::new(),
        }
    }

    #[test]
    fn every_value_is_an_entry_of_the_registry_of_its_key() {
        for NamedScheme { name, keys, .. } in SCHEMES {
            assert!(!keys.is_empty(), "{name}");
            for (key, value) in keys {
                let scheme = Scheme::read(&read(value)).unwrap();
                let known = scheme.name == AUTO || registry(key).contains(&scheme.name.as_str());
                assert!(known, "{name}: {key} = {value}");
                let mut stack = document::parse("[cache]\n[flash]\n").unwrap();
                assert_eq!(apply(&mut stack, key, value), Ok(()), "{name}");
            }
        }
    }

    #[test]
    fn each_name_stands_once_and_each_paper_has_a_file() {
        for (at, scheme) in SCHEMES.iter().enumerate() {
            assert!(SCHEMES[..at].iter().all(|other| other.name != scheme.name));
            let file = format!("specs/{}.toml", scheme.name);
            let expected = if scheme.source == OURS { "" } else { &file };
            assert_eq!(scheme.spec, expected);
        }
    }
}
