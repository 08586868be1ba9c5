//! Commands of agents in a box that the kernel of the machine enforces. A command is hostile input, and so is everything
//! that it starts (decision 0058).
//!
//! Three processes make a box. The guard is a fork of this program, which was started again under another name (decision
//! 0069); it stays outside, samples what the box uses and ends it. The first process of the box makes it and collects what the command leaves. The
//! last one restricts itself and becomes the command. If any process outside of the box dies, also by `kill -9`, the
//! others end everything in the box.

mod calls;
mod command;
mod confinement;
mod descriptors;
mod disk_use;
mod entry;
mod exact_path;
mod filter_program;
mod fork_server;
mod forks;
mod handed_out;
mod inside;
mod kept_output;
mod kill;
mod landlock;
mod launcher;
mod machine;
mod mounts;
mod network;
mod order;
mod pause;
mod process_limit;
mod program;
mod refusal;
mod report;
mod requests;
mod reserved;
mod run;
mod step;
mod system_calls;
mod system_paths;
mod terminal;
mod ticks;
mod usage;
mod watch;

pub use self::confinement::{
    BoxLimits, BoxNetwork, BoxTier, BoxTierChoice, BoxWeakness, BoxedCommand, BoxedInput, Confinement,
    LocalhostMeaning, PlacedPath,
};
pub use self::entry::{HELPER_NAME, can_guard_boxes, guard_a_box};
pub use self::kept_output::{KeptOutput, OutputStream};
pub use self::launcher::BoxLauncher;
pub use self::machine::{
    LandlockSupport, MachineSupport, NamespaceSupport, ProcessListSupport, SeccompSupport,
};
pub use self::network::{BoxListener, BoxListeners};
pub use self::order::PrivateFile;
pub use self::program::BoxedProgram;
pub use self::refusal::{BoxRefusal, NamespaceNeed};
pub use self::report::BoxUsage;
pub(crate) use self::reserved::is_ours as is_reserved;
pub use self::run::{BoxLimit, BoxPipes, BoxedEnd, BoxedExit, BoxedRun};
pub use self::step::BoxStep;
pub use self::terminal::BoxTerminal;
