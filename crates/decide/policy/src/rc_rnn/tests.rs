use super::*;
use cachewright_model::{
    Architecture, Description, Head, Int8Model, NetworkKind, OUTPUT_ONE, StoredModel, quantise,
};
use cachewright_types::Rng;
use features::{FeatureSet, encoded};
use labels::CachingNetwork;

mod lists;

mod swaps;

fn policy(capacity: u32) -> RcRnn {
    with(capacity, RcRnnSettings::default())
}

/// Where hits stay in the queue that they are in.
fn literal(capacity: u32) -> RcRnn {
    with(
        capacity,
        RcRnnSettings { requeue_hits: false, uncached_soon: false, ..RcRnnSettings::default() },
    )
}

fn with(capacity: u32, settings: RcRnnSettings) -> RcRnn {
    let mut policy = RcRnn::new(capacity, &settings, Seed(0));
    policy.reserve_ids(4096);
    policy
}

/// An access labelled by hand.
fn access(policy: &mut RcRnn, block: u32, label: CachingLabel) -> Verdict {
    policy.label = label;
    policy.access(Access::read(BlockId(block)))
}

const OUT: CachingLabel = CachingLabel { cached: false, duration: StayClass::Soon };

fn stays(duration: StayClass) -> CachingLabel {
    CachingLabel { cached: true, duration }
}

/// A cache of 5 blocks: drops after 25 accesses, tops of one block.
#[test]
fn the_hand_worked_case() {
    let mut policy = literal(5);
    for block in 0..3 {
        let verdict = access(&mut policy, block, stays(StayClass::Late));
        assert_eq!(verdict, Verdict::Admit { evicted: None });
    }
    access(&mut policy, 3, stays(StayClass::Mean));
    access(&mut policy, 4, stays(StayClass::Soon));
    assert_eq!(policy.queues.blocks(), [vec![4], vec![3], vec![2, 1, 0]]);
    // Labelled "not cached": stays out and nothing leaves. A hit moves whatever its label.
    assert_eq!(access(&mut policy, 5, OUT), Verdict::Bypass);
    assert_eq!(access(&mut policy, 1, OUT), Verdict::Hit);
    assert_eq!(policy.queues.blocks(), [vec![4], vec![3], vec![1, 2, 0]]);
    // Victims: soon, then mean, then the tail of late.
    let mut enter = |block| access(&mut policy, block, stays(StayClass::Late));
    assert_eq!(enter(6), Verdict::Admit { evicted: Some(BlockId(4)) });
    assert_eq!(enter(7), Verdict::Admit { evicted: Some(BlockId(3)) });
    assert_eq!(enter(8), Verdict::Admit { evicted: Some(BlockId(0)) });
    assert_eq!(policy.queues.blocks(), [vec![], vec![], vec![8, 7, 6, 1, 2]]);
    // 10 accesses so far. At the 28th block 1 is due, in since the 2nd, at the 29th block 2; at the
    // 34th block 6, which is then the head of three and drops: a fifth of three is none.
    for _ in 11..=29 {
        assert_eq!(access(&mut policy, 9, OUT), Verdict::Bypass);
    }
    assert_eq!(policy.queues.blocks(), [vec![], vec![2, 1], vec![8, 7, 6]]);
    for _ in 30..=33 {
        access(&mut policy, 6, OUT);
    }
    assert_eq!(policy.queues.blocks(), [vec![], vec![2, 1], vec![6, 8, 7]]);
    access(&mut policy, 9, OUT);
    assert_eq!(policy.queues.blocks(), [vec![], vec![6, 2, 1], vec![8, 7]]);
    assert_eq!(policy.audit(), Ok(()));
}

#[test]
fn the_top_fifth_does_not_drop() {
    let mut policy = literal(5);
    for block in 0..5 {
        access(&mut policy, block, stays(StayClass::Mean));
    }
    for _ in 0..30 {
        access(&mut policy, 0, OUT);
    }
    assert_eq!(policy.queues.blocks(), [vec![4, 3, 2, 1], vec![0], vec![]]);
}

