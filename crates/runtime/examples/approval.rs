//! A tool that runs only after your program has agreed: `cargo run -p spinney --example approval`. Whatever decides
//! here, a person, a rule or another service, sees the whole call before it happens.
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::sync::Arc;

use spinney::block_on;
use spinney::bus::{Watch, WatchItem};
use spinney::prelude::*;
use spinney::record::Event;

const TREE: &str = "
name: refunds
goal: Refund order 17 and order 99.
budget: { tokens: 20000, steps: 5 }
models: { clerk: { provider: scripted, script: none } } # the program brings its own
agents: { lead: { model: clerk, tools: [refund], approvals: { refund: ask } } }
";

fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", block_on(refunds())??);
    Ok(())
}

/// Runs the tree and answers its questions. Returns what the lead says in the end.
pub(crate) async fn refunds() -> Result<String, Box<dyn Error>> {
    let refund = FunctionTool::sync(|call: RawCall| Ok::<_, String>(format!("refunded {}", call.0.args)));
    let drivers = Drivers::new()
        .with_model("clerk".parse()?, Arc::new(clerk()))
        .with_tool("refund".parse()?, Arc::new(refund.described("Pays an order back.")));
    let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
    let tree = home.start(TreeFile::parse("refunds.yaml", TREE)?.definition).await?;

    let mut watcher = tree.watch(Watch::default());
    while let Some(item) = watcher.next().await {
        match item? {
            WatchItem::Event(traced) if matches!(traced.recorded.event, Event::QuestionAsked { .. }) => {
                for open in tree.snapshot().await?.questions {
                    tree.answer(open.question, decide(open.approves.as_deref())).await?;
                }
            }
            WatchItem::Event(_) | WatchItem::Delta(_) | WatchItem::Missed(_) => {}
        }
    }
    let end = tree.snapshot().await?.end.ok_or("it has not ended")?;
    Ok(format!("{}: {}", end.exit.as_str(), end.shown.text))
}

/// `yes` allows the call once; anything else is the reason that the agent reads.
fn decide(call: Option<&ToolAsk>) -> &'static str {
    match call {
        Some(call) if call.args.contains("17") => "yes",
        Some(_) => "no: that order was never paid",
        None => "ask for a refund, and nothing else",
    }
}

/// Stands for a provider: asks for both refunds at once, then says what came of them.
fn clerk() -> FunctionModel {
    FunctionModel::new(|attempt| async move {
        if attempt.turn == 1 {
            let ask = |id: &str, order: u32| ToolAsk::new(id, "refund", format!("{{\"order\":{order}}}"));
            return Ok(ModelAnswer::text("Two refunds.").with_asks(vec![ask("a", 17), ask("b", 99)]));
        }
        let heard = attempt.packet.messages.iter().rev().take(2).map(|message| message.text().into_owned());
        let heard: Vec<String> = heard.collect();
        Ok(ModelAnswer::text(heard.into_iter().rev().collect::<Vec<_>>().join("; ")))
    })
}
