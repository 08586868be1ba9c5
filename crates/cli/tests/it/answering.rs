//! `spinney answer`: which question an answer is for, and asking at the terminal.

use serde_json::json;

use crate::scripts::{ASKS, SAYS};
use crate::test_folder::{Ended, TestFolder, steady};

/// Asks two questions at the same time, and repeats the answers.
const TWO: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: Which colour? } }, { tool: ask_human, args: { question: Which size? } } ]
  - say: 'You said {{ last }}'
";

fn waiting(script: &str) -> TestFolder {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", script)]).code, Some(5));
    stage
}

fn id(stage: &TestFolder) -> String {
    stage.spinney(&["ps", "--json"]).json()[0]["tree"].as_str().unwrap().to_owned()
}

fn refused(ended: &Ended) -> String {
    assert_eq!((ended.code, ended.out.as_str()), (Some(2), ""), "{}", ended.err);
    steady(&ended.err)
}

fn output(stage: &TestFolder) -> String {
    stage.spinney(&["resume", "--json"]).result()["output"].as_str().unwrap().to_owned()
}

/// Issue 34: the number may be left out if there is one question, with and without the tree.
#[test]
fn the_only_open_question_needs_no_number() {
    let named = waiting(ASKS);
    let id = id(&named);
    for words in [&["blue"][..], &["last", "blue"], &[&id, "blue"], &[&id[..12], "blue"]] {
        let stage =
            if words.contains(&id.as_str()) || words.contains(&&id[..12]) { &named } else { &waiting(ASKS) };
        let ended = stage.spinney(&[&["answer"], words].concat());
        let is_answered = ended.code == Some(0)
            && steady(&ended.err) == "answered question 2; continue with: spinney resume [id]\n";
        let is_closed = ended.err.contains("no open questions in tree");
        assert!(is_answered || (is_closed && words == [&id[..12], "blue"]), "{words:?}: {}", ended.err);
        assert_eq!(output(stage), "You said blue", "{words:?}");
    }
}

/// Every id of today begins with `0`: a short word is the answer, or the number of a question.
#[test]
fn a_short_word_is_an_answer_and_no_tree() {
    for answer in ["0", "01", "a"] {
        let stage = waiting(ASKS);
        assert_eq!(stage.spinney(&["answer", answer]).code, Some(0), "{answer}");
        assert_eq!(output(&stage), format!("You said {answer}"));
    }
    let stage = waiting(ASKS);
    insta::assert_snapshot!(refused(&stage.spinney(&["answer", "0", "blue"])), @"spinney: no question 0 is open: choose one of `2`; list open questions: spinney questions [id]");
}

