//! A monitor over sockets: what it answers, what it refuses, and when it ends.

mod answers;
mod metric_names;
mod sample;
