//! Models that are replaced while the cache runs.

use super::*;

/// A model whose labels differ and depend on what it has seen.
fn network(seed: u64) -> Vec<u8> {
    let mut stored = random_model(&[6], seed, 4);
    for name in ["cached.weight", "duration.weight"] {
        let tensor = stored.tensors.get_mut(name).unwrap();
        let cachewright_model::Numbers::F32(weights) = &mut tensor.numbers else { panic!() };
        weights.iter_mut().for_each(|weight| *weight *= 40.0);
    }
    let tensors = stored.tensors.iter().map(|(name, tensor)| match &tensor.numbers {
        cachewright_model::Numbers::F32(numbers) => (name.clone(), numbers.clone()),
        other => panic!("{other:?}"),
    });
    let inputs = inputs(&mut Seed(seed).rng(), 4);
    StoredModel::float(stored.description.clone(), tensors.collect(), inputs)
        .unwrap()
        .to_bytes()
        .unwrap()
}

fn models(mail: &[u8]) -> Vec<(String, Vec<u8>)> {
    vec![("web".to_owned(), network(9)), ("mail".to_owned(), mail.to_vec())]
}

fn running(mail: &[u8]) -> RcRnn {
    let mut policy = policy(20);
    policy.load_models(&models(mail)).unwrap();
    policy.set_workload("mail");
    policy
}

/// Reads of a few blocks, some of them often; `before` is called ahead of each.
fn replay(
    policy: &mut RcRnn,
    requests: std::ops::Range<u64>,
    mut before: impl FnMut(&mut RcRnn, u64),
) -> Vec<Verdict> {
    let read_one = |request: u64| {
        before(policy, request);
        let mut rng = Seed(request).rng();
        let most = if rng.below(2) == 0 { 15 } else { 120 };
        let block = rng.below(most) as u32;
        let verdict = read(policy, block);
        assert_eq!(policy.audit(), Ok(()));
        verdict
    };
    requests.map(read_one).collect()
}

#[test]
fn the_same_models_change_nothing() {
    let mail = network(1);
    let expected = replay(&mut running(&mail), 0..600, |_, _| {});
    let mut policy = running(&mail);
    let verdicts = replay(&mut policy, 0..600, |policy, request| {
        if request % 7 == 3 {
            let mut same = models(&mail);
            same.rotate_left(request as usize % 2);
            policy.load_models(&same).unwrap();
        }
    });
    assert_eq!(verdicts, expected);
    let kinds =
        expected.iter().map(std::mem::discriminant).collect::<std::collections::HashSet<_>>();
    assert_eq!(kinds.len(), 3, "hits, admissions and bypasses");
}

#[test]
fn another_model_changes_later_decisions_only_and_loses_no_block() {
    let (mail, other) = (network(1), network(2));
    let mut kept = running(&mail);
    let expected = replay(&mut kept, 0..600, |_, _| {});
    let swapped = || {
        let mut policy = running(&mail);
        let swap = |policy: &mut RcRnn, request| {
            if request == 300 {
                let held: Vec<bool> = (0..120).map(|id| policy.contains(BlockId(id))).collect();
                policy.load_models(&models(&other)).unwrap();
                let still: Vec<bool> = (0..120).map(|id| policy.contains(BlockId(id))).collect();
                assert_eq!(still, held);
                assert!(held.contains(&true));
            }
        };
        replay(&mut policy, 0..600, swap)
    };
    let verdicts = swapped();
    assert_eq!(verdicts[..300], expected[..300]);
    assert_ne!(verdicts[300..], expected[300..]);
    assert_eq!(verdicts, swapped(), "deterministic");
}

/// A new model of the workload that runs begins as one of another workload does.
#[test]
fn a_new_model_takes_over_as_that_of_another_workload_does() {
    let mut policies = [running(&network(1)), running(&network(1))];
    let mut verdicts = policies.each_mut().map(|policy| replay(policy, 0..300, |_, _| {}));
    assert_eq!(verdicts[0], verdicts[1]);
    let [replaced, switched] = &mut policies;
    replaced.load_models(&models(&network(9))).unwrap();
    switched.set_workload("web");
    verdicts = policies.each_mut().map(|policy| replay(policy, 300..600, |_, _| {}));
    assert_eq!(verdicts[0], verdicts[1]);
}

#[test]
fn a_model_that_does_not_fit_is_refused_and_the_one_before_goes_on() {
    let mail = network(1);
    let expected = replay(&mut running(&mail), 0..400, |_, _| {});
    let mut policy = running(&mail);
    let mut errors = Vec::new();
    let verdicts = replay(&mut policy, 0..400, |policy, request| {
        if request == 200 {
            let only_web = vec![("web".to_owned(), network(2))];
            let damaged = vec![("mail".to_owned(), network(2)), ("web".to_owned(), b"no".to_vec())];
            for wrong in [Vec::new(), only_web, damaged] {
                errors.push(policy.load_models(&wrong).unwrap_err());
            }
        }
    });
    assert_eq!(verdicts, expected);
    assert_eq!(errors[0], "found no model, expected one or more");
    assert_eq!(errors[1], "found models of `web`, expected one of `mail`, which runs now");
    assert!(errors[2].starts_with("`web`: found bytes that are no"), "{}", errors[2]);
}

#[test]
fn labels_known_beforehand_go_on_at_the_request_that_is_next() {
    let labels = [OUT, OUT, stays(StayClass::Late), OUT, stays(StayClass::Soon)];
    let mut policy = policy(4);
    policy.load_models(&[("any".to_owned(), labels::file([OUT; 5]))]).unwrap();
    let mut verdicts = [0, 1].map(|block| read(&mut policy, block)).to_vec();
    policy.load_models(&[("any".to_owned(), labels::file(labels))]).unwrap();
    verdicts.extend([2, 3, 4].map(|block| read(&mut policy, block)));
    let (out, admit) = (Verdict::Bypass, Verdict::Admit { evicted: None });
    assert_eq!(verdicts, [out, out, admit, out, admit]);
    assert_eq!(policy.queues.blocks(), [vec![4], vec![], vec![2]]);
}
