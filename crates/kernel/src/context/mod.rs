//! Contexts: what an agent knows, as a list of messages that only grows, and the packet of them that one call sees.
//! The world keeps counts; the texts stand in events, and this is the fold that reads them.

mod message;

pub use message::{Message, Origin, Packet, ToolAsk};
