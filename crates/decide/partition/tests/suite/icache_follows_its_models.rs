//! `icache` with models: what they see, what their demands become, what it refuses.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use cachewright_curve::signal::{FEATURES, StepCounts, TenantSignals};
use cachewright_model::{
    Architecture, Combine, Description, FloatModel, Forest, Head, Int8Model, NetworkKind,
    OUTPUT_ONE, StoredModel, Tree, TreeNode, quantise,
};
use cachewright_partition::icache::{
    DemandPrediction, GranuleDemand, ICache, ICacheSettings, ModelInput, Predictor, ResourceState,
    pooled, pooled_names,
};
use cachewright_partition::{CacheDivision, Models, Partitioner, Registered, TenantView};
use cachewright_testkit::models::{constant_model, small_random_model};
use cachewright_types::Seed;

const NOTES: [(&str, &str); 2] = [("granules", "10"), ("window_steps", "24")];

fn names() -> Vec<String> {
    FEATURES.map(str::to_owned).to_vec()
}

fn steps(count: u32) -> Vec<StepCounts> {
    let step = |index: u32| StepCounts {
        requests: 1 + index * 7 % 13,
        writes: index % 2,
        bytes: u64::from(index % 5),
        unique: index * 3 % 2,
    };
    (0..count).map(step).collect()
}

fn settings() -> ICacheSettings {
    ICacheSettings { window_steps: 24, steps_per_interval: 12, ..ICacheSettings::default() }
}

/// One that was given models, which always say so.
fn icache(settings: &ICacheSettings, outputs: &[[f32; 2]]) -> ICache {
    let mut icache = ICache::new(settings, outputs.len(), Seed(1));
    let file = |outputs: &[f32; 2]| {
        constant_model(NetworkKind::Lstm, &names(), outputs, &NOTES).to_bytes().unwrap()
    };
    let models = Models { each: outputs.iter().map(file).collect(), ..Models::default() };
    icache.learn(&models).unwrap();
    icache
}

fn divide(icache: &mut ICache, steps: &[&[StepCounts]], total: u32) -> Vec<u32> {
    let view = |steps| {
        let signals = TenantSignals { steps: Some(steps), ..TenantSignals::default() };
        TenantView { signals, ..TenantView::default() }
    };
    let views: Vec<TenantView> = steps.iter().copied().map(view).collect();
    match icache.divide(&views, total) {
        CacheDivision::PerTenant(quotas) => quotas,
        _ => Vec::new(),
    }
}

#[test]
fn it_begins_equal_and_divides_once_a_window_was_seen() {
    let mut icache = icache(&settings(), &[[0.12, 0.31], [0.2, 0.24]]);
    let interval = steps(12);
    assert_eq!(divide(&mut icache, &[&[], &[]], 1000), [500, 500]);
    assert_eq!(divide(&mut icache, &[&interval, &interval], 1000), [500, 500], "half a window");
    assert_eq!((icache.resources(), icache.demands()), (None, &[][..]));
    // 3 and 2 granules; the first began with the larger OAP and takes what remains.
    assert_eq!(divide(&mut icache, &[&interval, &interval], 1000), [800, 200]);
    assert_eq!(icache.resources(), Some(ResourceState::Abundant));
    let demands = [GranuleDemand { mbp: 1, oap: 3 }, GranuleDemand { mbp: 2, oap: 2 }];
    assert_eq!(icache.demands(), demands);
    // No OAP rose since: the first tenant.
    assert_eq!(divide(&mut icache, &[&interval, &interval], 1000), [800, 200]);
}

#[test]
fn each_state_divides_by_algorithm_1() {
    let window = steps(24);
    let cases = [
        ([[0.4, 0.9], [0.1, 0.6]], ResourceState::Strained, [700, 300]),
        ([[0.9, 1.0], [0.6, 0.6]], ResourceState::Constrained, [600, 400]),
        // Out of range: 10 and 10, 1 and 5 granules.
        ([[7.5, -1.0], [f32::MIN, 0.5]], ResourceState::Constrained, [909, 91]),
    ];
    for (outputs, state, quotas) in cases {
        let mut icache = icache(&settings(), &outputs);
        assert_eq!(divide(&mut icache, &[&window, &window], 1000), quotas);
        assert_eq!(icache.resources(), Some(state));
    }
}