#[test]
fn several_open_questions_need_the_number_and_a_forgotten_answer_is_named() {
    let stage = waiting(TWO);
    let told = [
        &["blue"][..],
        &["last", "blue"],
        &["2"],
        &["last", "3"],
        &["7", "blue"],
        &["first", "blue"],
        &[],
        &["last"],
    ]
    .map(|words| refused(&stage.spinney(&[&["answer"], words].concat())));
    insta::assert_snapshot!(told.concat(), @"
    spinney: 2 questions are open in tree [id], `2`, `3`: write the number of one before the answer; list them: spinney questions [id]
    spinney: 2 questions are open in tree [id], `2`, `3`: write the number of one before the answer; list them: spinney questions [id]
    spinney: the answer to question 2 is missing; usage: spinney answer [OPTIONS] [ID] [QUESTION] [TEXT]
    spinney: the answer to question 3 is missing; usage: spinney answer [OPTIONS] [ID] [QUESTION] [TEXT]
    spinney: no question 7 is open: choose one of `2`, `3`; list open questions: spinney questions [id]
    spinney: `first`: expected the number of a question, such as 7
    spinney: the answer is missing, and there is no terminal to ask at; usage: spinney answer [OPTIONS] [ID] [QUESTION] [TEXT]
    spinney: the answer is missing, and there is no terminal to ask at; usage: spinney answer [OPTIONS] [ID] [QUESTION] [TEXT]
    ");
    assert_eq!(stage.spinney(&["answer", "3", "large"]).code, Some(0));
    // Now one is left.
    assert_eq!(stage.spinney(&["answer", "7"]).code, Some(0));
    insta::assert_snapshot!(refused(&stage.spinney(&["answer", "blue"])), @"spinney: no open questions in tree [id]");
    let events = stage.said(&["events"]);
    for answer in ["has an answer from a person: large", "has an answer from a person: 7"] {
        assert!(events.contains(answer), "{events}");
    }
}

/// Issue 34: without words, the open questions are asked at the terminal, one after the other.
#[test]
fn open_questions_are_asked_at_the_terminal_one_after_the_other() {
    let stage = waiting(TWO);
    let mut terminal = stage.terminal(&["answer"], 100, 24);
    terminal.until("lead asks: Which colour?\n>");
    terminal.send("blue\r");
    terminal.until("answered question 2");
    terminal.until("lead asks: Which size?\n>");
    // An empty line leaves it open.
    terminal.send("\r");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    insta::assert_snapshot!(steady(&ended.out), @"

    lead asks: Which colour?
    > blue
    answered question 2

    lead asks: Which size?
    >
    question 3 stays open
    continue with: spinney resume [id]
    ");
    let mut rest = stage.terminal(&["answer", "last"], 100, 24);
    rest.until("lead asks: Which size?\n>");
    rest.send("large\r");
    assert!(rest.end().out.contains("answered question 3"), "it was not answered");
    assert_eq!(output(&stage), "You said large");
    let none = stage.terminal(&["answer"], 100, 24).end();
    assert!(none.out.contains("no open questions in tree"), "{}", none.out);
    assert_eq!(none.code, Some(0));
}

/// Issue 34: a single word of `shared` is a value of the newest tree, as `show lead` is about an agent of it.
#[test]
fn a_shared_value_is_found_in_the_newest_tree() {
    let stage = TestFolder::new();
    let script = "rules: [ { when: { turn: 1 }, call: [ { tool: write_context, args: { key: plan, value: one } } ] }, { say: done } ]";
    assert_eq!(stage.spinney(&["run", &stage.tree("write_context", script)]).code, Some(0));
    let first = id(&stage);
    assert_eq!(
        stage.spinney(&["run", &stage.tree("write_context", &script.replace("one", "two"))]).code,
        Some(0)
    );
    assert_eq!(stage.said(&["shared", "plan"]), "\"two\"\n");
    assert_eq!(stage.said(&["shared", &first, "plan"]), "\"one\"\n");
    let listed = stage.said(&["shared", &first[..12]]);
    assert!(listed.contains("plan  version 1") && listed.contains("\"one\""), "{listed}");
    assert_eq!(stage.said(&["shared", "last"]), stage.said(&["shared"]));
    let told = [&["pln"][..], &["ffff"], &["last", "pln"], &["--set", "1"]]
        .map(|words| refused(&stage.spinney(&[&["shared"], words].concat())));
    insta::assert_snapshot!(told.concat(), @"
    spinney: tree [id] has no shared value `pln`: did you mean `plan`?
    spinney: the last tree has no shared value `ffff`, and no tree starts with `ffff`: `spinney ps` lists all trees
    spinney: tree [id] has no shared value `pln`: did you mean `plan`?
    spinney: name the value to write, as in `KEY --set VALUE`
    ");
    let asks = TestFolder::new();
    assert_eq!(asks.spinney(&["run", &asks.tree("ask_human", ASKS)]).code, Some(5));
    assert_eq!(asks.spinney(&["shared", "plan", "--set", "[1]"]).code, Some(0));
    assert_eq!(asks.said(&["shared", "plan"]), "[1]\n");
}

/// Issue 34: the newest tree stands first, as in `top`.
#[test]
fn ps_and_top_list_the_newest_tree_first() {
    let stage = TestFolder::new();
    for _ in 0..3 {
        assert_eq!(stage.spinney(&["run", &stage.tree("", SAYS)]).code, Some(0));
    }
    let of = |command: &str| {
        let lines = stage.spinney(&[command, "--json"]).json();
        lines.iter().map(|line| line["tree"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let listed = of("ps");
    assert!(listed.is_sorted_by(|one, next| one > next), "{listed:?}");
    assert_eq!(of("top"), listed);
    let rows: Vec<String> =
        stage.spinney(&["ps"]).out.lines().skip(1).map(|line| line[..12].to_owned()).collect();
    assert_eq!(rows, listed.iter().map(|id| id[..12].to_owned()).collect::<Vec<_>>());
    assert_eq!(stage.spinney(&["tree", "--json"]).json()[0]["state"], json!("completed"));
}
