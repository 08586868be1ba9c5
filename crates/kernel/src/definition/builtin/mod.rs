//! The built-in tools, which the kernel answers itself: their names and descriptions.

mod descriptions;

use crate::primitives::{ToolName, limit};

/// A tool that the kernel answers itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Builtin {
    SpawnAgent,
    WaitAgent,
    SendMessage,
    /// Wait for a message of another agent.
    WaitMessage,
    /// Give a completed child one more task.
    FollowupTask,
    /// Let a new agent talk to the person until it hands back.
    DelegateToAgent,
    HandBack,
    /// List the agents of the tree.
    ListAgents,
    CancelAgent,
    AskHuman,
    ReadContext,
    WriteContext,
    ListContext,
    /// Run a graph of steps below the agent.
    RunPipeline,
}

impl Builtin {
    pub const ALL: [Self; 14] = [
        Self::SpawnAgent,
        Self::WaitAgent,
        Self::SendMessage,
        Self::FollowupTask,
        Self::ListAgents,
        Self::CancelAgent,
        Self::AskHuman,
        Self::ReadContext,
        Self::WriteContext,
        Self::ListContext,
        Self::RunPipeline,
        Self::WaitMessage,
        Self::DelegateToAgent,
        Self::HandBack,
    ];

    /// Those that start agents.
    pub const STARTING: [Self; 3] = [Self::SpawnAgent, Self::RunPipeline, Self::DelegateToAgent];

    /// Those of a tree under these rules.
    pub fn under(rules: u32) -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(move |builtin| builtin.since() <= rules)
    }

    /// The first rules that know it.
    const fn since(self) -> u32 {
        match self {
            Self::WaitMessage | Self::DelegateToAgent | Self::HandBack => 8,
            Self::ReadContext | Self::WriteContext | Self::ListContext | Self::RunPipeline => 5,
            Self::SpawnAgent
            | Self::WaitAgent
            | Self::SendMessage
            | Self::FollowupTask
            | Self::ListAgents
            | Self::CancelAgent
            | Self::AskHuman => 0,
        }
    }

    /// The largest arguments of a call, in bytes.
    #[must_use]
    pub const fn args_bytes_max(self) -> usize {
        match self {
            Self::WriteContext => limit::VALUE_ARGS_BYTES_MAX,
            _ => limit::ARGS_BYTES_MAX,
        }
    }

    /// The name that models use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::SpawnAgent => "spawn_agent",
            Self::WaitAgent => "wait_agent",
            Self::SendMessage => "send_message",
            Self::WaitMessage => "wait_message",
            Self::FollowupTask => "followup_task",
            Self::DelegateToAgent => "delegate_to_agent",
            Self::HandBack => "hand_back",
            Self::ListAgents => "list_agents",
            Self::CancelAgent => "cancel_agent",
            Self::AskHuman => "ask_human",
            Self::ReadContext => "read_context",
            Self::WriteContext => "write_context",
            Self::ListContext => "list_context",
            Self::RunPipeline => "run_pipeline",
        }
    }

    #[must_use]
    pub fn named(name: &ToolName) -> Option<Self> {
        Self::ALL.into_iter().find(|builtin| builtin.as_str() == name.as_str())
    }

    /// The one with this name in a tree under these rules.
    #[must_use]
    pub fn named_under(rules: u32, name: &ToolName) -> Option<Self> {
        Self::named(name).filter(|builtin| builtin.since() <= rules)
    }
}
