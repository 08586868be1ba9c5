//! The total memory of a live agent: its part of the world, its context, its task and its call. The journal is on
//! disk.

use spinney_kernel::primitives::Durability;
use spinney_kernel::world::TreeState;

use crate::alloc::{count, live_bytes};
use crate::measure::{row, verdict};
use crate::tree::{self, EACH, Idle, Plan, Scripted};

const LEADS: u32 = 10;
const AGENTS: usize = (LEADS * EACH) as usize;

/// Prints the table.
pub(crate) fn run() {
    count();
    line("bytes per agent with a call out, of 10,000", Idle::Calling, 8 * 1_024);
    line("bytes per idle agent, of 10,000", Idle::Asking, 2 * 1_024);
}

fn line(what: &str, idle: Idle, most: usize) {
    let bytes = per_agent(idle);
    row(what, &bytes.to_string(), "", &format!("at most {most}: {}", verdict(bytes <= most)));
}

fn per_agent(idle: Idle) -> usize {
    let runtime = tree::runtime();
    let folder = tree::folder();
    let before = live_bytes();
    let model = Scripted::new(Plan::Leads(LEADS, idle));
    let home = tree::home_with(tree::sqlite(folder.path()), &model);
    runtime.block_on(async {
        let tree = tree::start(&home, Durability::Normal).await;
        match idle {
            Idle::Calling => model.stuck(AGENTS).await,
            Idle::Asking => assert_eq!(tree.settled().await.state, TreeState::Waiting),
        }
    });
    live_bytes().wrapping_sub(before) / AGENTS
}
