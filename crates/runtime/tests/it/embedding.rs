//! The documentation of embedding: its program runs, and its excerpts match the program.

#[path = "../../examples/approval.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod approval;
#[path = "../../examples/embed.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod embed;
#[path = "../../examples/journal.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod journal;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use spinney::Journal;
use spinney::definition::ModelSpec;
use spinney::id::Seq;
use spinney::prelude::*;
use spinney_testkit::scripted::Script;

const PAGE: &str = include_str!("../../../../docs/embedding.md");
const PROGRAM: &str = include_str!("../../examples/embed.rs");
const HELLO: &str = include_str!("../../examples/hello.rs");

const TREE: &str = "
name: weather
goal: How warm will it be in Bonn tomorrow?
models: { forecaster: { provider: scripted, script: none } }
agents: { lead: { model: forecaster, tools: [weather] } }
";

#[tokio::test(start_paused = true)]
async fn the_example_program_comes_to_its_answer() {
    let tagged = format!("{TREE}tags: {{ customer: acme }}\n");
    let answer = embed::ask(&tagged).await.unwrap();
    assert!(answer.starts_with("completed: It will be warm: {\"degrees\":21,\"key\":\""), "{answer}");
    let refused = embed::ask(TREE).await.unwrap();
    assert!(refused.ends_with("refused by a hook: whose call is this?"), "{refused}");
}

/// One of two calls is allowed; the agent reads the reason for the other.
#[tokio::test]
async fn the_example_of_approvals_decides_about_each_call() {
    let answer = approval::refunds().await.unwrap();
    assert!(answer.starts_with("completed: refunded {\"order\":17}; "), "{answer}");
    assert!(
        answer.contains("that order was never paid") && !answer.contains("refunded {\"order\":99}"),
        "{answer}"
    );
}

#[tokio::test]
async fn the_example_of_a_journal_counts_what_is_written() {
    let counting = Arc::new(journal::Counting::default());
    assert_eq!(journal::answer(Arc::clone(&counting)).await.unwrap(), "A small wood.");
    let heads = counting.heads(&[]).await.unwrap();
    let stored = Journal::read_stored(&*counting, heads[0].tree, Seq(0), usize::MAX).await.unwrap();
    assert_eq!(counting.batches.load(Ordering::Relaxed), stored.len());
    let bytes: usize = stored.iter().map(|stored| stored.bytes.len()).sum();
    assert_eq!(counting.bytes.load(Ordering::Relaxed), bytes);
}

/// The shortest program depends only on `spinney`, and has at most 15 lines.
#[test]
fn the_shortest_program_needs_one_dependency_and_15_lines() {
    let lines: Vec<&str> = HELLO.lines().skip_while(|line| !line.starts_with("use ")).collect();
    let written = lines.iter().filter(|line| !line.is_empty()).count();
    assert!(written <= 15, "it has {written} lines");
    let used: Vec<&str> = lines.iter().filter_map(|line| line.strip_prefix("use ")).collect();
    assert_eq!(used, ["spinney::prelude::*;", "std::{error::Error, sync::Arc};"]);
}

/// A definition in code equals the same definition in a file.
#[test]
fn a_tree_in_code_is_the_one_from_a_file() {
    let text = include_str!("../../examples/hello.yaml");
    let file = TreeFile::parse("hello.yaml", text).unwrap();
    let role = Role::new("greeter".parse().unwrap()).with_prompt("You are polite.");
    let code = Definition::new("hello", "Greet the reader.", "lead".parse().unwrap())
        .with_budget(Limits::none().tokens(100_000).steps(5).try_into().unwrap())
        .with_model("greeter".parse().unwrap(), ModelSpec::default())
        .with_role("lead".parse().unwrap(), role);
    assert_eq!(code, file.definition);
}

/// Every Rust excerpt of the page is part of the program, line by line.
#[test]
fn the_page_shows_the_code_of_the_program() {
    let trimmed = |text: &str| text.lines().map(str::trim).collect::<Vec<_>>().join("\n");
    let program = trimmed(PROGRAM);
    // The first one is a program with files, which the tests of the host run.
    let pieces: Vec<&str> =
        PAGE.split("```rust\n").skip(2).filter_map(|rest| rest.split("```").next()).collect();
    assert!(pieces.len() >= 4, "the page has pieces of Rust");
    for piece in pieces {
        assert!(program.contains(trimmed(piece).trim()), "not in the program:\n{piece}");
    }
}

/// A misspelt tool would only show when a model calls it: it fails at the start, as a missing model does.
#[tokio::test(start_paused = true)]
async fn a_tool_that_is_not_registered_fails_the_start_as_a_model_does() {
    let definition = || TreeFile::parse("tree.yaml", TREE).unwrap().definition;
    let home = |drivers| Home::open(Arc::new(MemoryJournal::new()), drivers);
    let refused = home(Drivers::new()).start(definition()).await.err().unwrap();
    assert_eq!(refused.to_string(), "no driver for model `forecaster`: register one under that name");
    let script = Script::parse("script.yaml", "rules: [{ say: done }]").unwrap();
    let drivers = Drivers::new().with_model("forecaster".parse().unwrap(), Arc::new(script.model()));
    let refused = home(drivers).start(definition()).await.err().unwrap();
    assert_eq!(
        refused.to_string(),
        "role `lead` may call tool `weather`, but no such tool is registered: register it, or remove it from the role"
    );
}