/// Hits enter the queue of their label, "not cached" that of the blocks that leave first.
#[test]
fn a_hit_enters_the_queue_of_its_label() {
    let mut policy = policy(3);
    for (block, duration) in [(0, StayClass::Late), (1, StayClass::Mean), (2, StayClass::Soon)] {
        access(&mut policy, block, stays(duration));
    }
    assert_eq!(access(&mut policy, 0, stays(StayClass::Mean)), Verdict::Hit);
    assert_eq!(policy.queues.blocks(), [vec![2], vec![0, 1], vec![]]);
    access(&mut policy, 2, stays(StayClass::Late));
    access(&mut policy, 1, OUT);
    assert_eq!(policy.queues.blocks(), [vec![1], vec![0], vec![2]]);
    let settings = RcRnnSettings { uncached_soon: false, ..RcRnnSettings::default() };
    let mut stays_put = with(2, settings);
    for (block, label) in [(0, stays(StayClass::Late)), (1, stays(StayClass::Soon)), (0, OUT)] {
        access(&mut stays_put, block, label);
    }
    assert_eq!(stays_put.queues.blocks(), [vec![1], vec![], vec![0]]);
    assert_eq!(policy.audit(), Ok(()));
}

/// A model of random weights in f32, its test vector of `steps` requests.
fn random_model(hidden: &[usize], seed: u64, steps: usize) -> StoredModel {
    let features = FeatureSet::Reuse.features();
    let head = |(name, outputs): (&str, usize)| Head { name: name.to_owned(), outputs };
    let mut description = Description::plain(Architecture {
        kind: NetworkKind::Lstm,
        inputs: features.len(),
        hidden: hidden.to_vec(),
        heads: labels::HEADS.map(head).to_vec(),
    });
    description.features = features.iter().map(|name| (*name).to_owned()).collect();
    let mut rng = Seed(seed).rng();
    let shapes = description.architecture.tensors();
    let weights = shapes.into_iter().map(|(name, shape)| {
        let bound = 2.0 / (shape[shape.len() - 1] as f64).sqrt();
        let count = shape.iter().product();
        let draw = |_| ((2.0 * rng.unit() - 1.0) * bound) as f32;
        (name, (0..count).map(draw).collect())
    });
    let weights = weights.collect();
    StoredModel::float(description, weights, inputs(&mut Seed(7).rng(), steps)).unwrap()
}

/// Requests that could be: small numbers, labels as they are encoded.
fn inputs(rng: &mut Rng, steps: usize) -> Vec<Vec<f32>> {
    let step = |_| {
        let label = CachingLabel { cached: rng.below(2) == 0, duration: StayClass::Late };
        let mut features: Vec<f32> = (0..7).map(|_| (2.0 * rng.unit()) as f32).collect();
        features.extend(encoded(label));
        features
    };
    (0..steps).map(step).collect()
}

/// A model of two units that lets in what it remembers, and for long what was used often; weights
/// are those of the gates i, f, g, o of both units.
fn by_hand() -> StoredModel {
    let mut stored = random_model(&[2], 1, 1);
    let mut put = |name: &str, numbers: Vec<f32>| {
        let tensor = stored.tensors.get_mut(name).unwrap();
        tensor.numbers = cachewright_model::Numbers::F32(numbers);
    };
    let mut input = vec![0.0; 8 * 9];
    input[4 * 9 + 2] = -1.0; // The first unit: a distance below 25.
    input[5 * 9 + 3] = 4.0; // The second: more than three accesses (a logarithm of 2).
    put("weight_ih_l0", input);
    put("weight_hh_l0", vec![0.0; 16]);
    put("bias_ih_l0", vec![9.0, 9.0, -9.0, -9.0, 25.0, -8.0, 9.0, 9.0]);
    put("bias_hh_l0", vec![0.0; 8]);
    put("cached.weight", vec![-1.0, 0.0, 1.0, 0.0]);
    put("cached.bias", vec![0.0; 2]);
    put("duration.weight", vec![0.0, -1.0, 0.0, 0.0, 0.0, 1.0]);
    put("duration.bias", vec![0.0; 3]);
    // The outputs of the test vector are those of the new weights.
    let tensors = stored.tensors.iter().map(|(name, tensor)| match &tensor.numbers {
        cachewright_model::Numbers::F32(numbers) => (name.clone(), numbers.clone()),
        other => panic!("{other:?}"),
    });
    let mut rng = Seed(3).rng();
    let mut steps = inputs(&mut rng, 2);
    (steps[0][2], steps[1][3]) = (32.0, 16.0);
    StoredModel::float(stored.description.clone(), tensors.collect(), steps).unwrap()
}

