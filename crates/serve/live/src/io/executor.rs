//! Procedures over [`Io`](super::Io): each begins operations, waits for them, and goes on.
//!
//! An [`Executor`] holds the procedures of one thread. The owner of the `Io` carries out what is
//! under way: it takes the operations that procedures have begun ([`Executor::take_ops`]),
//! submits them, says what has come of each ([`Executor::end_op`]), and lets the procedures go on
//! ([`Executor::run`]).
//!
//! - **Order.** Procedures that can go on do so first come, first served, each until it waits
//!   again. The same operations that end in the same order give the same run, whatever the machine
//!   does.
//! - **Waiting.** A procedure waits for the futures of this file: [`Op`], [`Begun`], [`Event`] and
//!   [`Signal`]. They wake it by its number. It may be woken for nothing, and waits again; the
//!   waker of its context does nothing, so that a future of another kind would wait for ever.
//! - **Dropping.** An [`Op`] that is dropped goes on; what it brings is dropped when it is done.
//!   [`Executor::clear`] drops all procedures where they wait: what they have begun goes on.

use super::token::Submitter;
use super::{Io, IoError, IoOp, Output, Submit, Token};
use slab::Slab;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

cachewright_types::index_ids! {
    /// A procedure.
    TaskId,
    /// An operation that a procedure waits for.
    OpId,
}

/// A procedure that waits, or could go on.
struct Task {
    /// Nothing while it runs.
    procedure: Option<Pin<Box<dyn Future<Output = ()>>>>,
    /// It is among those that can go on.
    is_ready: bool,
}

/// How far an operation is.
enum OpState {
    /// It is under way; this procedure waits for it.
    UnderWay(TaskId),
    /// It is done, and its result has not been taken.
    Done(Result<Output, IoError>),
    /// Its result is not wanted any more.
    Dropped,
}

#[derive(Default)]
struct Core {
    tasks: RefCell<Slab<Task>>,
    ready: RefCell<VecDeque<TaskId>>,
    /// The procedure that runs.
    current: Cell<Option<TaskId>>,
    ops: RefCell<Slab<OpState>>,
    begun: RefCell<Vec<(Token, IoOp)>>,
}

impl Core {
    /// The procedure that runs now, to be woken later.
    fn current(&self) -> TaskId {
        self.current.get().unwrap_or(TaskId::NONE)
    }

    /// A procedure can go on.
    fn wake(&self, id: TaskId) {
        if let Some(task) = self.tasks.borrow_mut().get_mut(id.index())
            && !std::mem::replace(&mut task.is_ready, true)
        {
            self.ready.borrow_mut().push_back(id);
        }
    }
}

/// Procedures of one thread; a copy is the same one.
#[derive(Clone, Default)]
pub struct Executor(Rc<Core>);

impl Executor {
    /// A procedure begins, at the next [`Executor::run`].
    pub fn spawn(&self, procedure: impl Future<Output = ()> + 'static) {
        let procedure: Pin<Box<dyn Future<Output = ()>>> = Box::pin(procedure);
        let task = Task { procedure: Some(procedure), is_ready: true };
        let id = TaskId::new(self.0.tasks.borrow_mut().insert(task));
        self.0.ready.borrow_mut().push_back(id);
    }

