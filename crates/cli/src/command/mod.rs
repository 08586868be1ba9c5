//! The commands: one file each, or one for several that work the same way.

mod check;
mod checkpoint;
mod doctor;
mod events;
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
mod steer;
mod window;

use anyhow::Result;

use crate::args::{Args, Command};
use crate::exit::Exit;
use crate::open_home;
use crate::result::{Outcome, failed};
use crate::screen::Style;

pub(crate) async fn run(args: Args) -> Result<Exit> {
    let home = args.home.as_path();
    if args.accept_loss {
        let style = if args.command.ends_in_a_result() { Style::Json } else { Style::Lines };
        let accepted = open_home::accept_loss(home);
        accepted
            .map_err(|error| failed(style, |failure| Outcome::without_a_look(home, None, failure), error))?;
    }
    match args.command {
        Command::Run(args) => run::run(home, args).await,
        Command::Check(args) => check::check(home, &args),
        Command::Init(args) => init::init(home, &args),
        Command::Resume(args) => resume::resume(home, &args).await,
        Command::Ps(args) => ps::ps(home, &args).await,
        Command::Models(args) => models::models(&args),
        Command::Doctor(args) => doctor::doctor(home, &args).await,
        Command::Events(args) => events::events(home, args).await,
        Command::Show(args) => show::show(home, &args),
        Command::Questions(args) => questions::questions(home, &args).await,
        Command::Shared(args) => shared::shared(home, &args).await,
        Command::Window(args) => window::window(home, &args),
        Command::Replay(args) => replay::replay(home, &args),
        Command::Cancel(args) => steer::cancel(home, args).await,
        Command::Answer(args) => steer::answer(home, args).await,
        Command::Send(args) => steer::send(home, args).await,
        Command::Refresh(args) => steer::refresh(home, args).await,
        Command::Broadcast(args) => steer::broadcast(home, args).await,
        Command::Pause(args) => steer::pause(home, args).await,
        Command::Unpause(args) => steer::unpause(home, args).await,
        Command::Budget(args) => steer::budget(home, args).await,
        Command::Rm(args) => rm::rm(home, &args).await,
        Command::Checkpoint(args) => checkpoint::checkpoint(home, args).await,
    }
}
