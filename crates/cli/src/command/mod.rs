//! The commands: one file each, or one for several that work the same way.

mod attach;
mod chat;
mod check;
mod checkpoint;
mod completions;
mod config;
pub(crate) mod costs;
mod detach;
mod doctor;
mod events;
mod exec;
mod export;
mod files;
mod files_diff;
mod import;
mod init;
mod man;
mod mcp;
mod mcp_install;
mod mcp_login;
mod models;
mod ps;
mod questions;
mod replay;
mod resume;
mod resume_elsewhere;
mod rm;
mod run;
mod shared;
mod show;
mod show_calls;
mod steer;
mod top;
mod tree;
mod window;

use anyhow::Result;
use spinney_host::defaults::Sourced;
use spinney_host::home::{self, side_journals};
use spinney_store::{Loss, OpenHomeError};
use spinney_terminal::{Terminal, out};

use crate::args::{Args, Command};
use crate::events::screen::Style;
use crate::exec::guard;
use crate::exit::Exit;
use crate::result::failed_unseen;

pub(crate) async fn run(args: Args) -> Result<Exit> {
    let source = args.home_source();
    let given = args.home.unwrap_or_else(home::nearest);
    // Its tree may be in a side journal.
    let home = match args.command.tree() {
        Some(tree) => side_journals::find(&given, tree).await?,
        None => given.clone(),
    };
    let home = home.as_path();
    let colour = args.color.into();
    let terminal = Terminal::of_output(colour);
    if args.accept_loss {
        let style = if args.command.ends_in_a_result() { Style::Json } else { Style::Lines };
        // `exec` names the run that it resumes by an option.
        let lost = match args.command.resumed_run() {
            Some(id) => &side_journals::find(&given, id).await?,
            None => home,
        };
        match spinney_host::trust::accept_loss(lost).await {
            Ok(accepted) => note_loss(accepted),
            Err(error) => return Err(failed_unseen(style, home, None, error.into()).await),
        }
    }
    match args.command {
        Command::Run(args) => run::run(Sourced::new(home, source), args, terminal).await,
        Command::Exec(args) => exec::exec(Sourced::new(home, source), *args, colour).await,
        Command::ExecGuard(args) => guard::guard(args).await,
        Command::Check(args) => check::check(&Sourced::new(home, source), &args, terminal),
        Command::Init(args) => init::init(home, &args, terminal),
        Command::Resume(args) => resume::resume(home, &args, terminal).await,
        Command::Ps(args) => ps::ps(home, &args, terminal).await,
        Command::Models(args) => models::models(&args, terminal),
        Command::Mcp(args) => mcp::mcp(home, &args).await,
        Command::Config(args) => config::config(&args, terminal),
        Command::Doctor(args) => doctor::doctor(home, &args).await,
        Command::Events(args) => events::events(home, args, terminal).await,
        Command::Show(args) => show::show(home, &args, terminal).await,
        Command::Questions(args) => questions::questions(home, &args).await,
        Command::Shared(args) => shared::shared(home, &args).await,
        Command::Top(args) => top::top(home, &args, terminal).await,
        Command::Attach(args) => attach::attach(home, &args, terminal).await,
        Command::Tree(args) => tree::tree(home, &args, terminal).await,
        Command::Costs(args) => costs::costs(home, &args, terminal).await,
        Command::Files(args) => files::files(home, &args, terminal).await,
        Command::Completions(args) => completions::completions(&args),
        Command::Man(args) => man::man(&args),
        Command::Window(args) => window::window(home, &args, terminal).await,
        Command::Replay(args) => replay::replay(home, &args, terminal).await,
        Command::Cancel(args) => steer::cancel(home, args).await,
        Command::Answer(args) => steer::answer(home, args).await,
        Command::Send(args) => steer::send(home, args).await,
        Command::Ask(args) => steer::ask_agent(home, args, terminal).await,
        Command::Refresh(args) => steer::refresh(home, args).await,
        Command::Broadcast(args) => steer::broadcast(home, args).await,
        Command::Pause(args) => steer::pause(home, args).await,
        Command::Unpause(args) => steer::unpause(home, args).await,
        Command::Budget(args) => steer::budget(home, args).await,
        Command::Finish(args) => steer::conclude(home, args).await,
        Command::Chat(args) => chat::chat(Sourced::new(home, source), *args, terminal).await,
        Command::Charge(args) => steer::charge(home, args).await,
        Command::Redirect(args) => steer::redirect(home, args).await,
        Command::Rm(args) => rm::rm(home, &args).await,
        Command::Export(args) => export::export(home, &args).await,
        Command::Import(args) => import::import(home, &args).await,
        Command::Checkpoint(args) => checkpoint::checkpoint(home, args, terminal).await,
    }
}

/// Says what was given up by accepting a loss.
fn note_loss(accepted: Option<Loss>) {
    let Some(Loss { error, set_aside }) = accepted else {
        return out::note("no confirmed commit is missing: --accept-loss changed nothing");
    };
    let what = match error {
        OpenHomeError::Lost { found, confirmed, .. } => {
            format!("gave up commits {} to {confirmed}", found + 1)
        }
        _ => "continued without knowing whether commits are missing".to_owned(),
    };
    out::note(&format!("{what}; the journal as it was found is kept in {}", set_aside.display()));
}