    /// A procedure begins beside the one that begins it, which may wait for what it brings.
    pub fn begin<T: 'static>(&self, procedure: impl Future<Output = T> + 'static) -> Begun<T> {
        let state = BegunState {
            core: self.0.clone(),
            brought: Cell::new(None),
            waiting: Cell::new(TaskId::NONE),
        };
        let state = Rc::new(state);
        let begun = Begun(state.clone());
        self.spawn(async move {
            state.brought.set(Some(procedure.await));
            state.core.wake(state.waiting.get());
        });
        begun
    }

    /// Lets all procedures go on until each waits; false if none could.
    pub fn run(&self) -> bool {
        let mut has_run = false;
        loop {
            let Some(id) = self.0.ready.borrow_mut().pop_front() else { return has_run };
            let procedure = self.0.tasks.borrow_mut().get_mut(id.index()).and_then(|task| {
                task.is_ready = false;
                task.procedure.take()
            });
            let Some(mut procedure) = procedure else { continue };
            has_run = true;
            self.0.current.set(Some(id));
            let polled = procedure.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            self.0.current.set(None);
            let mut tasks = self.0.tasks.borrow_mut();
            match polled {
                Poll::Ready(()) => drop(tasks.try_remove(id.index())),
                Poll::Pending => {
                    if let Some(task) = tasks.get_mut(id.index()) {
                        task.procedure = Some(procedure);
                    }
                }
            }
        }
    }

    /// Procedures that have not ended.
    pub fn tasks(&self) -> usize {
        self.0.tasks.borrow().len()
    }

    /// Drops all procedures where they wait.
    pub fn clear(&self) {
        self.0.ready.borrow_mut().clear();
        let tasks = std::mem::take(&mut *self.0.tasks.borrow_mut());
        drop(tasks);
    }

    /// Begins an operation.
    pub fn begin_op(&self, op: IoOp) -> Op {
        self.call(|tasks, id| {
            let token = Submitter::Blocks.token(0, id.index());
            tasks.0.begun.borrow_mut().push((token, op));
        })
    }

    /// Has something else begin an operation, under this number: [`Executor::end_op`] says when it
    /// is done.
    pub fn call(&self, begin: impl FnOnce(&mut Executor, OpId)) -> Op {
        let id = OpId::new(self.0.ops.borrow_mut().insert(OpState::UnderWay(TaskId::NONE)));
        begin(&mut self.clone(), id);
        Op { core: self.0.clone(), id }
    }

    /// An operation is done. One that is not known is none of this executor.
    pub fn end_op(&self, id: OpId, result: Result<Output, IoError>) {
        let mut ops = self.0.ops.borrow_mut();
        let Some(state) = ops.get_mut(id.index()) else { return };
        match state {
            OpState::UnderWay(task) => {
                let task = *task;
                *state = OpState::Done(result);
                drop(ops);
                self.0.wake(task);
            }
            OpState::Done(_) => debug_assert!(false, "an operation is done once"),
            OpState::Dropped => drop(ops.try_remove(id.index())),
        }
    }

    /// Something that happens once.
    pub fn event(&self) -> Event {
        let state = EventState {
            core: self.0.clone(),
            outcome: Cell::new(None),
            waiting: RefCell::default(),
        };
        Event(Rc::new(state))
    }

    /// Something that happens again and again.
    pub fn signal(&self) -> Signal {
        let state =
            SignalState { core: self.0.clone(), given: Cell::new(0), waiting: RefCell::default() };
        Signal(Rc::new(state))
    }

    /// Hands the operations that were begun since the last call to `io`, in their order.
    pub fn take_ops(&self, io: &mut impl Io) {
        let mut begun = self.0.begun.borrow_mut();
        begun.drain(..).for_each(|(token, op)| io.submit(token, op));
    }
}

/// What is begun goes out with the next [`Executor::take_ops`].
impl Submit for Executor {
    fn submit(&mut self, token: Token, op: IoOp) {
        self.0.begun.borrow_mut().push((token, op));
    }
}

/// An operation under way: what it gives back, or why it failed.
#[must_use = "an operation is waited for, or dropped by name"]
pub struct Op {
    core: Rc<Core>,
    id: OpId,
}

impl Future for Op {
    type Output = Result<Output, IoError>;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut ops = self.core.ops.borrow_mut();
        match ops.get_mut(self.id.index()) {
            Some(OpState::UnderWay(task)) => {
                *task = self.core.current();
                Poll::Pending
            }
            Some(state @ OpState::Done(_)) => match std::mem::replace(state, OpState::Dropped) {
                OpState::Done(result) => Poll::Ready(result),
                _ => Poll::Ready(Err(IoError::IO)),
            },
            _ => Poll::Ready(Err(IoError::IO)), // It has been waited for.
        }
    }
}

impl Drop for Op {
    fn drop(&mut self) {
        let mut ops = self.core.ops.borrow_mut();
        let Some(state) = ops.get_mut(self.id.index()) else { return };
        match state {
            OpState::UnderWay(_) => *state = OpState::Dropped,
            // Its result is dropped behind the borrow.
            OpState::Done(_) | OpState::Dropped => {
                let ended = ops.try_remove(self.id.index());
                drop(ops);
                drop(ended);
            }
        }
    }
}

struct BegunState<T> {
    core: Rc<Core>,
    brought: Cell<Option<T>>,
    waiting: Cell<TaskId>,
}

/// A procedure that was begun beside another one: what it brings. It goes on if this is dropped.
pub struct Begun<T>(Rc<BegunState<T>>);

impl<T> Future for Begun<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, _context: &mut Context<'_>) -> Poll<T> {
        match self.0.brought.take() {
            Some(brought) => Poll::Ready(brought),
            None => {
                self.0.waiting.set(self.0.core.current());
                Poll::Pending
            }
        }
    }
}

struct EventState {
    core: Rc<Core>,
    outcome: Cell<Option<bool>>,
    waiting: RefCell<Vec<TaskId>>,
}

