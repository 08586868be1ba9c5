//! Everything for your own model: its trait, what comes with each attempt, and what an attempt ends in.

pub use spinney_kernel::budget::{Ceilings, Usage, Used};
pub use spinney_kernel::context::{Facts, Message, Origin, Packet, Shown, System, ToolDescription};
pub use spinney_kernel::definition::{Network, OnLost};
pub use spinney_kernel::port::blobs::BlobReader;
pub use spinney_kernel::port::model::{
    Allowance, Announced, AttemptError, DeltaKind, Deltas, Model, ModelAnswer, ModelAttempt, Purpose,
    StopReason,
};
pub use spinney_kernel::port::{AgentFolder, FolderAccess, FolderRight, Pending, Rights};
pub use spinney_kernel::primitives::{Body, Category, Fault, FaultKind, Part, PartKind};
pub use spinney_kernel::record::ToolAsk;
