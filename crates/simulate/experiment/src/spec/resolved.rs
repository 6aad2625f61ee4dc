//! A stack file with every default filled in, as JSON.
//!
//! For: `check`, the result file and telling cases apart. Must never know: who reads it.

use super::{
    FlashSpec, Goal, JudgeSpec, KindsSpec, Named, NoiseSpec, Spec, TenantSpec, flash, layout,
    manner,
};
use cachewright_layout::registry::setting_specs as layout_settings;
use cachewright_policy::foreign::is_foreign;
use cachewright_trace::{Clock, OnBadRecord};
use cachewright_types::{Seed, SettingSpec};
use serde_json::{Map, Value, json};

impl Spec {
    /// Everything, resolved: schemes with all their settings, sizes and times with units. Errors:
    /// a scheme's setting is refused.
    pub fn resolved(&self) -> Result<Value, String> {
        let tenants: Vec<Value> = self.tenants.iter().map(tenant).collect();
        let mut whole = json!({
            "name": self.name,
            "seed": self.seed.0,
            "cache": {
                "capacity": self.cache.capacity.exact(),
                "block": self.cache.block.to_string(),
                "policy": policy(&self.cache.policy)?,
                "partition": partition(&self.cache.partition)?,
                "model": self.cache.model.as_ref().map(|model| &model.text),
                "models": models(&self.cache.kinds),
                "workload": self.cache.kinds.first,
                "characterize": self.cache.kinds.judge.as_ref().map(judge),
                "layout": scheme(&self.cache.layout, layout_settings(&self.cache.layout.name)),
                "write": self.cache.write.name(),
                "trim": if self.cache.trim { "drop" } else { "ignore" },
            },
            "replay": {
                "loop": if self.replay.closed { "closed" } else { "open" },
                "clock": if self.replay.clock == Clock::Common { "common" } else { "own" },
                "blocks": if self.replay.unit { "unit" } else { "split" },
                "interval": self.replay.interval.exact(),
                "windows": self.replay.windows,
                "warmup": self.replay.warmup.exact(),
                "stop": self.replay.stop.map(|time| time.exact()),
                "throughput_window": self.replay.throughput_window.exact(),
                "queue_depth": self.replay.queue_depth,
                "think_time": self.replay.think_time.exact(),
                "hit_time": self.replay.hit_time.exact(),
                "miss_time": self.replay.miss_time.exact(),
                "profile_share": self.replay.profile_share,
                "curves": self.replay.curves,
                "max_accesses": self.replay.max_accesses,
            },
            "tenant": tenants,
        });
        if let Some(given) = &self.flash {
            whole["flash"] = drive(given);
        }
        if let Some(stack) = &self.stack {
            let [devices, machine] = stack.resolved()?;
            whole["device"] = devices;
            whole["machine"] = machine;
        }
        Ok(whole)
    }
}

/// A characterizer with its settings, its model and how often it is asked.
fn judge(judge: &JudgeSpec) -> Value {
    let specs = cachewright_characterize::registry::setting_specs(&judge.named.name);
    let mut whole = scheme(&judge.named, specs);
    whole["model"] = judge.model.text.clone().into();
    whole["every"] = judge.every.exact().into();
    whole
}

/// Models by kind.
fn models(kinds: &KindsSpec) -> Value {
    let files = kinds.files.iter();
    Value::Object(files.map(|(kind, file)| (kind.clone(), json!(file.text))).collect())
}

