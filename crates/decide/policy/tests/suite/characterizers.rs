//! Every characterizer of the registry on random requests, classes beside sets of bytes, and a
//! model worked by hand from file to judgement.
#![allow(clippy::unwrap_used)] // a failed test may panic

use cachewright_model::{Architecture, Description, Head, NetworkKind, StoredModel};
use cachewright_policy::characterize::{
    ClassSettings, RequestClass, RequestClassifier, boxed, entries, features,
};
use cachewright_types::{Bytes, Nanos, Op, Request, TenantId};
use proptest::prelude::*;
use std::collections::BTreeSet;

fn request(time: u64, op: Op, offset: u64, length: u64) -> Request {
    let (offset, length) = (Bytes(offset), Bytes(length));
    Request { time: Nanos(time), offset, length, op, tenant: TenantId(0) }
}

/// A logistic model of `io-size`: outputs 10 times the share of the smallest size, and 5 always.
fn small_or_large(notes: &[(&str, &str)]) -> Vec<u8> {
    let inputs = features("io-size", &[]).unwrap().names();
    let heads = vec![Head { name: "kind".to_owned(), outputs: 2 }];
    let architecture = Architecture {
        kind: NetworkKind::Logistic,
        inputs: inputs.len(),
        hidden: Vec::new(),
        heads,
    };
    let mut description = Description::plain(architecture);
    description.features = inputs.iter().map(|name| (*name).to_owned()).collect();
    description.notes =
        notes.iter().map(|(key, text)| ((*key).to_owned(), (*text).to_owned())).collect();
    let mut weights = vec![0.0; 2 * inputs.len()];
    weights[0] = 10.0;
    let tensors =
        [("kind.weight".to_owned(), weights), ("kind.bias".to_owned(), vec![0.0, 5.0])].into();
    let test = vec![vec![0.0; inputs.len()]];
    StoredModel::float(description, tensors, test).unwrap().to_bytes().unwrap()
}

const NOTES: [(&str, &str); 3] =
    [("characterizer", "io-size"), ("kinds", "small, large"), ("window", "100")];

#[test]
fn the_last_thousand_requests_are_judged() {
    let mut sees = boxed("io-size", &[]).unwrap();
    assert!(sees.kinds().is_empty());
    sees.learn(&small_or_large(&NOTES)).unwrap();
    assert_eq!(sees.kinds(), ["small", "large"]);
    for time in 0..999 {
        sees.observe(&request(time, Op::Read, time << 20, 4096));
        sees.observe(&request(time, Op::Flush, 0, 0));
        assert_eq!(sees.classify(), None, "{time}");
    }
    sees.observe(&request(999, Op::Write, 0, 512));
    let actual = sees.classify().unwrap();
    assert_eq!(actual.kind, 0);
    let expected = 1.0 / (1.0 + f64::exp(-5.0));
    assert!((actual.confidence - expected).abs() < 1e-5, "{actual:?}");
    // Six of the ten windows are of large requests now.
    for time in 1000..1600 {
        sees.observe(&request(time, Op::Read, time << 20, 1 << 20));
    }
    let actual = sees.classify().unwrap();
    assert_eq!(actual.kind, 1);
    assert!((actual.scores.iter().sum::<f64>() - 1.0).abs() < 1e-5, "{actual:?}");
}

#[test]
fn a_model_of_something_else_is_refused_in_words() {
    let mut sees = boxed("io-size", &[]).unwrap();
    let mut refused = |notes: &[(&str, &str)]| sees.learn(&small_or_large(notes)).unwrap_err();
    let [trained_for, kinds, window] = NOTES;
    assert_eq!(refused(&[]), "found no note `characterizer`, expected one of `io-size`");
    assert_eq!(
        refused(&[("characterizer", "twsd")]),
        "found a model of characterizer `twsd`, expected one of `io-size`"
    );
    assert_eq!(
        refused(&[trained_for, kinds, ("window", "0")]),
        "note `window`: found `0`, expected 1 to 10000 requests"
    );
    assert_eq!(
        refused(&[trained_for, ("kinds", "mail"), window]),
        "note `kinds`: found mail, expected 2 names"
    );
    assert!(sees.learn(b"").is_err());
    let mut other = boxed("twsd", &[]).unwrap();
    let error = other.learn(&small_or_large(&[("characterizer", "twsd")])).unwrap_err();
    assert!(error.starts_with("found features to_4kib, "), "{error}");
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let error = boxed("rc-rn", &[]).err().unwrap().to_string();
    assert!(error.ends_with("nearest is `rc-rnn`"), "{error}");
}

prop_compose! {
    fn any_request()(
        time in 0_u64..1000,
        op in 0_u8..4,
        offset in prop_oneof![0_u64..40, any::<u64>()],
        length in prop_oneof![0_u64..8, any::<u64>()],
    ) -> Request {
        request(time, Op::from_number(op).unwrap(), offset, length)
    }
}

proptest! {
    #[test]
    fn rows_are_finite_and_as_long_as_their_names(
        requests in prop::collection::vec(any_request(), 1..50),
    ) {
        for entry in entries() {
            let mut once = features(entry.name, &[]).unwrap();
            let mut again = features(entry.name, &[]).unwrap();
            for request in &requests {
                let (mut row, mut same) = (Vec::new(), Vec::new());
                once.row(request, &mut row);
                again.row(request, &mut same);
                prop_assert_eq!(row.len(), once.names().len(), "{}", entry.name);
                prop_assert!(row.iter().all(|feature| feature.is_finite()), "{}", entry.name);
                prop_assert_eq!(row, same);
            }
        }
    }

    /// Kibibytes as elements of sets, over the last four requests.
    #[test]
    fn classes_agree_with_sets_of_bytes(
        requests in prop::collection::vec((0_u64..60, 1_u64..10), 1..60),
    ) {
        let settings = ClassSettings { large_kib: 7, gap_kib: 2, remembered: 4 };
        let mut classes = RequestClassifier::new(&settings);
        let mut before: Vec<BTreeSet<u64>> = Vec::new();
        for (start, length) in requests {
            let own: BTreeSet<u64> = (start..start + length).collect();
            let any = |fits: &dyn Fn(&BTreeSet<u64>) -> bool| {
                before.iter().rev().take(4).any(fits)
            };
            let near = |kib: u64| any(&|other: &BTreeSet<u64>| {
                own.iter().any(|a| other.iter().any(|b| a.abs_diff(*b) <= kib))
            });
            let joins = any(&|other: &BTreeSet<u64>| {
                own.first() == other.last().map(|last| last + 1).as_ref()
                    || other.first() == own.last().map(|last| last + 1).as_ref()
            });
            let expected = if joins || length > 7 {
                RequestClass::Sequential
            } else if near(0) {
                RequestClass::Overlapped
            } else if near(3) {
                RequestClass::Strided
            } else {
                RequestClass::Random
            };
            let actual = classes.class(&request(0, Op::Read, start << 10, length << 10));
            prop_assert_eq!(actual, Some(expected));
            before.push(own);
        }
    }
}
