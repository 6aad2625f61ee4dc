//! Long work reports its progress every few accesses, where it can be stopped.

use crate::common::{Folder, pairs};
use cachewright_experiment::mrc::{CurveOptions, MethodChoice, MrcOptions, mrc};
use cachewright_experiment::{PlanOptions, Progress, RunOptions, plan, run};
use std::fmt::Write as _;
use std::sync::Mutex;

const ACCESSES: u64 = 30_000;
/// Accesses between two looks at whether to go on, at most.
const POLL: u64 = 1 << 12;
const STACK: &str = "[cache]\ncapacity = \"64 blocks\"\npolicy = \"lrb\"\n\
    [[tenant]]\nname = \"a\"\ntrace = \"many.csv\"\ngoal_hit_ratio = 0.2\n";

fn many() -> String {
    let mut lines = String::new();
    for at in 0..ACCESSES {
        writeln!(lines, "1,R,{},4096,{at}", at * 7919 % 300 * 4096).unwrap();
    }
    lines
}

#[test]
fn a_replay_that_learns_is_told_of_every_few_accesses() {
    let folder = Folder::new("stops-lrb");
    let origin = folder.with("many.csv", &many());
    let told = Mutex::new(Vec::new());
    let note = |news: Progress| {
        if news.stage == "replaying" {
            told.lock().unwrap().push(news.done);
        }
        true
    };
    let set = pairs(&[("replay.curves", "false")]);
    run(STACK, &origin, &RunOptions { set, ..RunOptions::default() }, &note).unwrap();
    let told = told.into_inner().unwrap();
    assert_eq!((told.first(), told.last()), (Some(&0), Some(&ACCESSES)));
    assert!(told.windows(2).all(|two| two[1] - two[0] <= POLL), "{told:?}");
}

#[test]
fn curves_of_a_policy_that_learns_are_told_of_every_few_accesses() {
    let folder = Folder::new("stops-curves");
    let origin = folder.with("many.csv", &many());
    let told = Mutex::new(Vec::new());
    let note = |news: Progress| {
        if news.stage != "reading traces" {
            told.lock().unwrap().push(news.done);
        }
        true
    };
    let curve = CurveOptions { method: MethodChoice::Exact, points: 3, ..CurveOptions::default() };
    let options = MrcOptions { curve, threads: 2, ..MrcOptions::default() };
    mrc(STACK, &origin, &options, &note).unwrap();
    let told = told.into_inner().unwrap();
    assert!(told.len() as u64 >= ACCESSES / POLL, "{told:?}");
    assert!(told.windows(2).all(|two| two[1] - two[0] <= POLL), "{told:?}");
}

#[test]
fn a_plan_stops_in_each_of_its_stages_and_never_says_how_much_is_left() {
    let folder = Folder::new("stops-plan");
    let origin = folder.with("many.csv", &many());
    for stage in ["sizing each tenant alone", "trying sizes"] {
        let until = |news: Progress| {
            assert!(news.stage != stage || news.total.is_none(), "{news:?}");
            news.stage != stage || news.done < POLL
        };
        let stopped = plan(STACK, &origin, &PlanOptions::default(), &until).unwrap_err();
        assert!(stopped.is_cancelled(), "{stage}: {stopped}");
    }
}
