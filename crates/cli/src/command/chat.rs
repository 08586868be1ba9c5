//! `spinney chat`: a conversation with the root of a tree that begins, or of one that waits.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Result, bail};
use spinney_host::defaults::Sourced;
use spinney_terminal::Terminal;

use super::{resume, run};
use crate::args::{Chat, ChatStart};
use crate::exit::Exit;

pub(super) async fn chat(home: Sourced<&Path>, args: Chat, terminal: Terminal) -> Result<Exit> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        bail!(
            "a conversation needs a terminal: start the tree with `run --keep`, and use `send`, `resume` and `finish`"
        );
    }
    match args.start()? {
        ChatStart::Run(args) => run::run(home, *args, terminal).await,
        ChatStart::Resume(args) => resume::resume(home.value, &args, terminal).await,
    }
}
