//! Plans by hand: which commands they become, in which order they may begin.
//!
//! For: the rules of plans and of their commands. Must never know: time, devices.

use super::super::super::settings::Decision;
use super::super::backings::Backings;
use super::super::open_requests::OpenRequests;
use super::super::resident_table::ResidentTable;
use super::super::slots::Slots;
use super::super::step::{Action, Steps};
use super::*;
use cachewright_policy::Region;
use cachewright_types::{BlockId, TenantId};
use std::ops::Range;

const SHIFT: u32 = 12;
const TENANT: TenantId = TenantId(0);

/// The parts of a machine without devices and time.
struct World {
    rules: PlanToSteps,
    steps: Steps,
    residents: ResidentTable,
    requests: OpenRequests,
    mover: Mover,
    backings: Backings,
    write_backs: WriteBacks,
}

/// A command that may begin: where (slot of the cache device, or block behind it), what, how long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Done {
    Cache(Op, u32, u64),
    Backing(Op, u64, u64),
    Pass,
    Delay,
}

fn block(id: u32) -> Cached {
    Cached { pool: 0, id: BlockId(id), tenant: TENANT, number: u64::from(id), region: Region::Any }
}

fn fetches(ids: Range<u32>) -> Vec<Move> {
    let each = |id| [Move::Fetch(block(id)), Move::Fill(block(id)), Move::Serve(block(id))];
    ids.flat_map(each).collect()
}

impl World {
    fn new(settings: &MachineSettings, slots: u32) -> World {
        World {
            rules: PlanToSteps::new(settings, SHIFT),
            steps: Steps::default(),
            residents: ResidentTable::new(Slots::plain(slots)),
            requests: OpenRequests::default(),
            mover: Mover::new(1, SHIFT),
            backings: Backings::new(&[1], SHIFT),
            write_backs: WriteBacks::new(SHIFT),
        }
    }

    /// A request of bytes, and the moves that answer it.
    fn request(&mut self, op: Op, bytes: Range<u64>, moves: Vec<Move>) {
        let request = Some(self.requests.open(0, TENANT, 0));
        let commands = CommandParts {
            steps: &mut self.steps,
            residents: &mut self.residents,
            requests: &mut self.requests,
            backings: &mut self.backings,
        };
        let (mover, write_backs) = (&mut self.mover, &mut self.write_backs);
        let parts = PlanParts { commands, mover, write_backs };
        let purpose = Purpose { request, tenant: TENANT, op, bytes };
        self.rules.translate(parts, purpose, &Plan { moves, all_hit: false });
    }

    /// Ends the steps that may begin now; returns what they do.
    fn carry_out(&mut self) -> Vec<Done> {
        let ready: Vec<_> = std::iter::from_fn(|| self.steps.next_ready()).collect();
        let mut done = Vec::new();
        for id in ready {
            let step = self.steps.finish(id).unwrap().action;
            done.push(match step.action {
                Action::Cache { op, resident, skip, length } => {
                    assert!(skip < 1 << SHIFT);
                    let slot = self.residents.places().get(resident).slot().unwrap();
                    Done::Cache(op, slot.0, length)
                }
                Action::Device { device, op, offset, length } => {
                    assert_ne!(device, DeviceId::CACHE);
                    if op == Op::Write {
                        self.backings.end_write(&self.steps, device, offset, length);
                    }
                    Done::Backing(op, offset >> SHIFT, length)
                }
                Action::Delay(_) => Done::Delay,
                _ => Done::Pass,
            });
            for id in step.pins {
                let granted = self.residents.unpin(id);
                self.mover.slots_granted(&mut self.steps, &self.residents, granted);
            }
        }
        assert_eq!(self.steps.audit(), Ok(()));
        done
    }
}

