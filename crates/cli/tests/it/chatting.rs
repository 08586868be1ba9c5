//! Conversations: `chat`, `run --keep` and `finish`.

use serde_json::json;

use crate::test_folder::TestFolder;

fn example() -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/chat.yaml").to_owned()
}

/// What is said, without the rest of a screen.
fn talk(shown: &str) -> Vec<&str> {
    let known = ["> ", "How large", "Then salads", "You are welcome"];
    shown.lines().map(str::trim_end).filter(|line| known.iter().any(|part| line.starts_with(part))).collect()
}

#[test]
fn a_conversation_is_left_killed_continued_and_ended() {
    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["chat", &example()], 80, 40);
    terminal.until("How large is it, and how much sun does it get?\n\n>");
    terminal.send("4 by 3 metres.\n");
    terminal.until("a bench where the sun is last.\n\n>");
    // Ctrl-D leaves it.
    terminal.send("\u{4}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(5), "{}", ended.out);
    assert!(ended.out.contains("spinney chat"), "{}", ended.out);

    // What was said before is shown again, and a kill loses nothing.
    let mut terminal = stage.terminal(&["chat"], 80, 40);
    let shown = terminal.until("a bench where the sun is last.\n\n>");
    assert_eq!(
        talk(&shown),
        [
            "> Help me plan a small garden.",
            "How large is it, and how much sun does it get?",
            "> 4 by 3 metres.",
            "Then salads and herbs along the fence, and a bench where the sun is last.",
        ],
        "{shown}"
    );
    terminal.signal("KILL");
    drop(terminal.end());
    let mut terminal = stage.terminal(&["chat", "last"], 80, 40);
    terminal.until("a bench where the sun is last.\n\n>");
    terminal.send("thank you\n");
    terminal.until("You are welcome. Type /finish when we are done.\n\n>");
    terminal.send("/finish\n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    let result = stage.spinney(&["resume", "--json"]).result();
    assert_eq!(result["output"], json!("You are welcome. Type /finish when we are done."));
}

#[test]
fn a_tree_is_kept_without_a_terminal_and_finished() {
    let stage = TestFolder::new();
    let waits = stage.spinney(&["run", "--keep", &example()]);
    assert_eq!(waits.code, Some(5), "{}{}", waits.out, waits.err);
    assert!(waits.out.contains("gardener has answered and waits for you\n"), "{}", waits.out);
    // It has no state to return to in which it waits: what was said stays.
    assert_eq!(stage.spinney(&["checkpoint", "make", "gardener", "--name", "first"]).code, Some(0));
    let rolled = stage.spinney(&["checkpoint", "rollback", "first"]);
    assert!(
        rolled.code == Some(2) && rolled.err.contains("only goes forward"),
        "{}{}",
        rolled.out,
        rolled.err
    );
    assert_eq!(stage.spinney(&["send", "last", "gardener", "4 by 3 metres."]).code, Some(0));
    let waits = stage.spinney(&["resume"]);
    assert_eq!(waits.code, Some(5), "{}{}", waits.out, waits.err);
    assert!(waits.out.contains("Then salads and herbs"), "{}", waits.out);
    let finished = stage.spinney(&["finish"]);
    assert_eq!(
        (finished.code, finished.err.as_str()),
        (Some(0), "`gardener` has ended with its last answer\n")
    );
    let ended = stage.spinney(&["resume", "--json"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.result()["output"].to_string().contains("Then salads"), "{}", ended.out);
    let again = stage.spinney(&["finish"]);
    assert_eq!(again.code, Some(2), "{}", again.err);
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

#[test]
fn what_cannot_be_kept_is_refused() {
    let stage = TestFolder::new();
    let no_terminal = stage.spinney(&["chat", &example()]);
    assert_eq!(no_terminal.code, Some(2), "{}", no_terminal.out);
    assert!(no_terminal.err.contains("a conversation needs a terminal"), "{}", no_terminal.err);
    let pipeline = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/scenarios/s01-sequence.yaml");
    let refused = stage.spinney(&["run", "--keep", pipeline]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("this one runs steps"), "{}", refused.err);
}
