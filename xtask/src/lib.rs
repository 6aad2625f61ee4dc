//! Checks and generators of the workspace.
//!
//! For: `tidy` (style as a test) and `generate` (pages made from the registries). Must never know:
//! what the crates do beyond their tables. Nothing here is part of the product.

pub mod generate;
pub mod tidy;
