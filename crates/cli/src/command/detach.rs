//! `spinney run --detach`: a second process of this program runs the tree. It asks what it has to at this terminal, and leaves
//! it when the tree has started.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, Result, bail};
use spinney_host::detached;
use spinney_kernel::primitives::TreeId;
use spinney_terminal::out;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::Command;

use crate::exit::Exit;
use crate::hint::about;

/// The process that runs the tree has this option in place of `--detach`.
const APART: &str = "--detached";
/// Longer than an id and the end of its line.
const ANSWER_BYTES_MAX: u64 = 256;

/// Starts the process, and leaves when its tree has started.
pub(super) async fn start_apart(home: &Path) -> Result<Exit> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let words = std::env::args_os().skip(1);
    let words = words.map(|word| if word == "--detach" { OsString::from(APART) } else { word });
    let mut command = Command::new(program);
    command.args(words).stdout(Stdio::piped()).kill_on_drop(false);
    let mut child = command.spawn().context("cannot start another process")?;
    let mut answer = String::new();
    if let Some(stdout) = child.stdout.take() {
        // It comes when the process has left this terminal. If it ends before, there is none.
        BufReader::new(stdout).take(ANSWER_BYTES_MAX).read_line(&mut answer).await?;
    }
    let Ok(tree) = answer.trim().parse::<TreeId>() else {
        // It has said why.
        let status = child.wait().await?;
        return match status.code() {
            Some(2) => Ok(Exit::Usage),
            Some(1) => Ok(Exit::Failed),
            _ => bail!("the process that should run the tree ended ({status})"),
        };
    };
    out::line(&tree.to_string())?;
    let attach = about(home, "attach", tree, &[]);
    out::note(&format!("it runs in a separate process; follow it with: {attach}"));
    Ok(Exit::Completed)
}

/// Tells the process that started this one which tree runs here, and leaves its terminal.
pub(super) fn leave(folder: &Path, tree: TreeId) -> Result<()> {
    detached::leave_terminal(folder).context("cannot leave the terminal")?;
    out::line(&tree.to_string())?;
    detached::leave_output().context("cannot leave the output")
}
