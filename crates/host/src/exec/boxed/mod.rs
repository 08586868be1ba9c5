//! The box around somebody else's program (decision 0071): the folder that it was started in, its own configuration and
//! history, the programs of the machine, the gateway, and what the person names. Nothing else of the user is in there.

mod configuration;
pub(super) mod installation;
mod options;
mod program_box;
mod running;

pub use self::configuration::ProgramConfigurationError;
pub use self::options::{BoxOptions, GivenBox, UnreadablePath};
pub use self::program_box::{BoxStart, ProgramBox, ProgramBoxError};
pub(super) use self::running::BoxedProgramEnd;
pub use self::running::{BoxedProgramRun, RefusedConnection};
