//! What an agent's next packet holds, by category, and what was left out.

use serde::Serialize;
use spinney_kernel::definition::{Preset, Shares};
use spinney_kernel::primitives::{AgentId, Category, Seq, TreeId};
use spinney_kernel::record::{LeftOut, Tie};

use crate::packet_prefix::PacketPrefix;
use crate::recall::{RecalledAgent, SharedThread};

/// The window of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WindowView {
    /// Its tree.
    pub tree: TreeId,
    /// The agent.
    pub agent: AgentId,
    /// Its state.
    pub state: String,
    /// The last event that was applied.
    pub seq: Seq,
    /// Most tokens; `None` if it is unlimited.
    pub size: Option<u64>,
    /// What determines its size.
    pub because: Option<String>,
    /// How it is shared out, if it has a size.
    pub preset: Option<Preset>,
    /// Tokens of its messages.
    pub used: u64,
    /// How many there are.
    pub messages: usize,
    /// How many of them are new in the next packet.
    pub unread: usize,
    /// Images among them.
    pub images: usize,
    /// What is used of its size.
    pub percent: Option<u64>,
    /// What was left out, of all categories.
    pub left_out: LeftOut,
    /// Images that are only placeholders.
    pub images_left_out: u64,
    /// The last event that took something out.
    pub last_cut: Option<Seq>,
    /// Tokens of the digest of left-out messages.
    pub in_short: u64,
    /// Its model's summary of what was left out.
    pub summary: Option<String>,
    /// How the packets of its turns begin.
    pub prefix: PacketPrefix,
    /// The thread that it shares with others.
    pub thread: Option<SharedThread>,
    /// Those that hold something, had something left out or have a share.
    pub categories: Vec<CategoryUse>,
}

/// What a category of messages takes of a window.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CategoryUse {
    /// The category.
    pub category: Category,
    /// Tokens that it may take; `None` in a window without a bound.
    pub share: Option<u64>,
    /// Tokens that it takes.
    pub used: u64,
    /// What was left out of it.
    pub left_out: LeftOut,
}

impl WindowView {
    /// That of an agent of a tree.
    #[must_use]
    pub fn new(tree: TreeId, agent: &AgentId, recalled: &RecalledAgent) -> Self {
        let window = &recalled.window;
        let percent = |size: u64| window.used().saturating_mul(100) / size.max(1);
        Self {
            tree,
            agent: agent.clone(),
            state: recalled.state.to_string(),
            seq: recalled.seq,
            size: window.size(),
            because: recalled.because.clone(),
            preset: window.size().map(|_| recalled.preset),
            used: window.used(),
            messages: window.headers().len(),
            unread: window.unread(),
            images: window.images(),
            percent: window.size().map(percent),
            left_out: left_out(recalled),
            images_left_out: recalled.images_left_out(),
            last_cut: recalled.last_cut,
            in_short: in_short(recalled),
            summary: recalled.summary.clone(),
            prefix: recalled.prefix.clone(),
            thread: recalled.thread.clone(),
            categories: categories(recalled),
        }
    }
}

fn categories(recalled: &RecalledAgent) -> Vec<CategoryUse> {
    let window = &recalled.window;
    let shares = window.size().map(|size| Shares::new(recalled.preset, size));
    let row = |category| {
        let mut gone = window.left_out();
        let left_out = gone.find(|(gone, _)| *gone == category).map(|(_, left_out)| left_out);
        CategoryUse {
            category,
            share: shares.map(|shares| shares.get(category)),
            used: window.used_by(category),
            left_out: left_out.unwrap_or_default(),
        }
    };
    let has_something =
        |row: &CategoryUse| row.share.unwrap_or(0) > 0 || row.used > 0 || row.left_out.messages > 0;
    Category::ALL.into_iter().map(row).filter(has_something).collect()
}

fn left_out(recalled: &RecalledAgent) -> LeftOut {
    recalled.window.left_out().fold(LeftOut::default(), |all, (_, left)| LeftOut {
        messages: all.messages.saturating_add(left.messages),
        tokens: all.tokens.saturating_add(left.tokens),
    })
}

fn in_short(recalled: &RecalledAgent) -> u64 {
    let headers = recalled.window.headers().iter();
    headers
        .filter(|header| header.tie == Tie::Folded)
        .map(|header| recalled.window.corrected(header.estimate.into()))
        .sum()
}