/// By hand in f32 and in int8.
fn both() -> [Vec<u8>; 2] {
    let stored = by_hand();
    let calibration = stored.test_vector.inputs.concat();
    let int8 = quantise(&stored, &[&calibration]).unwrap();
    [stored.to_bytes().unwrap(), int8.to_bytes().unwrap()]
}

/// A read of one block, by its number.
fn read(policy: &mut RcRnn, block: u32) -> Verdict {
    let offset = u64::from(block) << 12;
    policy.on_request(&RequestInfo { time_ns: 0, offset, length: 4096, write: false });
    policy.access(Access::read(BlockId(block)))
}

#[test]
fn a_stream_that_never_repeats_costs_no_admission() {
    for file in both() {
        let mut policy = literal(100);
        policy.load_models(&[("any".to_owned(), file)]).unwrap();
        let admitted = (0..4000).filter(|block| read(&mut policy, *block) != Verdict::Bypass);
        assert_eq!(admitted.count(), 0);
        // What comes back is let in, as soon at first and as late when it has come back often.
        let verdicts: Vec<Verdict> = (0..2).map(|_| read(&mut policy, 3999)).collect();
        assert_eq!(verdicts, [Verdict::Admit { evicted: None }, Verdict::Hit]);
        assert_eq!(policy.queues.blocks(), [vec![3999], vec![], vec![]]);
        assert_eq!(policy.previous, stays(StayClass::Soon));
        read(&mut policy, 3998);
        for _ in 0..4 {
            read(&mut policy, 3999);
        }
        assert_eq!(policy.previous, stays(StayClass::Late));
        assert_eq!(policy.audit(), Ok(()));
    }
}

/// Labels known beforehand do what a model that gives them does, and are counted alike.
#[test]
fn a_table_of_labels_is_replayed_request_by_request() {
    let labels = [stays(StayClass::Late), OUT, stays(StayClass::Soon), stays(StayClass::Soon)];
    let mut policy = policy(1);
    policy.load_models(&[("any".to_owned(), labels::file(labels))]).unwrap();
    let verdicts = [1, 2, 1, 3].map(|block| read(&mut policy, block));
    let admit = |evicted: Option<u32>| Verdict::Admit { evicted: evicted.map(BlockId) };
    assert_eq!(verdicts, [admit(None), Verdict::Bypass, Verdict::Hit, admit(Some(1))]);
    let (blocks, flags) = ([1, 2, 1, 3], [replayed::LAST; 4]);
    let run = |labels: &[CachingLabel], counted| {
        let settings = RcRnnSettings::default();
        replayed::replay(&blocks, &flags, labels, 1, &settings, counted)
    };
    let expected = replayed::LabelTally { accesses: 4, hits: 1, admissions: 2 };
    assert_eq!(run(&labels, 0..4), Ok(expected));
    assert_eq!(run(&labels, 3..4).map(|tally| (tally.accesses, tally.hits)), Ok((1, 0)));
    assert!(run(&labels[..3], 0..4).is_err());
}

#[test]
fn another_workload_swaps_the_model_and_hits_requeue() {
    let file = both()[1].clone();
    let mut policy = literal(10);
    policy.load_models(&[("mail".to_owned(), file.clone()), ("web".to_owned(), file)]).unwrap();
    for block in [1, 2, 1, 2, 1, 2] {
        read(&mut policy, block);
    }
    assert_eq!(policy.queues.blocks(), [vec![2, 1], vec![], vec![]]);
    policy.set_workload("no such kind");
    policy.set_workload("mail");
    read(&mut policy, 1);
    assert_eq!(policy.queues.blocks()[0], [1, 2], "nothing was changed");
    policy.set_workload("web");
    read(&mut policy, 1);
    assert_eq!(policy.queues.blocks(), [vec![2], vec![], vec![1]], "queued by the new model");
    read(&mut policy, 1);
    assert_eq!(policy.queues.blocks()[2], [1]);
    assert_eq!(policy.audit(), Ok(()));
}

