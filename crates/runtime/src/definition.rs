//! What a tree is made of, for definitions in code: roles with their rights, models with their prices, limits, pipelines.

pub use spinney_kernel::budget::{CacheWrites, Price, PriceActive, PriceChange, PriceTier, Rates};
pub use spinney_kernel::definition::{
    Allow, Approval, ApprovalScope, BudgetSpec, CacheTime, Caps, Compact, Definition, FolderAccess,
    FolderGrants, Graph, GraphNode, GraphProblem, GraphStep, Lend, ModelProvider, ModelSpec, Network, NodeIx,
    OnLost, OnLow, OnPartialSuccess, OutputLimits, OutputSchema, PathStep, Preset, ProblemCode, RateLimit,
    Recursion, RedactionSpec, Refusal, RememberedApproval, Repeats, Role, RoleVisibility, Share,
    SharedAccess, Shares, SubjectKind, SubjectPattern, Tags, Thinking, TokenCounter, ToolSpec, ToolSubject,
    TreeLimits, Turns, Unpriced, ValueAccess, Visibility, WindowSpec, WrapUp,
};
pub use spinney_kernel::primitives::{
    Body, ByName, Durability, FolderPath, HostRule, RemoteHost, TokenCount,
};