#[test]
fn blocks_in_a_row_are_one_command_and_are_served_while_they_are_filled() {
    let mut world = World::new(&MachineSettings::default(), 4);
    world.request(Op::Read, 0..8192, fetches(0..2));
    assert_eq!(world.rules.in_flight_blocks(), 0);
    world.request(Op::Read, 0..8192, vec![Move::Serve(block(0)), Move::Serve(block(1))]);
    assert_eq!(world.rules.in_flight_blocks(), 2, "they are still being read");
    assert_eq!(world.carry_out(), [Done::Backing(Op::Read, 0, 8192)]);
    let served = [Done::Cache(Op::Write, 0, 8192), Done::Pass, Done::Pass];
    assert_eq!(world.carry_out(), served, "no read of the cache device is needed");
    world.request(Op::Read, 512..4608, vec![Move::Serve(block(0)), Move::Serve(block(1))]);
    assert_eq!(world.carry_out(), [Done::Cache(Op::Read, 0, 4096)], "the bytes asked for");
    assert_eq!(world.steps.open(), 0);
}

#[test]
fn an_evicted_dirty_block_is_written_back_before_it_is_read_again() {
    let mut world = World::new(&MachineSettings::default(), 1);
    world.request(Op::Write, 0..4096, vec![Move::Serve(block(0))]);
    world.carry_out();
    let mut moves = vec![Move::WriteBack(block(0))];
    moves.extend(fetches(1..2));
    world.request(Op::Read, 4096..8192, moves);
    let begun = [Done::Cache(Op::Read, 0, 4096), Done::Backing(Op::Read, 1, 4096)];
    assert_eq!(world.carry_out(), begun, "the fetch waits for no slot");
    world.request(Op::Read, 0..4096, vec![Move::Bypass { tenant: TENANT, number: 0 }]);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Write, 0, 4096)], "the slot comes free");
    let rest = world.carry_out();
    assert!(rest.contains(&Done::Backing(Op::Read, 0, 4096)), "{rest:?}");
    assert_eq!(world.carry_out(), [Done::Cache(Op::Write, 0, 4096)], "then the fill begins");
    assert_eq!((world.steps.open(), world.backings.writes()), (0, 0));
}

#[test]
fn a_decision_holds_up_the_request_or_only_its_filling() {
    let settings = |decision| MachineSettings {
        decision,
        decision_time: cachewright_types::Nanos(300),
        ..MachineSettings::default()
    };
    let mut whole = World::new(&settings(Decision::BeforeRequest), 1);
    whole.request(Op::Read, 0..4096, fetches(0..1));
    assert_eq!(whole.carry_out(), [Done::Delay]);
    assert_eq!(whole.carry_out(), [Done::Backing(Op::Read, 0, 4096)]);
    let mut filling = World::new(&settings(Decision::BeforeFill), 1);
    filling.request(Op::Read, 0..4096, fetches(0..1));
    assert_eq!(filling.carry_out(), [Done::Delay, Done::Backing(Op::Read, 0, 4096)]);
    assert_eq!(filling.carry_out(), [Done::Cache(Op::Write, 0, 4096)]);
}

#[test]
fn what_goes_around_the_cache_is_joined_by_number_and_ordered_by_block() {
    let mut world = World::new(&MachineSettings::default(), 1);
    let around = |number| Move::Bypass { tenant: TENANT, number };
    world.request(Op::Write, 5 << SHIFT..10 << SHIFT, [5, 6, 9].map(around).to_vec());
    world.request(Op::Read, 6 << SHIFT..7 << SHIFT, vec![around(6)]);
    let writes = [Done::Backing(Op::Write, 5, 8192), Done::Backing(Op::Write, 9, 4096)];
    assert_eq!(world.carry_out(), writes);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Read, 6, 4096)]);
    let length = 1 << SHIFT;
    world.request(Op::Trim, 0..length, vec![Move::Trim]);
    world.request(Op::Trim, 0..0, vec![Move::Trim]);
    assert_eq!(world.carry_out(), [Done::Backing(Op::Trim, 0, length)], "an empty trim is none");
}