/// While the other model is loaded a miss goes around and a hit keeps its queue.
#[test]
fn a_model_that_is_loaded_takes_its_time() {
    let file = both()[1].clone();
    let settings = RcRnnSettings { load_ms: 1.0, ..RcRnnSettings::default() };
    let mut policy = with(10, settings);
    policy.load_models(&[("mail".to_owned(), file.clone()), ("web".to_owned(), file)]).unwrap();
    let mut at = |time_ns, block: u32| {
        let offset = u64::from(block) << 12;
        policy.on_request(&RequestInfo { time_ns, offset, length: 4096, write: false });
        if time_ns == 10 {
            policy.set_workload("web");
        }
        policy.access(Access::read(BlockId(block)))
    };
    let bypass = |verdict| assert_eq!(verdict, Verdict::Bypass);
    bypass(at(0, 1));
    assert_eq!(at(1, 1), Verdict::Admit { evicted: None });
    bypass(at(10, 2));
    bypass(at(500_000, 2));
    assert_eq!(at(600_000, 1), Verdict::Hit);
    assert_eq!(at(1_000_010, 2), Verdict::Admit { evicted: None }, "the model is there");
}

#[test]
fn files_that_do_not_fit_are_refused_with_what_was_expected() {
    let refused = |stored: &StoredModel| {
        let file = stored.to_bytes().unwrap();
        policy(1).load_models(&[("mail".to_owned(), file)]).unwrap_err()
    };
    let good = random_model(&[4], 1, 1);
    let renamed = |from: &str, to: &str| {
        let mut stored = good.clone();
        for name in &mut stored.description.features {
            *name = name.replace(from, to);
        }
        stored
    };
    let error = refused(&renamed("reads", "writes"));
    assert!(error.starts_with("`mail`: found features step, sequential, dist"), "{error}");
    assert!(error.contains("expected address, size"), "{error}");
    let mut heads = good.clone();
    heads.description.architecture.heads.swap(0, 1);
    let error = refused(&heads);
    let expected = "`mail`: found heads `duration` of 3, `cached` of 2, expected `cached` of 2, \
                    `duration` of 3";
    assert_eq!(error, expected);
    assert!(policy(1).load_models(&[]).is_err());
    assert!(policy(1).load_models(&[("mail".to_owned(), b"none".to_vec())]).is_err());
}

/// What a window of requests computed in one go says is what steps with a carried state say: the
/// same bits in int8, and f32 within the error of quantisation.
#[test]
fn a_carried_state_says_what_its_window_says() {
    let stored = random_model(&[24, 24, 24], 5, 100);
    let window = stored.test_vector.inputs.concat();
    let int8 = quantise(&stored, &[&window]).unwrap();
    let whole = Int8Model::new(&int8).unwrap();
    let said = whole.run(&mut whole.zero_state(), &window).unwrap();
    let mut carried = CachingNetwork::load(&int8.to_bytes().unwrap()).unwrap();
    let mut furthest = 0.0_f32;
    for (step, outputs) in stored.test_vector.inputs.iter().zip(said.chunks_exact(5)) {
        assert_eq!(carried.step(step), labels::label(outputs));
    }
    for (exact, outputs) in stored.test_vector.outputs.iter().zip(said.chunks_exact(5)) {
        for (exact, output) in exact.iter().zip(outputs) {
            furthest = furthest.max((exact - *output as f32 / OUTPUT_ONE).abs());
        }
    }
    assert!(furthest < 0.05, "{furthest} between f32 and int8");
}

/// Names the second kind, once it has observed three requests.
struct Second(Vec<String>, u32);

cachewright_snapshot::refused!(Second: "a characterizer of this test");

impl Characterizer for Second {
    fn observe(&mut self, _: &cachewright_types::Request) {
        self.1 += 1;
    }

    fn learn(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }

    fn kinds(&self) -> &[String] {
        &self.0
    }

    fn classify(&mut self) -> Option<crate::characterize::KindEstimate> {
        let found = || crate::characterize::KindEstimate {
            kind: 1,
            confidence: 1.0,
            scores: vec![0.0, 1.0],
        };
        (self.1 >= 3).then(found)
    }
}

#[test]
fn a_characterizer_is_asked_once_a_period_and_its_word_is_taken() {
    let file = both()[1].clone();
    let mut policy = policy(10);
    policy.load_models(&[("mail".to_owned(), file.clone()), ("web".to_owned(), file)]).unwrap();
    let kinds = ["mail", "web"].map(str::to_owned).to_vec();
    policy.characterize(Box::new(Second(kinds, 0)), 100);
    let mut models = Vec::new();
    for time_ns in [0, 100, 150, 199, 350, 360] {
        policy.on_request(&RequestInfo { time_ns, ..RequestInfo::default() });
        models.push(policy.models.changes());
    }
    // At 100 it has observed one request and does not know; at 350 four; in between it does not
    // answer.
    assert_eq!(models, [0, 0, 0, 0, 1, 1]);
}
