//! `spinney charge`: books what was spent outside.

use std::path::Path;

use anyhow::Result;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::rules::request::Charge;

use super::{Next, ask, finish, whom_of};
use crate::args;
use crate::exit::Exit;

pub(in crate::command) async fn charge(home: &Path, args: args::Charge) -> Result<Exit> {
    let (place, agent) = whom_of(home, &args.tree, args.agent).await?;
    let amounts = Amounts::cost(args.usd.map_or(0, |usd| usd.nanos()));
    let amounts = amounts.with(Resource::Tokens, args.tokens.unwrap_or(0));
    let said = format!("booked {amounts:#} at `{agent}`");
    let named = [agent.clone()];
    let done = ask(place, &named, Charge { agent, amounts, note: args.note }).await?;
    finish(done, place, &said, Next::Nothing).await
}