#[test]
fn what_remains_goes_to_one_or_is_spread_and_the_reserve_is_kept() {
    let window = steps(24);
    let spread = ICacheSettings { spread: true, ..settings() };
    let mut wide = icache(&spread, &[[0.1, 0.1], [0.1, 0.3]]);
    assert_eq!(divide(&mut wide, &[&window, &window], 1000), [250, 750]);
    let reserve = ICacheSettings { reserve: 8.0, ..settings() };
    let mut kept = icache(&reserve, &[[0.1, 0.1], [0.1, 0.3]]);
    assert_eq!(kept.floor_blocks(2, 1000), 400);
    assert_eq!(divide(&mut kept, &[&window, &window], 1000), [400, 600]);
    assert_eq!(icache(&settings(), &[[0.5; 2]; 4]).floor_blocks(4, 1000), 25);
}

/// Outputs of the last of some steps from a zero state.
fn last_outputs(stored: &StoredModel, features: &[f32]) -> Vec<f64> {
    let outputs: Vec<f64> = if stored.is_int8() {
        let model = Int8Model::new(stored).unwrap();
        let outputs = model.run(&mut model.zero_state(), features).unwrap();
        outputs.iter().map(|&q12| f64::from(q12) / f64::from(OUTPUT_ONE)).collect()
    } else {
        let model = FloatModel::new(stored).unwrap();
        let outputs = model.run(&mut model.zero_state(), features).unwrap();
        outputs.iter().copied().map(f64::from).collect()
    };
    outputs[outputs.len() - 2..].to_vec()
}

fn predicted(predictor: &Predictor) -> Vec<f64> {
    let said = predictor.prediction().unwrap();
    vec![said.mbp_share, said.oap_share]
}

#[test]
fn recurrent_models_see_the_latest_window_or_all_steps() {
    let stored = small_random_model(NetworkKind::Lstm, &names(), 2, &NOTES, 3);
    let all = steps(36);
    let flat: Vec<f32> = all.iter().flat_map(StepCounts::features).collect();
    let int8 = quantise(&stored, &[&flat]).unwrap();
    for stored in [stored, int8] {
        let file = stored.to_bytes().unwrap();
        for carried in [false, true] {
            let looks = ModelInput { window_steps: 24, granules: 10, carried };
            let mut predictor = Predictor::load(&file, looks).unwrap();
            predictor.learn(&all[..12]);
            assert_eq!(predictor.prediction(), None);
            predictor.learn(&all[12..24]);
            predictor.learn(&all[24..]);
            let seen = if carried { &flat[..] } else { &flat[12 * FEATURES.len()..] };
            assert_eq!(predicted(&predictor), last_outputs(&stored, seen), "carried {carried}");
        }
    }
}

#[test]
fn models_without_a_state_see_the_window_pooled() {
    let stored = small_random_model(NetworkKind::Mlp, &pooled_names(), 2, &NOTES, 4);
    let looks = ModelInput { window_steps: 24, granules: 10, carried: true };
    let mut predictor = Predictor::load(&stored.to_bytes().unwrap(), looks).unwrap();
    let all = steps(30);
    predictor.learn(&all);
    let window: Vec<_> = all[6..].iter().map(StepCounts::features).collect();
    assert_eq!(predicted(&predictor), last_outputs(&stored, &pooled(&window)));
}

#[test]
fn forests_are_evaluated_like_other_models_without_a_state() {
    // MBP 0.2 and OAP 0.4 unless there were more than 3 requests per step at the end.
    let leaf = |mbp, oap| TreeNode::Leaf(vec![mbp, oap]);
    let split = TreeNode::Split { feature: 44, threshold: 3.0, left: 1, right: 2 };
    let trees = vec![Tree { nodes: vec![split, leaf(0.2, 0.4), leaf(0.6, 0.9)] }];
    let forest = Forest { trees, combine: Combine::Mean, base: vec![0.0; 2] };
    let heads = vec![Head { name: "points".to_owned(), outputs: 2 }];
    let architecture = Architecture { kind: forest.kind(), inputs: 48, hidden: vec![], heads };
    let mut description = Description::plain(architecture);
    description.features = pooled_names();
    let owned = |(key, value): &(&str, &str)| ((*key).to_owned(), (*value).to_owned());
    description.notes = NOTES.iter().map(owned).collect();
    let stored = StoredModel::forest(description, &forest, vec![vec![0.0; 48]]).unwrap();
    let looks = ModelInput { window_steps: 24, granules: 10, carried: false };
    let mut predictor = Predictor::load(&stored.to_bytes().unwrap(), looks).unwrap();
    for (requests, expected) in [(3, (0.2, 0.4)), (4, (0.6, 0.9))] {
        predictor.learn(&vec![StepCounts { requests, ..StepCounts::default() }; 24]);
        let DemandPrediction { mbp_share, oap_share } = predictor.prediction().unwrap();
        let (mbp, oap) = (mbp_share as f32, oap_share as f32);
        assert_eq!((mbp, oap), expected, "{requests} requests per step");
    }
}

