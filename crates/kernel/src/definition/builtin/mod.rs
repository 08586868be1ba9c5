//! The built-in tools, which the kernel answers itself: their names and descriptions.

mod words;

use crate::words::ToolName;

/// A tool that the kernel answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    SpawnAgent,
    WaitAgent,
    SendMessage,
    /// Give a completed child one more task.
    FollowupTask,
    /// List the agents of the tree.
    ListAgents,
    CancelAgent,
    AskHuman,
}

impl Builtin {
    pub const ALL: [Self; 7] = [
        Self::SpawnAgent,
        Self::WaitAgent,
        Self::SendMessage,
        Self::FollowupTask,
        Self::ListAgents,
        Self::CancelAgent,
        Self::AskHuman,
    ];

    /// The name that models use.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::SpawnAgent => "spawn_agent",
            Self::WaitAgent => "wait_agent",
            Self::SendMessage => "send_message",
            Self::FollowupTask => "followup_task",
            Self::ListAgents => "list_agents",
            Self::CancelAgent => "cancel_agent",
            Self::AskHuman => "ask_human",
        }
    }

    #[must_use]
    pub fn named(name: &ToolName) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.word() == name.as_str())
    }
}
