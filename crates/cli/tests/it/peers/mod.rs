//! Peers that we did not write, in place of our own upstream: aimock, which speaks the providers' formats, and a real small
//! model. They need more than Rust, so these tests have a feature of their own; `make test-peers` installs everything and
//! runs them.

mod aimock;
mod peer;
mod same_tree;
mod smollm2;
