//! Input and output in virtual time: files on models of devices, and one clock.
//!
//! A sibling of those in `live/io`: the server does not know that it is rehearsed. An operation is
//! done when the model of its device says so; time goes on only in [`Io::wait`], to the next event,
//! and where the processor works ([`VirtualIo::work`]). The processor is one, as the server has one
//! thread: while it works, operations end unseen. Where nothing is to be done the server looks for
//! a while and then sleeps, as `live/io/uring` does; what ends a sleep is seen late
//! ([`Processor`]). The rules of `live/io` hold: what is read is what was written last, and a write
//! takes effect when it is done.
//!
//! A discard is a trim of the device. So are zeroes, and space for them: a file system changes its
//! own tables then and moves no data. Sockets there are none. Units: bytes, nanoseconds.

use super::contents::Contents;
use crate::machine::Processor;
use cachewright_device::report::Use;
use cachewright_device::served::drawn_ns;
use cachewright_device::{AnyDevice, Command, Completion, Report};
use cachewright_live::io::lookout::{LOOK_NS, Lookout};
use cachewright_live::io::sim::{Fate, SECTOR};
use cachewright_live::io::{ALIGNMENT, Done, FileExtent, FileId, Io, IoError, IoOp, Output, Token};
use cachewright_types::{Bytes, Nanos, Op, Rng, Seed, TenantId};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The commands of a rehearsed server come by one queue of its devices.
const QUEUE: TenantId = TenantId(0);

/// Draws what varies of a processor.
const PROCESSOR_SEED: Seed = Seed(2);

cachewright_types::index_ids! {
    /// A model of a device.
    ModelId,
}

/// A model, and how it was used.
struct Model {
    device: AnyDevice,
    used: Use,
    /// Commands that have ended, and were not taken.
    ended: Vec<Completion>,
    /// Bytes that files have taken.
    taken: u64,
}

impl Model {
    /// Lets everything that is due happen.
    fn advance(&mut self, now: Nanos) {
        let before = self.ended.len();
        self.device.advance(now, &mut self.ended);
        for completion in &self.ended[before..] {
            self.used.completed(completion.finished);
        }
    }
}

/// A file: a range of a device.
struct VirtualFile {
    model: ModelId,
    /// Its first byte on the device.
    base: u64,
    bytes: u64,
    contents: Contents,
}

/// An operation on a device; one of a server that was killed has no owner.
struct UnderWay {
    owner: Option<(Token, IoOp)>,
}

/// What a server that waits is told of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Event {
    /// A request of a client.
    Arrival,
    Timer,
    Operation,
}

/// A timer or an arrival: the earliest first, of equal ones the one that began first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct DueAt {
    at_ns: u64,
    number: u64,
    token: Token,
    event: Event,
}

/// What was due in one wait.
#[derive(Clone, Copy, Debug, Default)]
struct Taken {
    /// Operations on devices.
    operations: u64,
    /// What came first of all.
    first: Option<Event>,
}

/// Files, devices and a clock; see the top of the file.
pub struct VirtualIo {
    models: Vec<Model>,
    files: Vec<VirtualFile>,
    under_way: Slab<UnderWay>,
    /// Those of them that have an owner.
    owned: usize,
    /// Syncs among these.
    syncs: usize,
    timers: BinaryHeap<Reverse<DueAt>>,
    timers_begun: u64,
    /// Done when they began.
    at_once: Vec<Done>,
    now_ns: u64,
    processor: Processor,
    /// Draws what varies of it.
    rng: Rng,
    /// For waits without and with operations under way.
    lookouts: [Lookout; 2],
    worked_ns: u64,
}

impl VirtualIo {
    /// No devices, at time 0, and a processor.
    pub fn new(processor: Processor) -> VirtualIo {
        VirtualIo {
            models: Vec::new(),
            files: Vec::new(),
            under_way: Slab::new(),
            owned: 0,
            syncs: 0,
            timers: BinaryHeap::new(),
            timers_begun: 0,
            at_once: Vec::new(),
            now_ns: 0,
            processor,
            rng: PROCESSOR_SEED.rng(),
            lookouts: Default::default(),
            worked_ns: 0,
        }
    }

    /// One more device.
    pub fn add_model(&mut self, device: AnyDevice) -> ModelId {
        self.models.push(Model { device, used: Use::default(), ended: Vec::new(), taken: 0 });
        ModelId::new(self.models.len() - 1)
    }

