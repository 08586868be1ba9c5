//! Memory of an agent in the world: while idle, and after its end.

use crate::alloc::{count, live_bytes};
use crate::kernel::Nursery;
use crate::measure::{row, verdict};
use crate::peer::Peer;

const AGENTS: u32 = 10_000;

/// Prints the table.
pub(crate) fn run(peer: Option<&Peer>) {
    let mut nursery = Nursery::new(AGENTS * 3);
    count();
    let before = live_bytes();
    let agents: Vec<_> = (0..AGENTS).map(|_| nursery.spawn()).collect();
    let idle = per_agent(before);
    let other = peer.map_or_else(String::new, |peer| format!("{:.0} (veronica)", peer.figure("bytes")));
    row("bytes per idle agent, 10,000 of them", &idle.to_string(), &other, &bound(idle, 1_000));
    for agent in agents {
        nursery.finish(agent);
    }
    let ended = per_agent(before);
    row("bytes per ended agent", &ended.to_string(), "", &bound(ended, 256));
}

fn per_agent(before: usize) -> usize {
    live_bytes().wrapping_sub(before) / AGENTS as usize
}

fn bound(bytes: usize, most: usize) -> String {
    format!("at most {most}: {}", verdict(bytes <= most))
}