/// Something that happens once, well or not; a copy is the same one. Those that wait for it go on
/// in the order in which they began to wait.
#[derive(Clone)]
pub struct Event(Rc<EventState>);

impl Event {
    /// It has happened.
    pub fn set(&self, is_well: bool) {
        if self.0.outcome.get().is_none() {
            self.0.outcome.set(Some(is_well));
            let waiting = std::mem::take(&mut *self.0.waiting.borrow_mut());
            waiting.into_iter().for_each(|task| self.0.core.wake(task));
        }
    }

    /// Whether it has happened.
    pub fn is_set(&self) -> bool {
        self.0.outcome.get().is_some()
    }

    /// Whether both are the same one.
    pub fn is(&self, other: &Event) -> bool {
        Rc::ptr_eq(&self.0, &other.0)
    }

    /// Waits until it has happened; returns whether it has happened well.
    pub async fn wait(&self) -> bool {
        std::future::poll_fn(|_| match self.0.outcome.get() {
            Some(is_well) => Poll::Ready(is_well),
            None => {
                let (task, mut waiting) = (self.0.core.current(), self.0.waiting.borrow_mut());
                if waiting.last() != Some(&task) {
                    waiting.push(task);
                }
                Poll::Pending
            }
        })
        .await
    }
}

struct SignalState {
    core: Rc<Core>,
    /// How often it was given.
    given: Cell<u64>,
    waiting: RefCell<Vec<TaskId>>,
}

/// Something that happens again and again; a copy is the same one.
#[derive(Clone)]
pub struct Signal(Rc<SignalState>);

impl Signal {
    /// It happens now.
    pub fn give(&self) {
        self.0.given.set(self.0.given.get() + 1);
        let waiting = std::mem::take(&mut *self.0.waiting.borrow_mut());
        waiting.into_iter().for_each(|task| self.0.core.wake(task));
    }

