//! Ports: what a tree needs from the outside, as traits. Implementations live in other crates; the kernel calls none.

pub mod blobs;
pub mod model;
pub mod tool;

use std::pin::Pin;

/// Something that a driver will have done. Dropping it stops the work.
pub type Pending<T> = Pin<Box<dyn Future<Output = T> + Send>>;
