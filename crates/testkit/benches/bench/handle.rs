//! Placeholder for the handle's table.
use crate::peer::Peer;
/// Prints the table.
pub(crate) fn run(_peer: Option<&Peer>) {}