    /// A file of zeroes behind the others on a device. Errors: the bytes that the device has left,
    /// which are fewer.
    pub fn add_file(&mut self, model: ModelId, bytes: u64) -> Result<FileId, Bytes> {
        let device = &mut self.models[model.index()];
        let left = device.device.capacity().0.saturating_sub(device.taken);
        let space = bytes.checked_next_multiple_of(ALIGNMENT as u64).unwrap_or(u64::MAX);
        if space > left {
            return Err(Bytes(left));
        }
        let (base, contents) = (device.taken, Contents::default());
        device.taken += space;
        self.files.push(VirtualFile { model, base, bytes, contents });
        Ok(FileId::new(self.files.len() - 1))
    }

    /// The processor works for so long.
    pub fn work(&mut self, time_ns: u64) {
        self.now_ns += time_ns;
        self.worked_ns += time_ns;
    }

    /// A client's request arrives at a time, which `token` says then.
    pub fn await_arrival(&mut self, token: Token, at_ns: u64) {
        self.begin_timer(token, at_ns, Event::Arrival);
    }

    fn begin_timer(&mut self, token: Token, at_ns: u64, event: Event) {
        self.timers_begun += 1;
        let number = self.timers_begun;
        self.timers.push(Reverse(DueAt { at_ns, number, token, event }));
    }

    /// How long the processor has worked; looks for completions are no work.
    pub fn worked_ns(&self) -> u64 {
        self.worked_ns
    }

    /// How devices are used counts from now on. Nothing is under way.
    pub fn begin_measuring(&mut self) {
        self.models.iter_mut().for_each(|model| model.used = Use::default());
    }

    /// Operations on devices that are under way.
    pub fn operations(&self) -> usize {
        self.owned
    }

    /// How a device was used, and what it did.
    pub fn used(&mut self, model: ModelId) -> (Use, Report) {
        let now = Nanos(self.now_ns);
        let model = &mut self.models[model.index()];
        model.advance(now);
        (model.used, model.device.report(now))
    }

    /// Bytes of memory that the content of all files takes.
    pub fn memory(&self) -> u64 {
        self.files.iter().map(|file| file.contents.memory()).sum()
    }

    /// The server is killed: nothing waits for an operation any more. Of each write that was under
    /// way nothing is there, all of it, or some of its sectors, as `rng` chooses. Devices go on
    /// with the commands that they have.
    pub fn kill(&mut self, rng: &mut Rng) {
        self.timers.clear();
        self.at_once.clear();
        (self.owned, self.syncs) = (0, 0);
        for (_, one) in &mut self.under_way {
            let Some((_, op)) = one.owner.take() else { continue };
            let Some((file, _, length)) = op.file_range() else { continue };
            let contents = &mut self.files[file.index()].contents;
            match (op, Fate::random(length as usize, rng)) {
                (IoOp::Write { offset, buffer, .. }, fate) => {
                    for part in fate.kept(buffer.len()) {
                        contents.write(offset + part.start as u64, &buffer[part]);
                    }
                }
                (
                    IoOp::Discard { offset, length, .. }
                    | IoOp::Zero { offset, length, .. }
                    | IoOp::Provision { offset, length, .. },
                    Fate::Whole,
                ) => contents.clear(offset, length),
                _ => {}
            }
        }
    }

    /// Errors: a file that is not there, a range of it that is not aligned or ends beyond it, an
    /// operation that is not about a file.
    fn command(&self, op: &IoOp) -> Result<(ModelId, Command), IoError> {
        let (file, offset, length) = op.file_range().ok_or(IoError::NOT_SUPPORTED)?;
        let file = self.files.get(file.index()).ok_or(IoError::INVALID)?;
        let is_inside = offset.checked_add(length).is_some_and(|end| end <= file.bytes);
        if !offset.is_multiple_of(ALIGNMENT as u64) || !is_inside {
            return Err(IoError::INVALID);
        }
        let kind = match op {
            IoOp::Read { .. } => Op::Read,
            IoOp::Write { .. } => Op::Write,
            IoOp::Sync { .. } => Op::Flush,
            _ => Op::Trim,
        };
        // A device knows whole sectors; a file takes whole pages of it.
        let length = Bytes(length.next_multiple_of(SECTOR as u64));
        let offset = Bytes(file.base + offset);
        Ok((file.model, Command { tag: 0, op: kind, offset, length, tenant: QUEUE }))
    }

    /// Carries out what a device has done, for its owner.
    fn end(&mut self, token: Token, op: IoOp) -> Done {
        let output = match op {
            IoOp::Read { file, offset, mut buffer } => {
                self.files[file.index()].contents.read(offset, &mut buffer);
                let count = buffer.len();
                Output::Buffer(buffer, count)
            }
            IoOp::Write { file, offset, buffer } => {
                self.files[file.index()].contents.write(offset, &buffer);
                Output::Nothing
            }
            IoOp::Discard { file, offset, length }
            | IoOp::Zero { file, offset, length }
            | IoOp::Provision { file, offset, length } => {
                self.files[file.index()].contents.clear(offset, length);
                Output::Nothing
            }
            op => op.give_back(),
        };
        Done { token, output, error: None }
    }

