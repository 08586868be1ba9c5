//! A tree in your own program: a model, a tool from a closure over a type, and hooks that watch both. `hello` beside it is
//! the shortest such program.
//!
//! `cargo run -p spinney --example embed`
#![expect(clippy::print_stdout, reason = "an example shows what happens")]

use std::error::Error;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use spinney::budget::{Amounts, Resource};
use spinney::model::{AttemptError, DeltaKind, Deltas, Message, Model, Pending, Usage, Used};
use spinney::prelude::*;

/// Says how warm it will be in a city.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Weather {
    /// The city, in English.
    city: String,
    /// Days from today; today if left out.
    #[serde(default)]
    days: u8,
}

#[derive(Serialize)]
struct Forecast {
    degrees: i8,
    /// Under which key it was asked for: the same if the call is made again after a crash.
    key: String,
}

async fn forecast(call: ToolRequest<Weather>) -> Result<Forecast, String> {
    let ToolRequest { args: Weather { city, days }, attempt } = call;
    match (city.as_str(), days) {
        ("Bonn", 0..=7) => Ok(Forecast { degrees: 21, key: attempt.key }),
        ("Bonn", _) => Err("there is no forecast that far ahead: ask for 7 days at most".to_owned()),
        _ => Err(format!("no station in {city}: Bonn has one")),
    }
}

/// Stands in for a provider. It asks for something unknown, reads why that is wrong, and asks again.
struct Forecaster;

impl Model for Forecaster {
    fn call(&self, attempt: Arc<ModelAttempt>, deltas: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let ask = |args: &str| ToolAsk::new(format!("ask-{}", attempt.turn), "weather", args);
        let (text, asks) = match attempt.turn {
            1 => ("Let me see.".to_owned(), vec![ask(r#"{"city": "Bonn", "days": "tomorrow"}"#)]),
            2 => ("In days, then.".to_owned(), vec![ask(r#"{"city": "Bonn", "days": 1}"#)]),
            _ => (format!("It will be warm: {}", last(&attempt)), Vec::new()),
        };
        deltas(DeltaKind::Text, &text);
        let usage = Usage { input: attempt.packet.tokens, output: text.len() as u64, ..Usage::default() };
        Box::pin(async move { Ok(ModelAnswer::text(text).with_asks(asks).with_used(Used::Tokens(usage))) })
    }
}

fn last(attempt: &ModelAttempt) -> String {
    attempt
        .packet
        .messages
        .last()
        .map(|message: &Arc<Message>| message.text().into_owned())
        .unwrap_or_default()
}

/// Says what leaves the process and what it cost, and refuses tool calls without a customer.
struct Watch;

impl TreeHooks for Watch {
    fn before_call(&self, call: &Calling) -> Result<(), String> {
        println!("{} calls {}", call.origin.agent(), call.target.name());
        match &call.target {
            Target::Tool(_) if !call.tags.contains_key("customer") => Err("whose call is this?".to_owned()),
            Target::Tool(_) | Target::Model(_) => Ok(()),
        }
    }

    fn before_charge(&self, _call: &Calling, actual: &Amounts) -> Result<(), String> {
        println!("  {} tokens", actual.get(Resource::Tokens));
        Ok(())
    }
}

const TREE: &str = "
name: weather
goal: How warm will it be in Bonn tomorrow?
tags: { customer: acme }
budget: { tokens: 20000, steps: 5 }
models: { forecaster: { provider: scripted, script: none } } # the program brings its own
agents: { lead: { model: forecaster, tools: [weather] } }
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", ask(TREE).await?);
    Ok(())
}

/// Runs a tree to its end and gives its answer.
pub(crate) async fn ask(tree: &str) -> Result<String, Box<dyn Error>> {
    let weather = FunctionTool::new(forecast).repeatable().timeout_ms(5_000);
    let drivers = Drivers::new()
        .with_model("forecaster".parse()?, Arc::new(Forecaster))
        .with_tool("weather".parse()?, Arc::new(weather));
    let home = Home::open(Arc::new(MemoryJournal::new()), drivers).with_hooks(Arc::new(Watch));
    let tree = home.start(TreeFile::parse("weather.yaml", tree)?.definition).await?;
    tree.ended().await;
    let end = tree.snapshot().await?.end.ok_or("it has not ended")?;
    Ok(format!("{}: {}", end.exit.as_str(), end.shown.text))
}
