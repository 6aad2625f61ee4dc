//! placeholder header
