//! Live servers and offline tools on real files and sockets.

mod refusals;
mod serving;
mod setup;
mod signals;
mod tools;