    /// Takes what is due by now, in the order of time.
    fn take_due(&mut self, done: &mut Vec<Done>, taken: &mut Taken) {
        let now = Nanos(self.now_ns);
        let mut ended: Vec<Completion> = Vec::new();
        for model in &mut self.models {
            model.advance(now);
            ended.append(&mut model.ended);
        }
        // Ends at one time keep the order of devices.
        ended.sort_by_key(|completion| completion.finished);
        let mut ended = ended.into_iter().peekable();
        loop {
            let timer = self.timers.peek().map(|Reverse(timer)| timer.at_ns);
            let timer = timer.filter(|at_ns| *at_ns <= now.0);
            let is_timer = match (timer, ended.peek()) {
                (None, None) => return,
                (Some(at_ns), Some(next)) => at_ns < next.finished.0,
                (timer, _) => timer.is_some(),
            };
            if is_timer {
                let Some(Reverse(DueAt { token, event, .. })) = self.timers.pop() else { return };
                taken.first.get_or_insert(event);
                done.push(Done { token, output: Output::Nothing, error: None });
            } else if let Some(completion) = ended.next() {
                let one = self.under_way.try_remove(completion.tag as usize);
                if let Some((token, op)) = one.and_then(|one| one.owner) {
                    taken.first.get_or_insert(Event::Operation);
                    taken.operations += 1;
                    self.owned -= 1;
                    self.syncs -= usize::from(matches!(op, IoOp::Sync { .. }));
                    done.push(self.end(token, op));
                }
            }
        }
    }

    /// Lets time pass until something is done, in a look or in a sleep, which takes longer.
    fn wait_for_events(&mut self, done: &mut Vec<Done>, taken: &mut Taken) {
        let lookout = usize::from(self.owned > 0);
        let looks = self.syncs == 0 && self.lookouts[lookout].begins();
        let (begun_ns, before) = (self.now_ns, done.len());
        while done.len() == before {
            let Some(due_ns) = self.next_due_ns() else { return };
            self.now_ns = self.now_ns.max(due_ns);
            self.take_due(done, taken);
        }
        let passed_ns = self.now_ns - begun_ns;
        if looks {
            let is_found = passed_ns <= LOOK_NS && taken.first != Some(Event::Timer);
            self.lookouts[lookout].end(is_found);
        }
        if passed_ns > if looks { LOOK_NS } else { 0 } {
            self.now_ns += match taken.first {
                // A request arrives when the server takes it.
                None | Some(Event::Arrival) => 0,
                Some(Event::Timer) => drawn_ns(&self.processor.timer, &mut self.rng),
                Some(Event::Operation) => drawn_ns(&self.processor.wake, &mut self.rng),
            };
            self.work(self.processor.cold_ns(passed_ns));
            self.take_due(done, taken);
        }
    }

    /// When something happens next.
    fn next_due_ns(&self) -> Option<u64> {
        let timer = self.timers.peek().map(|Reverse(timer)| timer.at_ns);
        let due = self.models.iter().filter_map(|model| model.device.next_due());
        due.map(|due| due.0).chain(timer).min()
    }
}

impl Io for VirtualIo {
    fn submit(&mut self, token: Token, op: IoOp) {
        if let IoOp::Timer { at_ns } = op {
            return self.begin_timer(token, at_ns, Event::Timer);
        }
        let (model, mut command) = match self.command(&op) {
            Ok(command) => command,
            Err(error) => {
                let output = op.give_back();
                return self.at_once.push(Done { token, output, error: Some(error) });
            }
        };
        if let IoOp::Extents { length, .. } = op {
            // What is no hole may be anything.
            let output = Output::Extents(vec![FileExtent { bytes: length, is_hole: false }]);
            return self.at_once.push(Done { token, output, error: None });
        }
        let now = Nanos(self.now_ns);
        let model = &mut self.models[model.index()];
        // What was due before has happened, though the processor was busy.
        model.advance(now);
        self.syncs += usize::from(matches!(op, IoOp::Sync { .. }));
        command.tag = self.under_way.insert(UnderWay { owner: Some((token, op)) }) as u64;
        self.owned += 1;
        model.used.submitted(now, command.op, command.length);
        model.device.submit(now, command);
    }

