//! Ports: what a tree needs from the outside, as traits. Implementations live in other crates; the kernel calls none.

pub mod journal;