    /// Waits until it happens the next time.
    pub async fn wait(&self) {
        let before = self.0.given.get();
        std::future::poll_fn(|_| {
            if self.0.given.get() > before {
                return Poll::Ready(());
            }
            let (task, mut waiting) = (self.0.core.current(), self.0.waiting.borrow_mut());
            if !waiting.contains(&task) {
                waiting.push(task);
            }
            Poll::Pending
        })
        .await;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::super::token::purpose;
    use super::*;
    use crate::io::sim::{Sim, SimFile};
    use crate::io::{Buffer, Done, FileId};
    use cachewright_types::Seed;
    use std::collections::BTreeSet;
    use std::sync::Arc;

    const PAGE: u64 = 4096;

    /// Lets procedures and the simulation go on until nothing is under way.
    fn drive(tasks: &Executor, sim: &mut Sim) {
        let mut done = Vec::new();
        loop {
            tasks.run();
            tasks.take_ops(sim);
            Io::wait(sim, &mut done);
            if done.is_empty() {
                return;
            }
            for Done { token, output, error } in done.drain(..) {
                let (_, id) = purpose(token);
                tasks.end_op(OpId::new(id), error.map_or(Ok(output), Err));
            }
        }
    }

    fn page(byte: u8) -> Arc<Buffer> {
        Arc::new(Buffer::copy_of(&[byte; PAGE as usize]))
    }

    /// Writes a page, makes it durable, and reads it again; returns what was read.
    async fn write_and_read(tasks: Executor, file: FileId, number: u64) -> u8 {
        let (offset, buffer) = (number * PAGE, page(number as u8));
        tasks.begin_op(IoOp::Write { file, offset, buffer }).await.unwrap();
        tasks.begin_op(IoOp::Sync { file }).await.unwrap();
        let buffer = Buffer::zeroed(PAGE as usize);
        match tasks.begin_op(IoOp::Read { file, offset, buffer }).await.unwrap() {
            Output::Buffer(data, _) => data[0],
            other => panic!("{other:?}"),
        }
    }

    /// Procedures side by side under a seed: the order in which they have ended, and what each has
    /// read.
    fn side_by_side(seed: u64) -> Vec<(u64, u8)> {
        let (tasks, mut sim) = (Executor::default(), Sim::new(Seed(seed)));
        let file = sim.add_file(SimFile::new(64 * PAGE));
        let ended = Rc::new(RefCell::new(Vec::new()));
        for number in 0..40 {
            let (own, list) = (tasks.clone(), ended.clone());
            tasks.spawn(async move {
                let found = write_and_read(own, file, number).await;
                list.borrow_mut().push((number, found));
            });
        }
        drive(&tasks, &mut sim);
        assert_eq!(tasks.tasks(), 0);
        ended.take()
    }

    #[test]
    fn procedures_go_on_side_by_side_and_a_seed_gives_their_order() {
        let mut orders = BTreeSet::new();
        for seed in 0..20 {
            let ended = side_by_side(seed);
            assert_eq!(ended, side_by_side(seed), "seed {seed}");
            assert!(
                ended.len() == 40
                    && ended.iter().all(|(number, found)| *number == u64::from(*found))
            );
            orders.insert(ended);
        }
        assert!(orders.len() > 10, "operations end in another order for another seed");
    }

    #[test]
    fn what_can_go_on_does_so_first_come_first_served() {
        let tasks = Executor::default();
        let (event, signal, order) =
            (tasks.event(), tasks.signal(), Rc::new(RefCell::new(Vec::new())));
        for number in 0..4 {
            let (event, signal, order) = (event.clone(), signal.clone(), order.clone());
            tasks.spawn(async move {
                assert!(event.wait().await);
                order.borrow_mut().push(number);
                signal.wait().await;
                order.borrow_mut().push(10 + number);
            });
        }
        assert!(tasks.run() && !tasks.run(), "all of them wait");
        event.set(true);
        event.set(false);
        assert!(event.is_set());
        tasks.run();
        assert_eq!(*order.borrow(), [0, 1, 2, 3]);
        signal.give();
        tasks.run();
        assert_eq!(order.borrow()[4..], [10, 11, 12, 13]);
        assert_eq!(tasks.tasks(), 0);
    }

    #[test]
    fn a_procedure_brings_its_result_to_the_one_that_began_it() {
        let (tasks, mut sim) = (Executor::default(), Sim::new(Seed(3)));
        let file = sim.add_file(SimFile::new(8 * PAGE));
        let sum = Rc::new(Cell::new(0_u32));
        let (own, found) = (tasks.clone(), sum.clone());
        tasks.spawn(async move {
            let begun: Vec<Begun<u8>> =
                (1..5).map(|number| own.begin(write_and_read(own.clone(), file, number))).collect();
            for begun in begun {
                found.set(found.get() + u32::from(begun.await));
            }
        });
        drive(&tasks, &mut sim);
        assert_eq!(sum.get(), 10);
    }

    #[test]
    fn what_is_dropped_goes_on_and_its_number_is_used_again() {
        let (tasks, mut sim) = (Executor::default(), Sim::new(Seed(5)));
        let file = sim.add_file(SimFile::new(8 * PAGE));
        drop(tasks.begin_op(IoOp::Write { file, offset: 0, buffer: page(9) }));
        drive(&tasks, &mut sim);
        assert!(tasks.0.ops.borrow().is_empty());
        let (own, read) = (tasks.clone(), Rc::new(Cell::new(0)));
        let found = read.clone();
        tasks.spawn(async move {
            let buffer = Buffer::zeroed(PAGE as usize);
            let read = own.begin_op(IoOp::Read { file, offset: 0, buffer });
            assert_eq!(read.id, OpId(0), "its number is free again");
            if let Ok(Output::Buffer(data, _)) = read.await {
                found.set(data[0]);
            }
        });
        drive(&tasks, &mut sim);
        assert_eq!((read.get(), tasks.0.ops.borrow().len()), (9, 0));
    }

    #[test]
    fn cleared_procedures_end_where_they_wait() {
        let (tasks, mut sim) = (Executor::default(), Sim::new(Seed(1)));
        let file = sim.add_file(SimFile::new(8 * PAGE));
        let alive = Rc::new(());
        for _ in 0..3 {
            let (own, held) = (tasks.clone(), alive.clone());
            tasks.spawn(async move {
                write_and_read(own, file, 1).await;
                drop(held);
            });
        }
        tasks.run();
        tasks.clear();
        assert_eq!((tasks.tasks(), Rc::strong_count(&alive)), (0, 1));
        drive(&tasks, &mut sim);
        assert!(tasks.0.ops.borrow().is_empty(), "what they have begun ends");
        tasks.end_op(OpId(77), Ok(Output::Nothing)); // It is none of this executor.
    }

    #[test]
    fn an_operation_that_fails_says_why() {
        let tasks = Executor::default();
        let (seen, mut number) = (Rc::new(Cell::new(None)), OpId::NONE);
        let op = tasks.call(|_, id| number = id);
        let found = seen.clone();
        tasks.spawn(async move { found.set(op.await.err()) });
        tasks.run();
        assert_eq!(seen.get(), None);
        tasks.end_op(number, Err(IoError::NO_SPACE));
        tasks.run();
        assert_eq!(seen.get(), Some(IoError::NO_SPACE));
    }
}