    fn wait(&mut self, done: &mut Vec<Done>) {
        let before = done.len();
        done.append(&mut self.at_once);
        let mut taken = Taken::default();
        self.take_due(done, &mut taken);
        if done.len() == before {
            self.wait_for_events(done, &mut taken);
        }
        self.work(taken.operations * self.processor.operation.0);
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn file_bytes(&self, file: FileId) -> u64 {
        self.files.get(file.index()).map_or(0, |file| file.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use cachewright_device::model;
    use cachewright_live::io::{Buffer, batch};
    use cachewright_types::Value;
    use std::sync::Arc;

    const PAGE: u64 = ALIGNMENT as u64;

    /// Reads take 100 ns, writes 60 ns, two at a time.
    fn fixed() -> AnyDevice {
        let pair = |key: &str, value: &str| (key.to_owned(), Value::Text(value.to_owned()));
        let two = ("parallelism".to_owned(), Value::Int(2));
        let pairs = [pair("read", "100ns"), pair("write", "60ns"), pair("capacity", "64KiB"), two];
        model("fixed-latency").unwrap().build(&pairs).unwrap()
    }

    /// A processor that takes so long for an operation, and nothing for all else.
    fn processor(operation_ns: u64) -> Processor {
        let [request, answer] = [Nanos(0); 2];
        let operation = Nanos(operation_ns);
        Processor { request, operation, answer, ..Processor::default() }
    }

    fn world(operation_ns: u64) -> (VirtualIo, FileId) {
        let mut io = VirtualIo::new(processor(operation_ns));
        let model = io.add_model(fixed());
        let file = io.add_file(model, 4 * PAGE).unwrap();
        (io, file)
    }

    fn read(file: FileId, page: u64) -> IoOp {
        let buffer = Buffer::zeroed(ALIGNMENT);
        IoOp::Read { file, offset: page * PAGE, buffer }
    }

    fn write(file: FileId, page: u64, byte: u8) -> IoOp {
        let buffer = Arc::new(Buffer::copy_of(&[byte; ALIGNMENT]));
        IoOp::Write { file, offset: page * PAGE, buffer }
    }

    /// The names of what is done, with the time after each wait.
    fn ends(io: &mut VirtualIo, waits: usize) -> Vec<(Vec<u64>, u64)> {
        let mut found = Vec::new();
        for _ in 0..waits {
            let mut done = Vec::new();
            io.wait(&mut done);
            found.push((done.iter().map(|done| done.token.0).collect(), io.now_ns()));
        }
        found
    }

    /// By hand: three reads of 100 ns, two at a time, and a timer at 150 ns. Reads 1 and 2 end at
    /// 100 ns, read 3 at 200 ns. The processor takes 30 ns for each operation: at 160 ns it has
    /// taken reads 1 and 2, and finds that the timer is over; at 230 ns it has taken read 3.
    #[test]
    fn operations_end_when_their_device_says_and_the_processor_takes_them_one_by_one() {
        let (mut io, file) = world(30);
        (1..=3).for_each(|token| io.submit(Token(token), read(file, token - 1)));
        io.submit(Token(4), IoOp::Timer { at_ns: 150 });
        let expected = [(vec![1, 2], 160), (vec![4], 160), (vec![3], 230), (vec![], 230)];
        assert_eq!(ends(&mut io, 4), expected);
        assert_eq!((io.worked_ns(), io.operations()), (90, 0));
        let (used, _) = io.used(ModelId::new(0));
        // Two are inside from 0 to 100 ns, with the third that waits: 3 x 100 + 1 x 100.
        assert_eq!((used.commands, used.population.max()), ([3, 0, 0, 0], 3));
        assert_eq!((used.population.inside_ns(), used.population.busy_ns()), (400, 200));
    }

    /// By hand: a write that begins at 0 ends at 60 ns; the processor works until 90 ns and begins
    /// a second one then, which ends at 150 ns.
    #[test]
    fn while_the_processor_works_operations_end_unseen() {
        let (mut io, file) = world(0);
        io.submit(Token(1), write(file, 0, 1));
        io.work(90);
        io.submit(Token(2), write(file, 1, 2));
        assert_eq!(ends(&mut io, 2), [(vec![1], 90), (vec![2], 150)]);
        let (used, _) = io.used(ModelId::new(0));
        assert_eq!(used.population.inside_ns(), 120);
    }

    /// By hand, with 7 us to wake up by an operation, 9 us by a timer, and 5 us for what is cold. A
    /// read of 100 ns is found by a look. A timer at 100 us ends a sleep: at 114 us the server has
    /// it. So does an arrival at 200 us, which is seen then: at 205 us. A sync without time is not
    /// slept for.
    #[test]
    fn what_ends_a_sleep_is_seen_late() {
        let (mut io, file) = world(0);
        let [wake, timer, cold] = [7_000, 9_000, 5_000].map(|ns| vec![Nanos(ns)]);
        io.processor = Processor { wake, timer, cold, ..processor(0) };
        io.submit(Token(1), read(file, 0));
        io.submit(Token(2), IoOp::Timer { at_ns: 100_000 });
        io.await_arrival(Token(3), 200_000);
        let expected = [(vec![1], 100), (vec![2], 114_000), (vec![3], 205_000)];
        assert_eq!(ends(&mut io, 3), expected);
        io.submit(Token(4), IoOp::Sync { file });
        assert_eq!(ends(&mut io, 1), [(vec![4], 205_000)]);
        assert_eq!(io.worked_ns(), 10_000);
    }

    /// By hand, with 7 us to wake up: a sync is under way beside a read that takes 100 ns. No look
    /// is begun then, so that the server sleeps: the read is seen at 7.1 us, with the sync.
    #[test]
    fn while_a_sync_is_under_way_a_server_sleeps_at_once() {
        let mut io = VirtualIo::new(Processor { wake: vec![Nanos(7_000)], ..processor(0) });
        let flush = ("flush".to_owned(), Value::List(vec![Value::Text("1us".to_owned())]));
        let read_time = ("read".to_owned(), Value::List(vec![Value::Text("100ns".to_owned())]));
        let device = model("measured-latency").unwrap().build(&[flush, read_time]).unwrap();
        let model = io.add_model(device);
        let file = io.add_file(model, PAGE).unwrap();
        io.submit(Token(1), IoOp::Sync { file });
        io.submit(Token(2), read(file, 0));
        assert_eq!(ends(&mut io, 1), [(vec![2, 1], 7_100)]);
    }

    #[test]
    fn what_is_read_is_what_was_written_last() {
        let (mut io, file) = world(0);
        batch::write(&mut io, [(file, 0, Buffer::copy_of(&[3; 2 * ALIGNMENT]))]).unwrap();
        let pages = |io: &mut VirtualIo| {
            let found = batch::read(io, (0..3).map(|page| (file, page * PAGE, ALIGNMENT)));
            found.into_iter().map(|page| page.unwrap()[ALIGNMENT - 1]).collect::<Vec<u8>>()
        };
        assert_eq!(pages(&mut io), [3, 3, 0]);
        batch::run(&mut io, vec![IoOp::Zero { file, offset: PAGE, length: PAGE }]);
        assert_eq!(pages(&mut io), [3, 0, 0]);
        let beyond = batch::run(&mut io, vec![read(file, 4)]).remove(0);
        assert_eq!(beyond.unwrap_err(), IoError::INVALID);
    }

    #[test]
    fn files_lie_one_behind_the_other_as_far_as_the_device_goes() {
        let mut io = VirtualIo::new(processor(0));
        let model = io.add_model(fixed());
        assert_eq!(io.add_file(model, 10).map(|file| io.file_bytes(file)), Ok(10));
        assert_eq!(io.add_file(model, 16 * PAGE), Err(Bytes(15 * PAGE)));
        assert!(io.add_file(model, 15 * PAGE).is_ok());
        assert_eq!(io.add_file(model, 1), Err(Bytes(0)));
    }

    /// Whatever becomes of a write under way, what was done before is there, and nothing ends for
    /// an owner that is gone.
    #[test]
    fn a_kill_leaves_writes_under_way_wholly_in_part_or_not() {
        let mut found = [0; 3];
        for seed in 0..30 {
            let (mut io, file) = world(0);
            batch::write(&mut io, [(file, 0, Buffer::copy_of(&[1; ALIGNMENT]))]).unwrap();
            io.submit(Token(1), write(file, 0, 2));
            io.submit(Token(2), IoOp::Timer { at_ns: io.now_ns() });
            io.kill(&mut Seed(seed).rng());
            assert_eq!(io.operations(), 0);
            let page = batch::read(&mut io, [(file, 0, ALIGNMENT)]).remove(0).unwrap();
            let sectors: Vec<u8> = page.chunks(SECTOR).map(|sector| sector[0]).collect();
            assert!(page.chunks(SECTOR).all(|one| one.iter().all(|byte| *byte == one[0])));
            let old = sectors.iter().filter(|byte| **byte == 1).count();
            found[if old == 8 { 0 } else { 1 + usize::from(old > 0) }] += 1;
        }
        assert!(found.iter().all(|count| *count > 3), "{found:?}");
    }
}
