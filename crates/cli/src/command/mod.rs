//! The commands: one file each, or one for several that work the same way.

mod attach;
mod check;
mod checkpoint;
mod completions;
pub(crate) mod costs;
mod doctor;
mod events;
mod exec;
mod files;
mod init;
mod models;
mod ps;
mod questions;
mod replay;
mod resume;
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

use crate::args::{Args, Command, Shared};
use crate::events::screen::Style;
use crate::exec::{guard, homes};
use crate::exit::Exit;
use crate::home;
use crate::result::{Outcome, failed};
use crate::terminal::Terminal;

pub(crate) async fn run(args: Args) -> Result<Exit> {
    let given = args.home.unwrap_or_else(home::nearest);
    // A run of `exec` has a home of its own below this one.
    let found = args.command.tree().map(|tree| homes::find(&given, tree)).transpose()?;
    let home = found.as_deref().unwrap_or(&given);
    let colour = args.color;
    let terminal = Terminal::of_output(colour);
    if args.accept_loss {
        let style = if args.command.ends_in_a_result() { Style::Json } else { Style::Lines };
        let accepted = home::accept_loss(home);
        accepted
            .map_err(|error| failed(style, |failure| Outcome::without_a_look(home, None, failure), error))?;
    }
    match args.command {
        Command::Run(args) => run::run(home, args, terminal).await,
        Command::Exec(args) => exec::exec(home, *args, colour).await,
        Command::ExecGuard(args) => guard::guard(args).await,
        Command::Check(args) => check::check(home, &args),
        Command::Init(args) => init::init(home, &args, terminal),
        Command::Resume(args) => resume::resume(home, &args, terminal).await,
        Command::Ps(args) => ps::ps(home, &args, terminal).await,
        Command::Models(args) => models::models(&args, terminal),
        Command::Doctor(args) => doctor::doctor(home, &args).await,
        Command::Events(args) => events::events(home, args, terminal).await,
        Command::Show(args) => show::show(home, &args, terminal),
        Command::Questions(args) => questions::questions(home, &args).await,
        Command::Shared(Shared { tree, key: Some(key), set: Some(set), expect_version, .. }) => {
            steer::write_value(home, tree.text(), &key, &set, expect_version).await
        }
        Command::Shared(args) => shared::shared(home, &args).await,
        Command::Top(args) => top::top(home, &args, terminal).await,
        Command::Attach(args) => attach::attach(home, &args, terminal).await,
        Command::Tree(args) => tree::tree(home, &args, terminal).await,
        Command::Costs(args) => costs::costs(home, &args, terminal),
        Command::Files(args) => files::files(home, &args, terminal),
        Command::Completions(args) => completions::completions(&args),
        Command::Window(args) => window::window(home, &args, terminal),
        Command::Replay(args) => replay::replay(home, &args, terminal),
        Command::Cancel(args) => steer::cancel(home, args).await,
        Command::Answer(args) => steer::answer(home, args).await,
        Command::Send(args) => steer::send(home, args).await,
        Command::Refresh(args) => steer::refresh(home, args).await,
        Command::Broadcast(args) => steer::broadcast(home, args).await,
        Command::Pause(args) => steer::pause(home, args).await,
        Command::Unpause(args) => steer::unpause(home, args).await,
        Command::Budget(args) => steer::budget(home, args).await,
        Command::Rm(args) => rm::rm(home, &args).await,
        Command::Checkpoint(args) => checkpoint::checkpoint(home, args, terminal).await,
    }
}
