//! Claude Code and Codex with a dollar and default options, at their providers' own addresses.

use super::exec::{assert_bill, cost_nanos};
use super::outside::{DONE, KEY, Program, ended, play};
use crate::provider::Provider;
use crate::provider_address::{AUTHORITY, ProviderAddress};
use crate::test_folder::{Ended, TestFolder};
use http::{HeaderMap, HeaderName, HeaderValue};
use spinney_drivers::wire::Permitted;
use spinney_server::gateway::wire::{AllowList, CallFormat, CallHead, CallRequest, CallUpstream};

/// Runs a program as a user does: with a key and without a base URL.
fn exec_at_own_address(stage: &TestFolder, program: Program, provider: &Provider, options: &[&str]) -> Ended {
    let address = ProviderAddress::new(&provider.url);
    let start =
        [env!("CARGO_BIN_EXE_spinney"), "exec"].into_iter().chain(options.iter().copied()).chain(["--"]);
    let words: Vec<String> = start.map(str::to_owned).chain(program.words()).collect();
    let mut environment = program.environment(stage, provider);
    environment.retain(|(name, _)| !name.ends_with("_BASE_URL") && *name != "HTTPS_PROXY");
    environment.push(("HTTPS_PROXY", address.proxy));
    environment.push(("SSL_CERT_FILE", AUTHORITY.to_owned()));
    ended(play(stage, &words, &environment))
}

/// G21: a task with two sub-agents completes with $1 and default settings. What the programs ask for would not fit: their
/// input is held by the provider's own count, their output caps are fitted to what is free, and the notice says so. The
/// bill is exact, and no ceiling is passed.
#[test]
fn g21_a_real_program_completes_a_task_with_two_sub_agents_for_a_dollar() {
    for program in Program::ALL {
        let (stage, provider) = (TestFolder::new(), Provider::new(move |question| program.answer(question)));
        let ended = exec_at_own_address(&stage, program, &provider, &["--budget-usd", "1"]);
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        assert!(ended.out.contains(DONE), "{program:?} {ended:?}");
        // Codex names no cap, and whether the usual one is a fair share depends on which calls run at the same time.
        let is_capped = ended.err.contains("of output and gets");
        assert!(is_capped || program == Program::Codex, "{program:?} {}", ended.err);
        assert!(!ended.err.contains("waits"), "nothing stood still: {program:?} {}", ended.err);
        let events = stage.spinney(&["events", "last", "--json"]).json();
        assert_eq!(assert_bill(program, &provider, &events).len(), 2, "{program:?}");
        let spent: u64 =
            provider.answered().iter().map(|(_, answer)| cost_nanos(program, answer.usage)).sum();
        assert!(spent < 1_000_000_000, "{program:?} {spent}");
        assert!(!events.iter().any(|event| !event["overrun"].is_null()), "{program:?}");
        assert!(!format!("{}{}", ended.out, ended.err).contains(KEY));
        assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    }
}

/// At the providers' own addresses, everything that the real programs send is on the allow list. This test fails when a
/// newer version sends a name that has not been reviewed.
#[test]
fn everything_that_the_real_programs_send_is_on_the_list() {
    for program in Program::ALL {
        let (stage, provider) = (TestFolder::new(), Provider::new(move |question| program.answer(question)));
        let ended = exec_at_own_address(&stage, program, &provider, &["--budget-usd", "20"]);
        assert_eq!(ended.code, Some(0), "{program:?} {ended:?}");
        let questions = provider.answered();
        assert!(questions.len() >= 4, "{program:?}");
        for (question, _) in questions {
            let format = match program {
                Program::ClaudeCode => CallFormat::Messages,
                Program::Codex => CallFormat::Responses,
            };
            let fields = question.asked.head.lines().skip(1).filter_map(|line| line.split_once(':'));
            let headers: HeaderMap = fields
                .filter_map(|(name, value)| {
                    Some((name.parse::<HeaderName>().ok()?, value.trim().parse::<HeaderValue>().ok()?))
                })
                .collect();
            let (query, permitted) =
                (question.asked.path().split_once('?').map(|(_, query)| query), Permitted::new());
            let head = CallHead {
                format,
                upstream: CallUpstream::Provider,
                headers: &headers,
                path: question.asked.path(),
                query,
                permitted: &permitted,
            };
            let read = CallRequest::read(head, question.asked.text.clone().into());
            assert!(read.is_ok(), "{program:?} of {}: {:?}", AllowList::get().date, read.err());
        }
    }
}

/// The README opens with a run of the real Claude Code. A run prints the same lines, except for numbers.
#[test]
fn the_readme_shows_what_a_run_prints() {
    let program = Program::ClaudeCode;
    let readme = include_str!("../../../../../README.md");
    let (_, sample) = readme.split_once("$ spinney exec --budget-usd 1 -- claude -p ").unwrap();
    let sample = sample.split("```").next().unwrap();
    let (stage, provider) = (TestFolder::new(), Provider::new(move |question| program.answer(question)));
    let ended = exec_at_own_address(&stage, program, &provider, &["--budget-usd", "1"]);
    assert!(sample.contains(ended.out.trim()), "{}", ended.out);
    assert_eq!(plain_lines(sample), plain_lines(&ended.err));
}

/// Spinney's lines, with a placeholder for each word that contains a digit.
fn plain_lines(text: &str) -> Vec<String> {
    let plain = |word: &str| {
        if word.contains(|letter: char| letter.is_ascii_digit()) { "#" } else { word }.to_owned()
    };
    let lines = text.lines().filter(|line| line.starts_with("spinney: "));
    lines.map(|line| line.split_whitespace().map(plain).collect::<Vec<_>>().join(" ")).collect()
}