fn tenant(tenant: &TenantSpec) -> Value {
    let (ratio, latency) = match tenant.goal {
        Some(Goal::HitRatio(ratio)) => (Some(ratio), None),
        Some(Goal::Latency(time)) => (None, Some(time.exact())),
        None => (None, None),
    };
    let skip = tenant.open.on_bad_record == OnBadRecord::Skip;
    let mut whole = json!({
        "name": tenant.name,
        "trace": tenant.trace,
        "format": tenant.open.format,
        "volume": tenant.volume,
        "time_scale": tenant.time_scale,
        "start": tenant.start.exact(),
        "stop": tenant.stop.map(|stop| stop.text()),
        "sort": tenant.sort,
        "on_bad_record": if skip { "skip" } else { "fail" },
        "max_request": tenant.open.max_request.exact(),
        "weight": tenant.weight,
        "channels": tenant.channels.as_ref().map(layout::wish_json),
        "model": tenant.model.as_ref().map(|model| &model.text),
        "sensitive": tenant.sensitive,
        "goal_hit_ratio": ratio,
        "goal_latency": latency,
        "options": tenant.open.format_options,
        "queue_depth": tenant.queue_depth,
        "think_time": tenant.think_time.exact(),
        "pauses": if tenant.recorded_pauses { "recorded" } else { "think-time" },
        "noise": tenant.noise.map(NoiseSpec::json),
        "repeat": tenant.repeat,
        "operation": manner::operation_text(tenant.operation),
        "sample": flash::percent_text(tenant.sample),
        "request": tenant.request.map(|bytes| bytes.exact()),
    });
    if !tenant.model_updates.is_empty() {
        let updates = tenant.model_updates.iter().map(|one| &one.text);
        whole["model_updates"] = json!(updates.collect::<Vec<_>>());
    }
    whole
}

/// The drive; its schemes were checked when the file was read.
fn drive(flash: &FlashSpec) -> Value {
    let (separation, reclaim) = (&flash.separation, &flash.reclaim);
    let capacity = flash.capacity.map_or("auto".to_owned(), |capacity| capacity.exact());
    let separation_settings = cachewright_ftl::separation::setting_specs(&separation.name);
    let reclaim_settings = cachewright_ftl::reclaim::setting_specs(&reclaim.name);
    json!({
        "separation": scheme(separation, separation_settings),
        "reclaim": scheme(reclaim, reclaim_settings),
        "over_provisioning": flash::percent_text(flash.over_provisioning),
        "superblock": flash.superblock.exact(),
        "page": flash.page.to_string(),
        "capacity": capacity,
        "reserve": flash.reserve,
        "trim_evicted": flash.trim_evicted,
    })
}

fn policy(named: &Named) -> Result<Value, String> {
    cachewright_policy::registry::boxed(&named.name, &named.pairs, 0, Seed(0))
        .map_err(|error| format!("`cache.policy`: {error}"))?;
    let mut whole = scheme(named, cachewright_policy::registry::setting_specs(&named.name));
    if is_foreign(&named.name) {
        // Only the code knows its defaults.
        named.pairs.iter().for_each(|(key, given)| whole[key] = value(given));
    }
    Ok(whole)
}

fn partition(named: &Named) -> Result<Value, String> {
    cachewright_partition::boxed(&named.name, &named.pairs, 1, Seed(0))
        .map_err(|error| format!("`cache.partition`: {error}"))?;
    Ok(scheme(named, cachewright_partition::registry::setting_specs(&named.name)))
}

fn value(given: &cachewright_types::Value) -> Value {
    match given {
        cachewright_types::Value::Int(number) => (*number).into(),
        cachewright_types::Value::Float(number) => (*number).into(),
        cachewright_types::Value::Bool(flag) => (*flag).into(),
        cachewright_types::Value::Text(text) => text.clone().into(),
    }
}

/// A scheme's name and all its settings: the given ones, checked before, over the defaults.
fn scheme(named: &Named, specs: Option<Vec<SettingSpec>>) -> Value {
    let mut map = Map::new();
    map.insert("name".to_owned(), named.name.clone().into());
    for spec in specs.unwrap_or_default() {
        let given = named.pairs.iter().rev().find(|(key, _)| key == spec.name);
        let value = match given {
            Some((_, given)) => self::value(given),
            None => spec.default.into(),
        };
        map.insert(spec.name.to_owned(), value);
    }
    Value::Object(map)
}
