//! Claude Code and Codex under `spinney exec`: the tree that their calls make, and its bill.

use std::collections::BTreeMap;

use serde_json::Value;
use spinney_kernel::budget::Usage;

use super::outside::{DONE, KEY, Program, ended, play};
use crate::provider::Provider;
use crate::stage::{Playing, Stage};

/// Starts a program with its task under `spinney exec`.
pub(super) fn exec(stage: &Stage, program: Program, provider: &Provider, options: &[&str]) -> Playing {
    // The provider is at an address of ours, and charges what the real one does.
    let prices_of = match program {
        Program::ClaudeCode => "anthropic",
        Program::Codex => "openai",
    };
    let start = [env!("CARGO_BIN_EXE_spinney"), "exec", "--prices-of", prices_of];
    let start = start.into_iter().chain(options.iter().copied()).chain(["--"]);
    let words: Vec<String> = start.map(str::to_owned).chain(program.words()).collect();
    play(stage, &words, &program.environment(stage, provider))
}

/// What a usage costs, in nano-dollars, by the list prices of October 2026 and with nothing of ours in between.
pub(super) const fn cost_nanos(program: Program, usage: Usage) -> u64 {
    let Usage { input, cached_input, cache_write, cache_write_1h, output, reasoning } = usage;
    match program {
        // claude-sonnet-4-5: $3, $0.30, $3.75, $6 and $15 for a million.
        Program::ClaudeCode => {
            3_000 * input
                + 300 * cached_input
                + 3_750 * cache_write
                + 6_000 * cache_write_1h
                + 15_000 * (output + reasoning)
        }
        // gpt-6.1-sol: $2, $0.10, $2.50 and $10 for a million.
        Program::Codex => {
            2_000 * input + 100 * cached_input + 2_500 * cache_write + 10_000 * (output + reasoning)
        }
    }
}

/// What the provider would write on its bill for each agent, by the name that the program gives it.
pub(super) fn billed(program: Program, provider: &Provider) -> BTreeMap<Option<String>, u64> {
    let mut billed = BTreeMap::new();
    for (question, answer) in provider.answered() {
        *billed.entry(program.agent(&question)).or_default() += cost_nanos(program, answer.usage);
    }
    billed
}

/// What the journal of the last tree has for each agent, by its path.
pub(super) fn booked(events: &[Value]) -> BTreeMap<String, u64> {
    let mut booked = BTreeMap::new();
    for event in events {
        let path = event["path"].as_str().unwrap_or_default().to_owned();
        match event["type"].as_str().unwrap() {
            "agent_spawned" => booked.insert(path, 0),
            "call_ended" | "attempt_failed" => {
                booked
                    .entry(path)
                    .and_modify(|spent| *spent += event["spent"]["cost_nanos"].as_u64().unwrap_or(0));
                None
            }
            _ => None,
        };
    }
    booked
}

/// Each agent of the program is an agent of the tree, and has what the provider bills for it.
pub(super) fn assert_bill(program: Program, provider: &Provider, events: &[Value]) {
    let (billed, booked) = (billed(program, provider), booked(events));
    assert_eq!(billed.len(), 3, "{program:?} {billed:?}");
    let (root, _) = booked.first_key_value().unwrap();
    assert_eq!(booked[root], billed[&None], "{program:?} {booked:?}");
    assert!(
        booked.keys().skip(1).all(|path| path.starts_with(&format!("{root}/"))),
        "{program:?} {booked:?}"
    );
    let sorted = |nanos: Vec<u64>| {
        let mut nanos = nanos;
        nanos.sort_unstable();
        nanos
    };
    let by_journal = sorted(booked.values().copied().collect());
    assert_eq!(sorted(billed.values().copied().collect()), by_journal, "{program:?} {billed:?} {booked:?}");
    // The root pays for itself and for everybody below it.
    let ends = |event: &&Value| event["type"] == "agent_ended" && event["path"] == root.as_str();
    let total = &events.iter().find(ends).unwrap()["spent"]["cost_nanos"];
    assert_eq!(total.as_u64(), Some(billed.values().sum()), "{program:?}");
}

/// G10 (by the real programs): each sub-agent is an agent of the tree below the main one, and what is booked for each is what
/// the provider bills for it, to the nano-dollar.
#[test]
fn g10_each_sub_agent_of_a_real_program_is_an_agent_and_pays_for_itself() {
    for program in Program::ALL {
        let (stage, provider) = (Stage::new(), Provider::new(move |question| program.answer(question)));
        let ended = ended(exec(&stage, program, &provider, &["--budget-usd", "20"]));
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        assert!(ended.out.contains(DONE), "{program:?} {ended:?}");
        let events = stage.spinney(&["events", "last", "--json"]).json();
        assert_bill(program, &provider, &events);

        let verified = stage.spinney(&["replay", "last", "--verify"]);
        assert_eq!(verified.code, Some(0), "{verified:?}");
        let told = format!("{}{}{events:?}", ended.out, ended.err);
        assert!(!told.contains(KEY), "the key of the user is for the provider alone");
    }
}
