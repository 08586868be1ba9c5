//! `spinney chat`: a conversation with the root of a tree that begins, or of one that waits.

use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Result, bail};
use spinney_host::continuing;
use spinney_host::defaults::Sourced;
use spinney_host::home::ids::{TreeInHome, find};
use spinney_host::home::open_read_only;
use spinney_kernel::record::ContinuedAs;
use spinney_terminal::Terminal;

use super::{resume, run};
use crate::args::{Chat, ChatStart, Resume, TreeArg};
use crate::exit::Exit;

pub(super) async fn chat(home: Sourced<&Path>, args: Chat, terminal: Terminal) -> Result<Exit> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        bail!(
            "a conversation needs a terminal: start the tree with `run --keep`, and use `send`, `resume` and `finish`"
        );
    }
    match args.start()? {
        ChatStart::Run(args) => run::run(home, *args, terminal).await,
        ChatStart::Resume(mut args) => {
            continue_if_over(home.value, &mut args).await?;
            resume::resume(home.value, &args, terminal).await
        }
    }
}

/// What has ended goes on in a tree that continues it.
async fn continue_if_over(home: &Path, args: &mut Resume) -> Result<()> {
    let found = find(home, &open_read_only(home)?, args.tree.text()).await?;
    if found.state.is_over() {
        let open = continuing::open(TreeInHome { home, tree: found.tree }, ContinuedAs::Conversation).await?;
        args.tree = TreeArg::named(open.place.tree);
    }
    Ok(())
}
