//! The hidden command that guards a program of `spinney exec`: ourselves again, as a process of the program's run.

use anyhow::Result;
use spinney_drivers::processes;

use crate::args::ExecGuard;
use crate::exit::Exit;

/// How the program ended is said through the guard's socket.
pub(crate) async fn guard(asked: ExecGuard) -> Result<Exit> {
    processes::guard(&asked.program).await?;
    Ok(Exit::Completed)
}