#[test]
fn models_of_another_shape_are_refused_by_name() {
    let refused = |each: Vec<Vec<u8>>, settings: &ICacheSettings| {
        let models = Models { each, ..Models::default() };
        ICache::new(settings, 1, Seed(1)).learn(&models).unwrap_err()
    };
    let refusal = |kind, features: &[String], outputs: &[f32], notes: &[(&str, &str)]| {
        let file = constant_model(kind, features, outputs, notes).to_bytes().unwrap();
        refused(vec![file], &settings())
    };
    assert_eq!(
        refused(Vec::new(), &settings()),
        "found 0 models, expected one for each of 1 tenants"
    );
    let nonsense = refused(vec![b"nonsense".to_vec()], &settings());
    assert!(nonsense.starts_with("model 1 of 1: found bytes that are no"), "{nonsense}");
    let outputs = [0.5, 0.5];
    assert_eq!(
        refusal(NetworkKind::Lstm, &pooled_names(), &outputs, &NOTES),
        "model 1 of 1: found 48 inputs, expected 4"
    );
    let mut turned = names();
    turned.swap(0, 1);
    assert_eq!(
        refusal(NetworkKind::Lstm, &turned, &outputs, &NOTES),
        "model 1 of 1: input 0: found feature `write_ratio`, expected `intensity`"
    );
    assert_eq!(
        refusal(NetworkKind::Mlp, &names(), &outputs, &NOTES),
        "model 1 of 1: found 4 inputs, expected 48"
    );
    assert_eq!(
        refusal(NetworkKind::Lstm, &names(), &[0.5], &NOTES),
        "model 1 of 1: found 1 outputs, expected 2 (MBP and OAP)"
    );
    assert_eq!(
        refusal(NetworkKind::Lstm, &names(), &outputs, &[("granules", "20"), NOTES[1]]),
        "model 1 of 1: note `granules`: found `20`, expected 10 as in the settings"
    );
    assert_eq!(
        refusal(NetworkKind::Lstm, &names(), &outputs, &NOTES[..1]),
        "model 1 of 1: found no note `window_steps`, expected one of 24"
    );
    let short = ICacheSettings { window_steps: 11, ..settings() };
    let file =
        constant_model(NetworkKind::Mlp, &pooled_names(), &outputs, &NOTES).to_bytes().unwrap();
    assert_eq!(
        refused(vec![file], &short),
        "model 1 of 1: `window_steps`: found 11, expected at least 12 for a model of kind mlp"
    );
}

/// A model that always says so and takes over at the beginning of an interval.
fn update(outputs: &[f32; 2], from: &str) -> Vec<u8> {
    let notes = [NOTES.as_slice(), &[("from_interval", from)]].concat();
    constant_model(NetworkKind::Lstm, &names(), outputs, &notes).to_bytes().unwrap()
}

fn first(outputs: &[f32; 2]) -> Vec<u8> {
    constant_model(NetworkKind::Lstm, &names(), outputs, &NOTES).to_bytes().unwrap()
}

#[test]
fn updates_take_over_at_their_interval_and_keep_the_window() {
    let mut icache = ICache::new(&settings(), 2, Seed(1));
    let each = vec![first(&[0.1, 0.2]), first(&[0.1, 0.2])];
    let later = vec![vec![update(&[0.6, 0.8], "4"), update(&[0.3, 0.4], "6")], Vec::new()];
    icache.learn(&Models { each, later, joint: None }).unwrap();
    let interval = steps(12);
    let mut predicted = Vec::new();
    for begun in 0..8 {
        let seen: &[StepCounts] = if begun == 0 { &[] } else { &interval };
        divide(&mut icache, &[seen, seen], 1000);
        predicted.push(icache.demands().first().map(|demand| (demand.mbp, demand.oap)));
        if let Some(other) = icache.demands().get(1) {
            assert_eq!(
                (other.mbp, other.oap),
                (1, 2),
                "a tenant without an update keeps its model"
            );
        }
    }
    // A window is two intervals of steps; it is not begun anew when a model takes over.
    let (refusal, two, three) = (Some((1, 2)), Some((6, 8)), Some((3, 4)));
    assert_eq!(predicted, [None, None, refusal, refusal, two, two, three, three]);
}

