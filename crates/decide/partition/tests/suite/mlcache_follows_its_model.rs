//! `mlcache` with models: shares by softmax, silence, what it refuses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_curve::signal::{BINS, TenantSignals};
use cachewright_model::NetworkKind;
use cachewright_partition::mlcache::{MlCache, MlCacheSettings, input_names, inputs};
use cachewright_partition::{CacheDivision, Models, Partitioner, Registered, TenantView};
use cachewright_testkit::models::{constant_model, small_model};
use cachewright_types::Seed;

fn learned(floor_blocks: u32, file: Vec<u8>) -> MlCache {
    let mut mlcache = MlCache::new(&MlCacheSettings { floor_blocks }, 2, Seed(1));
    mlcache.learn(&Models { joint: Some(file), ..Models::default() }).unwrap();
    mlcache
}

fn divide(mlcache: &mut MlCache, reuse: [Option<&[u32; BINS]>; 2], total: u32) -> CacheDivision {
    let view = |reuse| {
        let signals = TenantSignals { reuse, ..TenantSignals::default() };
        TenantView { signals, ..TenantView::default() }
    };
    mlcache.divide(&reuse.map(view), total)
}

fn shares(quotas: &[u32]) -> CacheDivision {
    CacheDivision::PerTenant(quotas.to_vec())
}

#[test]
fn shares_are_a_softmax_by_largest_remainder_above_a_floor() {
    let outputs = [0.0, 3.0_f32.ln()];
    let file = constant_model(NetworkKind::Mlp, &input_names(2), &outputs, &[]).to_bytes().unwrap();
    let mut mlcache = learned(1, file.clone());
    assert_eq!(divide(&mut mlcache, [None, None], 1001), shares(&[501, 500]), "no interval yet");
    assert_eq!(divide(&mut mlcache, [Some(&[0; 10]), Some(&[1; 10])], 1001), shares(&[250, 751]));
    assert_eq!(divide(&mut mlcache, [Some(&[0; 10]); 2], 1001), shares(&[250, 751]), "no writes");
    let mut mlcache = learned(300, file);
    assert_eq!(divide(&mut mlcache, [Some(&[0; 10]), Some(&[1; 10])], 1001), shares(&[300, 701]));
}

#[test]
fn a_model_sees_each_bin_at_its_place() {
    // The first hidden unit sums the first tenant's last bin, the second the second's first bin;
    // outputs are ten times these.
    let mut weight = |name: &str, index: usize| match (name, index) {
        ("hidden.0.weight", 9) => 1.0,
        ("hidden.0.weight", 30) => 1.0,
        ("points.weight", 0 | 6) => 10.0,
        _ => 0.0,
    };
    let file =
        small_model(NetworkKind::Mlp, &input_names(2), 2, &[], &mut weight).to_bytes().unwrap();
    let mut mlcache = learned(0, file);
    let first = [0, 0, 0, 0, 0, 0, 0, 0, 0, 20];
    let second = [60, 20, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(inputs(&[first, second]).unwrap()[9..12], [0.2, 0.6, 0.2]);
    // Outputs 2 and 6: the first has 1 / (1 + e^4) of the cache, 0.018.
    assert_eq!(divide(&mut mlcache, [Some(&first), Some(&second)], 1000), shares(&[18, 982]));
    let second = [20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    assert_eq!(divide(&mut mlcache, [Some(&[0; 10]), Some(&second)], 1000), shares(&[0, 1000]));
}

#[test]
fn another_model_counts_from_the_next_division_on_and_a_wrong_one_changes_nothing() {
    let file = |outputs: [f32; 2]| {
        constant_model(NetworkKind::Mlp, &input_names(2), &outputs, &[]).to_bytes().unwrap()
    };
    let (even, skewed) = (file([0.0, 0.0]), file([0.0, 3.0_f32.ln()]));
    let joint = |file: &[u8]| Models { joint: Some(file.to_vec()), ..Models::default() };
    let (writes, silence) = ([Some(&[1; 10]); 2], [None, None]);
    let mut mlcache = learned(1, skewed.clone());
    assert_eq!(divide(&mut mlcache, writes, 1000), shares(&[250, 750]));
    mlcache.learn(&joint(&skewed)).unwrap();
    assert_eq!(divide(&mut mlcache, silence, 1000), shares(&[250, 750]), "the same model");
    mlcache.learn(&joint(&even)).unwrap();
    assert_eq!(divide(&mut mlcache, silence, 1000), shares(&[250, 750]), "nothing was measured");
    assert_eq!(divide(&mut mlcache, writes, 1000), shares(&[500, 500]));
    let three =
        constant_model(NetworkKind::Mlp, &input_names(3), &[0.0; 3], &[]).to_bytes().unwrap();
    for wrong in [Models::default(), joint(b"nonsense"), joint(&three)] {
        mlcache.learn(&wrong).unwrap_err();
    }
    assert_eq!(divide(&mut mlcache, writes, 1000), shares(&[500, 500]), "the model before");
}

#[test]
fn models_of_another_shape_are_refused() {
    let refused = |joint: Option<Vec<u8>>| {
        let mut mlcache = MlCache::new(&MlCacheSettings::default(), 2, Seed(1));
        mlcache.learn(&Models { joint, ..Models::default() }).unwrap_err()
    };
    let refusal = |kind, names: &[String], outputs: &[f32]| {
        refused(Some(constant_model(kind, names, outputs, &[]).to_bytes().unwrap()))
    };
    assert_eq!(refused(None), "found no model of all tenants together, expected one");
    let nonsense = refused(Some(b"nonsense".to_vec()));
    assert!(nonsense.starts_with("joint model: found bytes that are no"), "{nonsense}");
    assert_eq!(
        refusal(NetworkKind::Lstm, &input_names(2), &[0.0; 2]),
        "joint model: found a model of kind lstm, expected mlp"
    );
    assert_eq!(
        refusal(NetworkKind::Mlp, &input_names(3), &[0.0; 3]),
        "joint model: found 30 inputs, expected 20"
    );
    assert_eq!(
        refusal(NetworkKind::Mlp, &input_names(2), &[0.0; 3]),
        "joint model: found 3 outputs, expected 2 (one per tenant)"
    );
}
