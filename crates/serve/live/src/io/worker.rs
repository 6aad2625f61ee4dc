//! A thread that works through what it is handed, off the path of requests.
//!
//! For: work that may wait for a slow device, as the writing of a recording. Must never know: what
//! the work is. Units: items. The queue is bounded and handing over never waits.

use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, JoinHandle};

/// The calling thread takes the processor time that other threads leave, from now on: for work on
/// which no request waits. Where the system refuses that, it goes on as before.
pub fn run_behind_others() {
    // On Linux a process id of 0 stands for the calling thread.
    let _ = rustix::process::setpriority_process(None, LOWEST_PRIORITY);
}

/// The nicest value of setpriority(2).
const LOWEST_PRIORITY: i32 = 19;

/// Why an item was not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotTaken {
    /// The queue is full.
    Full,
    /// The thread has ended.
    Ended,
}

/// Hands items over; at the end of the items comes nothing.
#[derive(Debug)]
pub struct WorkerQueue<T>(SyncSender<Option<T>>);

impl<T> WorkerQueue<T> {
    /// Hands an item over without waiting. Errors: the item was dropped, and why.
    pub fn offer(&self, item: T) -> Result<(), NotTaken> {
        self.0.try_send(Some(item)).map_err(|error| match error {
            TrySendError::Full(_) => NotTaken::Full,
            TrySendError::Disconnected(_) => NotTaken::Ended,
        })
    }
}

/// The items that come to a thread, until their end.
#[derive(Debug)]
pub struct Items<T>(Receiver<Option<T>>);

impl<T> Iterator for Items<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        self.0.recv().ok().flatten()
    }
}

/// The thread; it ends with a result.
#[derive(Debug)]
pub struct Worker<T, R> {
    queue: WorkerQueue<T>,
    thread: JoinHandle<R>,
}

impl<T: Send + 'static, R: Send + 'static> Worker<T, R> {
    /// Begins a thread of this name before which at most `waiting` items wait. Errors: the
    /// system's.
    pub fn spawn(
        name: &str,
        waiting: usize,
        work: impl FnOnce(Items<T>) -> R + Send + 'static,
    ) -> std::io::Result<Worker<T, R>> {
        let (sender, receiver) = sync_channel(waiting);
        let thread = Builder::new().name(name.to_owned()).spawn(move || work(Items(receiver)))?;
        Ok(Worker { queue: WorkerQueue(sender), thread })
    }

    /// Where items are handed over.
    pub fn queue(&self) -> WorkerQueue<T> {
        WorkerQueue(self.queue.0.clone())
    }

    /// Lets the thread work through what it was handed, waits for it and returns its result;
    /// nothing if it has panicked. What is handed over later is dropped.
    pub fn finish(self) -> Option<R> {
        // A thread that has ended already takes nothing more.
        let _ = self.queue.0.send(None);
        self.thread.join().ok()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)] // a failed test may panic
mod tests {
    use super::*;

    #[test]
    fn items_are_worked_through_in_order_before_the_end() {
        let worker = Worker::spawn("sums", 8, |items: Items<u32>| items.collect::<Vec<_>>());
        let worker = worker.unwrap();
        let queue = worker.queue();
        (0..5).for_each(|item| queue.offer(item).unwrap());
        assert_eq!(worker.finish(), Some(vec![0, 1, 2, 3, 4]));
        assert_eq!(queue.offer(5), Err(NotTaken::Ended));
    }

    #[test]
    fn a_full_queue_takes_nothing_and_does_not_wait() {
        let (go, gone) = sync_channel::<()>(1);
        let work = move |mut items: Items<u32>| {
            gone.recv().unwrap();
            items.by_ref().count()
        };
        let worker = Worker::spawn("slow", 2, work).unwrap();
        let queue = worker.queue();
        queue.offer(1).unwrap();
        queue.offer(2).unwrap();
        assert_eq!(queue.offer(3), Err(NotTaken::Full));
        go.send(()).unwrap();
        assert_eq!(worker.finish(), Some(2));
    }
}
