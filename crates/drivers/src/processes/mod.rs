//! Programs that are not ours, each under a guard: a process between this one and the program that ends everything of one
//! run, and only that. Any number of them run side by side in one process.
//!
//! A guard is the subreaper of its program, so whatever the program starts descends from the guard for as long as it lives,
//! also a daemon that has forked twice or a process in its own session. The guard ends all of it when the program ends, when
//! it is told to, and when its socket closes because the process that started it is gone. It is started by a command that
//! the face gives, which calls `guard` (decision 0047).

mod control;
mod descendants;
mod guard;
mod guarded_program;
mod own_process;

pub(crate) use self::descendants::children;

pub use self::control::ProgramSession;
pub use self::guard::guard;
pub use self::guarded_program::{GuardCommand, GuardedProgram, ProgramEnd, ProgramOrder, StandardStreams};
pub use self::own_process::{hide_from_programs, listen_unless_ignored};
