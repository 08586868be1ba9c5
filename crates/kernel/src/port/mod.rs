//! Ports: the traits of models and tools. Implementations live in other crates; the kernel calls none of them.

pub mod blobs;
pub mod model;
pub mod tool;

use std::pin::Pin;

/// A driver's pending work. Dropping it stops the work.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;