#[test]
fn updates_that_cannot_be_are_refused() {
    let refused = |later: Vec<Vec<u8>>| {
        let models = Models { each: vec![first(&[0.5, 0.5])], later: vec![later], joint: None };
        ICache::new(&settings(), 1, Seed(1)).learn(&models).unwrap_err()
    };
    assert_eq!(
        refused(vec![first(&[0.5, 0.5])]),
        "model 1 of 1: update 1: found no note `from_interval`, expected a whole number"
    );
    assert_eq!(
        refused(vec![update(&[0.5, 0.5], "soon")]),
        "model 1 of 1: update 1: note `from_interval`: found `soon`, expected a whole number"
    );
    assert_eq!(
        refused(vec![update(&[0.5, 0.5], "5"), update(&[0.5, 0.5], "5")]),
        "model 1 of 1: update 2: note `from_interval`: found 5, expected more than 5, where the \
         model before takes over"
    );
}

/// Of models whose demands are rounded to a thousandth of the cache.
const FINE: [(&str, &str); 2] = [("granules", "1000"), ("window_steps", "24")];

/// A model whose outputs depend on all steps.
fn seeing(seed: u64) -> Vec<u8> {
    small_random_model(NetworkKind::Lstm, &names(), 2, &FINE, seed).to_bytes().unwrap()
}

/// A model that always says so and takes over at the eighth interval.
fn eighth() -> Vec<u8> {
    let notes = [FINE.as_slice(), &[("from_interval", "8")]].concat();
    constant_model(NetworkKind::Lstm, &names(), &[0.6, 0.8], &notes).to_bytes().unwrap()
}

/// The demands of both tenants over intervals of different steps; `before` is called ahead of each.
fn demands(
    carried: bool,
    first: &Models,
    mut before: impl FnMut(&mut ICache, u32),
) -> Vec<Vec<GranuleDemand>> {
    let looks = ICacheSettings { carried, granules: 1000, ..settings() };
    let mut icache = ICache::new(&looks, 2, Seed(1));
    icache.learn(first).unwrap();
    let all = steps(12 * 12);
    let interval = |number: u32| {
        before(&mut icache, number);
        let seen = &all[number as usize * 12..][..12];
        divide(&mut icache, &[seen, &all[..12]], 1000);
        icache.demands().to_vec()
    };
    (0..10).map(interval).collect()
}

#[test]
fn models_given_again_change_nothing_and_others_what_comes_after() {
    let models = |seeds: [u64; 2]| {
        let each = seeds.map(seeing).to_vec();
        Models { each, later: vec![vec![eighth()], Vec::new()], joint: None }
    };
    for carried in [false, true] {
        let first = models([1, 2]);
        let expected = demands(carried, &first, |_, _| {});
        let same = demands(carried, &first, |icache, _| icache.learn(&first).unwrap());
        assert_eq!(same, expected, "carried {carried}");
        let swap = |icache: &mut ICache, number| {
            if number == 5 {
                icache.learn(&models([3, 2])).unwrap();
            }
        };
        let swapped = demands(carried, &first, swap);
        assert_eq!(swapped, demands(carried, &first, swap), "deterministic");
        let of = |all: &[Vec<GranuleDemand>], tenant: usize| {
            all.iter().filter_map(|each| each.get(tenant).copied()).collect::<Vec<_>>()
        };
        // A window takes two intervals: the first prediction is that of the second interval.
        let (kept, changed) = (of(&expected, 0), of(&swapped, 0));
        assert_eq!((kept.len(), changed.len()), (9, 9), "no window begins anew");
        assert_eq!(kept[..4], changed[..4]);
        assert!((4..7).all(|at| kept[at] != changed[at]), "{kept:?} {changed:?}");
        assert_eq!(kept[8], changed[8], "the update of the eighth interval is the same");
        assert_eq!(of(&expected, 1), of(&swapped, 1), "the other tenant's model is the same");
    }
}

#[test]
fn models_that_cannot_be_leave_those_before() {
    let first = Models { each: [1, 2].map(seeing).to_vec(), ..Models::default() };
    let expected = demands(true, &first, |_, _| {});
    let actual = demands(true, &first, |icache, number| {
        if number == 5 {
            let one = Models { each: vec![seeing(3)], ..Models::default() };
            let error = icache.learn(&one).unwrap_err();
            assert_eq!(error, "found 1 models, expected one for each of 2 tenants");
            let each = vec![seeing(3), b"none".to_vec()];
            let error = icache.learn(&Models { each, ..Models::default() }).unwrap_err();
            assert!(error.starts_with("model 2 of 2: found bytes that are no"), "{error}");
        }
    });
    assert_eq!(actual, expected);
}
