//! Bad input: the error names the place and a remedy, nothing is started, and the exit code is 2.

use std::sync::Arc;

use spinney::budget::{AMOUNT_MAX, AmountError, Amounts, Budget, Limits, Resource, spend};
use spinney::{Drivers, Home};
use spinney_kernel::budget::{Usage, Used};
use spinney_kernel::port::Pending;
use spinney_kernel::port::model::{AttemptError, Deltas, Model, ModelAnswer, ModelAttempt};
use spinney_kernel::primitives::Actor;
use spinney_kernel::record::ExitKind;
use spinney_kernel::rules::request::{Charge, Raise, Request};
use spinney_kernel::world::TreeState;
use spinney_store::MemoryJournal;

use crate::test_folder::TestFolder;

fn refused(stage: &TestFolder, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    ended.err.replace(&stage.folder().display().to_string(), "[folder]")
}

#[test]
fn bad_tree_files_are_refused_with_their_place() {
    let stage = TestFolder::new();
    let tree = stage.tree("serach", "rules: [ { say: hi } ]\ntools: { search: { say: x } }");
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/tree.yaml:7:32: unknown tool `serach`: did you mean `search`?");
    stage.file("typo.yaml", "name: x\nbuget: { cost_usd: 1 }\n");
    insta::assert_snapshot!(refused(&stage, &["run", "typo.yaml"]), @r"
    spinney: typo.yaml has 3 errors; to see their lines: spinney check typo.yaml
      typo.yaml:1:1: `agents` is missing: write `agents: …`
      typo.yaml:1:1: `models` is missing: write `models: …`
      typo.yaml:2:1: unknown key `buget`: did you mean `budget`?
    ");
    let tree = stage.file("tree.txt", "name: x\n");
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/tree.txt:1:1: the file's name does not show its format: end it in .yaml, .yml, .json or .toml");
    assert!(!stage.home().exists(), "nothing was started, so there is no home");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let stage = TestFolder::new();
    insta::assert_snapshot!(refused(&stage, &["run", "nowhere.yaml"]), @"spinney: cannot read nowhere.yaml: No such file or directory (os error 2)");
    insta::assert_snapshot!(refused(&stage, &["run", "."]), @"spinney: cannot read .: it is a folder: name a file in it");
    let tree = stage.tree("", "rules: [ { say: hi, sya: ho } ]");
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/tree.script.yaml:1:21: unknown key `sya`: write one of `when`, `think_ms`, `chunk_ms`, `think`, `say`, `call`, `usage`, `fail`, `hang`, `cut`");
    std::fs::remove_file(stage.folder().join("tree.script.yaml")).unwrap();
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/tree.yaml:5:39: cannot read [folder]/tree.script.yaml: No such file or directory (os error 2)");
    std::fs::write(stage.folder().join("bytes.yaml"), [b'n', 0xff, 0xfe]).unwrap();
    insta::assert_snapshot!(refused(&stage, &["run", "bytes.yaml"]), @"spinney: cannot read bytes.yaml: it is not UTF-8 at byte 1");
    std::fs::write(stage.folder().join("huge.yaml"), vec![b'#'; 17 * 1024 * 1024]).unwrap();
    insta::assert_snapshot!(refused(&stage, &["run", "huge.yaml"]), @"spinney: cannot read huge.yaml: it has more than 16777216 bytes");
}

#[test]
fn a_tree_without_a_goal_is_refused() {
    let stage = TestFolder::new();
    let tree = stage.tree("", "rules: [ { say: hi } ]");
    insta::assert_snapshot!(refused(&stage, &["run", &tree, "--goal", " "]), @"spinney: [folder]/tree.yaml has no goal: add a `goal`, or use --goal");
}

#[test]
fn two_scripts_may_not_have_the_same_tool() {
    let stage = TestFolder::new();
    let script = "rules: [ { say: hi } ]\ntools: { look: { say: x } }";
    stage.file("a.script.yaml", script);
    stage.file("b.script.yaml", script);
    let tree = stage.file(
        "two.yaml",
        "name: two\ngoal: Go.\nmodels:\n  a: { provider: scripted, script: a.script.yaml }\n  \
         b: { provider: scripted, script: b.script.yaml }\nagents: { lead: { model: a, tools: [look] } }\n",
    );
    insta::assert_snapshot!(refused(&stage, &["run", &tree]), @"spinney: [folder]/two.yaml:5:36: tool `look` is in a.script.yaml and in b.script.yaml: keep one of them");
}

#[test]
fn wrong_usage_exits_with_two() {
    let stage = TestFolder::new();
    assert!(refused(&stage, &["evnts", "x"]).contains("'events'"));
    assert!(refused(&stage, &["run"]).contains("<FILE>"));
    assert!(refused(&stage, &["budget", "last", "--add-usd", "-1"]).contains("--add-usd"));
    assert!(refused(&stage, &["budget", "last", "--add-usd", "lots"]).contains("not an amount in USD"));
    assert!(refused(&stage, &["answer", "last", "first", "x"]).contains("the number of a question"));
    assert!(refused(&stage, &["cancel", "last", "No Such"]).contains("agent id"));
}

#[test]
fn trees_that_are_not_there_are_named() {
    let stage = TestFolder::new();
    insta::assert_snapshot!(refused(&stage, &["ps"]), @"spinney: no home at .spinney: run a tree first, or set --home or SPINNEY_HOME");
    stage.spinney(&["run", &stage.tree("", "rules: [ { say: hi } ]")]);
    insta::assert_snapshot!(refused(&stage, &["resume", "ffff"]), @"spinney: no tree starts with `ffff`: `spinney ps` lists all trees");
    insta::assert_snapshot!(refused(&stage, &["events", "first"]), @"spinney: `first` is not a tree id: use a prefix of one that `spinney ps` lists, or `last`");
    insta::assert_snapshot!(refused(&stage, &["events", "last", "--agent", "nobody"]), @"spinney: no agent `nobody` in this tree: known agents: lead");
    insta::assert_snapshot!(refused(&stage, &["replay", "last", "--expect", "12"]), @"spinney: `12` is not a hash: expected the 64 hex digits of an `event_hash`");
}

/// Absurd amounts of dollars.
const NO_DOLLARS: [&str; 8] = ["NaN", ".nan", "inf", "-.inf", "-1", "1e99", "2000000", "0.0000000001"];

/// A model that reports impossible usage.
struct Boastful(Used);

impl Model for Boastful {
    fn call(&self, _: Arc<ModelAttempt>, _: Deltas) -> Pending<Result<ModelAnswer, AttemptError>> {
        let used = self.0;
        Box::pin(async move { Ok(ModelAnswer::text("done").with_used(used)) })
    }

    fn tokens(&self, text: &str) -> u64 {
        text.len().div_ceil(4) as u64
    }
}

/// V10: amounts that are not numbers, not finite, negative or absurd are errors that name them, in files, flags and the
/// API, and nothing changes. A report with one is not believed: the call costs what was held for it.
#[test]
fn v10_absurd_amounts_change_nothing_wherever_they_come_from() {
    // Files: trees and scripts.
    let stage = TestFolder::new();
    for amount in NO_DOLLARS {
        for key in ["budget: { cost_usd: AMOUNT }", "budget: { tokens: AMOUNT }", "budget: { steps: AMOUNT }"]
        {
            // Two million tokens are possible.
            let amount = if key.contains("cost") { amount } else { &amount.replace("2000000", "1e16") };
            let tree = stage.tree_with(&key.replace("AMOUNT", amount), "", "rules: [ { say: hi } ]");
            let error = refused(&stage, &["run", &tree]);
            assert!(error.contains("tree.yaml:3:"), "{key} {amount}: {error}");
        }
        let tree = stage.tree("", "rules: [ { say: hi } ]");
        let text = std::fs::read_to_string(&tree).unwrap();
        let price = stage.file(
            "price.yaml",
            &text.replace("input_per_mtok_usd: 0.25", &format!("input_per_mtok_usd: {amount}")),
        );
        assert!(refused(&stage, &["run", &price]).contains("price.yaml:5:"), "{amount}");
        let error = refused(&stage, &["run", &tree, &format!("--budget-usd={amount}")]);
        assert!(error.contains("--budget-usd"), "{amount}: {error}");
    }
    for amount in ["-1", ".nan", "1.5", "1e30", "18446744073709551615"] {
        let script = format!("rules: [ {{ say: hi, usage: {{ input: 1, output: {amount} }} }} ]");
        let error = refused(&stage, &["run", &stage.tree("", &script)]);
        assert!(error.contains("tree.script.yaml:1:"), "{amount}: {error}");
    }
    assert!(!stage.home().exists(), "nothing was started");

    // Flags, on a tree that waits.
    let waits = "rules: [ { call: [ { tool: ask_human, args: { question: Which? } } ] } ]";
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", waits)]).code, Some(5));
    let before = stage.spinney(&["events", "last", "--json"]).out;
    for amount in NO_DOLLARS {
        let error = refused(&stage, &["budget", "last", &format!("--add-usd={amount}")]);
        assert!(error.contains("--add-usd"), "{amount}: {error}");
    }
    for flag in ["--add-tokens", "--add-steps", "--add-tool-calls", "--add-retries"] {
        for amount in ["NaN", "inf", "-1", "1e30", "18446744073709551615", "1000000000000001"] {
            let error = refused(&stage, &["budget", "last", &format!("{flag}={amount}")]);
            assert!(error.contains(amount), "{flag} {amount}: {error}");
        }
    }
    assert_eq!(stage.spinney(&["events", "last", "--json"]).out, before);

    api_and_reports();
}

/// The same for callers of the library, and for what a driver reports.
fn api_and_reports() {
    let root = Budget::root(Limits::usd("1.00").unwrap().tokens(100)).unwrap();
    let before = root.snapshot();
    for text in NO_DOLLARS {
        assert!(spend::usd(text).is_err() && Limits::usd(text).is_err(), "{text}");
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for amount in [AMOUNT_MAX + 1, u64::MAX] {
        for resource in Resource::ALL {
            let absurd = Amounts::ZERO.with(resource, amount);
            let error = AmountError::TooLarge { what: resource.to_string(), amount };
            assert_eq!(root.charge(absurd), Err(error));
            assert!(root.try_hold(absurd).is_err() && root.raise(absurd).is_err());
            assert!(root.child(Limits::none().with(resource, amount)).is_err());
        }
        assert_eq!(root.snapshot(), before);
        let split = Usage { input: amount, cached_input: amount, output: amount, ..Usage::default() };
        for used in [Used::Tokens(split), Used::CostNanos(amount)] {
            runtime.block_on(reported(used, amount));
        }
    }
}

async fn reported(used: Used, amount: u64) {
    let drivers = Drivers::new().with_model("m".parse().unwrap(), Arc::new(Boastful(used)));
    let drivers = drivers.with_model("cheap".parse().unwrap(), Arc::new(Boastful(used)));
    let drivers = drivers.with_model("free".parse().unwrap(), Arc::new(Boastful(used)));
    let home = Home::open(Arc::new(MemoryJournal::new()), drivers);
    // It takes no turns of its own, so it stays available for requests.
    let tree = home.start(spinney_testkit::definition("root $1.00 tokens=100000")).await.unwrap();
    let seq = tree.snapshot().await.unwrap().seq;
    for resource in Resource::ALL {
        let absurd = Amounts::ZERO.with(resource, amount);
        let raise = Raise { agent: "root".parse().unwrap(), add: absurd, add_ms: 0 };
        assert!(tree.raise(raise).await.unwrap_err().to_string().contains(&amount.to_string()));
        let charge = Charge { agent: "root".parse().unwrap(), amounts: absurd, note: String::new() };
        let charged = tree.request(Actor::PERSON, Request::Charge(charge)).await;
        assert!(charged.unwrap_err().to_string().contains(&amount.to_string()));
    }
    assert_eq!(tree.snapshot().await.unwrap().seq, seq, "nothing changed");

    let tree = home.start(spinney_testkit::definition("root $1.00 turns=3")).await.unwrap();
    tree.ended().await;
    let snapshot = tree.snapshot().await.unwrap();
    assert_eq!(snapshot.state, TreeState::Ended(ExitKind::Completed));
    // What was held: its output cap of 100 tokens at $0.001 each.
    assert_eq!(snapshot.end.unwrap().spent.get(Resource::Cost), 100_000_000, "{used:?}");
    assert!(snapshot.agents[0].overrun.is_zero());
}

/// Issue 34: a variable that is set to nothing is named, and so is what an amount must be.
#[test]
fn values_of_the_command_line_say_what_to_write() {
    let stage = TestFolder::new();
    let none = stage.play_in(&["ps"], &[("SPINNEY_HOME", "")]).end();
    insta::assert_snapshot!(none.err, @"
    error: invalid value '' for '--home <DIR>': the value is empty: name a folder, or unset SPINNEY_HOME

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(refused(&stage, &["budget", "last", "--add-usd", "-1"]), @"
    error: invalid value '-1' for '--add-usd <USD>': `-1` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals

    For more information, try '--help'.
    ");
}

/// Issue 34: a script that cannot be read may have the tool, so only the script is reported.
#[test]
fn a_script_that_cannot_be_read_brings_no_other_error() {
    let stage = TestFolder::new();
    let tree = stage.tree("echo", "rules: [ { say: hi, think_ms: .inf } ]\ntools: { echo: { say: x } }");
    let told = refused(&stage, &["run", &tree]);
    assert!(told.contains("tree.script.yaml:1:") && !told.contains("unknown tool"), "{told}");
}

/// Issue 34: with `--json` there is a line for every file.
#[test]
fn a_check_of_a_file_that_cannot_be_read_is_a_line_of_json() {
    let stage = TestFolder::new();
    let checked = stage.spinney(&["check", "--json", "nowhere.yaml"]);
    assert_eq!(checked.code, Some(2));
    insta::assert_snapshot!(checked.out, @r#"{"type":"check","file":"nowhere.yaml","ok":false,"problems":[{"severity":"error","file":"nowhere.yaml","line":null,"column":null,"message":"cannot read nowhere.yaml: No such file or directory (os error 2)","remedy":null,"text":null}]}"#);
}
