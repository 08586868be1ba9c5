//! `run_command`: an agent runs a program in a box (`sandbox/`), in its own folder and in those that it was granted. What
//! a tree may do with it is checked before it starts; what a command left in `outputs/` is taken when it has ended.

mod answer;
mod args;
mod changed_settings;
mod command_tool;
mod confinement;
mod covers;
mod folder_sockets;
mod gate;
mod permissions;
mod program;
mod program_folder;
mod remedy;
mod tool;

pub use self::command_tool::CommandToolSpec;
pub use self::confinement::box_network;
pub use self::permissions::BoxPermissions;
pub use self::program_folder::{ProgramChanges, ProgramFolder, RepositoryAccess};
pub use self::remedy::{namespace_remedy, refusal_remedy};
pub use self::tool::Commands;
#[cfg(feature = "mcp")]
pub(crate) use self::{covers::FolderCovers, gate::said as refusal_in_words};
