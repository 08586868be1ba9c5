//! The live view on a terminal: what a person sees while a tree runs, how it ends, and what Ctrl-C does.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use crate::scripts::ASKS;
use crate::test_folder::{TestFolder, steady};
use crate::upstream::{Reply, Upstream};
use serde_json::json;

const TEAM: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    say: I split the work.
    call:
      - { tool: spawn_agent, args: { agent: helper, id: one, goal: Look at one., budget: { cost_usd: 0.1 } } }
      - { tool: spawn_agent, args: { agent: helper, id: two, goal: Look at two. } }
      - { tool: spawn_agent, args: { agent: nobody, goal: Look at three. } }
  - when: { agent: lead }
    say: 'Both are worth a look, and this answer is long enough to be wrapped between its words on any terminal that is not very wide.'
  - when: { agent: helper, turn: 1, goal_contains: one }
    call: [ { tool: write_file, args: { path: outputs/one.md, text: '# One' } } ]
  - when: { agent: helper, goal_contains: two }
    fail: { kind: auth }
  - say: It is fine.
";

/// A tree with a lead and its helpers.
fn team(stage: &TestFolder, model: &str) -> String {
    let price = "price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }";
    stage.file(
        "team.yaml",
        &format!(
            "name: team
goal: Look around.
budget: {{ cost_usd: 1, timeout: 5m }}
models:
  fast: {{ {model}, {price} }}
agents:
  lead: {{ model: fast, tools: [spawn_agent, write_file], subagents: [helper] }}
  helper: {{ model: fast, tools: [write_file] }}
entry: lead
"
        ),
    )
}

fn scripted_team(stage: &TestFolder) -> String {
    stage.file("team.script.yaml", TEAM);
    team(stage, "provider: scripted, script: team.script.yaml")
}

/// The end of a run: the result, who spent what, what failed and why, files, and how to look closer.
#[test]
fn a_run_on_a_terminal_ends_with_a_summary_that_fits() {
    for (columns, name) in [(60, "summary_60"), (80, "summary_80"), (200, "summary_200")] {
        let stage = TestFolder::new();
        let tree = scripted_team(&stage);
        let ended = stage.terminal(&["run", &tree], columns, 30).end();
        assert_eq!(ended.code, Some(0), "{}", ended.out);
        insta::assert_snapshot!(name, steady(&ended.out));
    }
}

/// O17 (the root's view): text that a deep agent streams is on the screen while that agent still runs. G17 (Ctrl-C):
/// the command that continues works when it is pasted.
#[test]
fn o17_a_deep_agents_text_is_on_the_screen_while_it_streams_and_ctrl_c_twice_ends_at_once() {
    let stage = TestFolder::new();
    let spawn = json!({ "agent": "helper", "id": "deep", "goal": "Look." });
    let piece = json!({ "id": "c1", "model": "tiny", "choices": [{ "index": 0, "delta": { "content": "The moon is blue" } }] });
    let held =
        Reply::Held(format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {piece}\n\n"));
    let upstream = Upstream::new(vec![Reply::says("I ask.", &[("spawn_agent", spawn)]), held.late()]);
    let tree =
        team(&stage, &format!("provider: openai_compatible, model: tiny, base_url: '{}'", upstream.url));
    let mut terminal = stage.terminal(&["run", &tree], 100, 24);
    // From now on no text is missed.
    terminal.until("● deep");
    upstream.release();
    let shown = terminal.until("The moon is blue");
    let line = shown.lines().find(|line| line.contains("The moon is blue")).unwrap();
    assert!(line.contains("● deep"), "{shown}");
    let lead = shown.lines().find(|line| line.contains("lead")).unwrap();
    assert!(lead.contains("waits for deep"), "{shown}");
    // Another terminal shows the same tree, without text that only this process has.
    let mut other = stage.terminal(&["attach"], 100, 24);
    let attached = other.until("● deep");
    assert!(attached.contains("asks model fast"), "{attached}");
    let mut top = stage.terminal(&["top"], 100, 24);
    let listed = top.until("1 running; 0 ended");
    assert!(listed.contains("2/2") && listed.contains("deep asks model fast"), "{listed}");
    top.send("\u{3}");
    top.end();
    terminal.send("\u{3}");
    terminal.until("stopping: running calls finish");
    terminal.send("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.out);
    let resume = ended.out.lines().find_map(|line| line.strip_prefix("stopped at once. Continue with: "));
    assert!(resume.is_some_and(|resume| resume.starts_with("spinney resume ")), "{}", ended.out);
    // The other one notices that no process runs it any more.
    let left = other.end();
    assert!(left.out.contains("no process runs tree"), "{}", left.out);
    assert_eq!(left.code, Some(130), "{}", left.out);
    assert_eq!(stage.spinney(&["cancel"]).code, Some(0));
}

/// O17 (the root's view, from another process): `attach` shows text while it streams. A text that is longer than a view can
/// show does not hold the tree up, nor does a reader that never reads.
#[test]
fn o17_attach_shows_text_while_another_process_streams_it() {
    let stage = TestFolder::new();
    let text = "The moon \u{1b}[2J is blue. ".repeat(2_000) + "So it is.";
    let piece =
        json!({ "id": "c1", "model": "tiny", "choices": [{ "index": 0, "delta": { "content": text } }] });
    let held =
        Reply::Held(format!("HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: {piece}\n\n"));
    let upstream = Upstream::new(vec![held.late()]);
    let mut running = stage.play(&["run", "--json", &stage.tree_on(&upstream)]);
    running.until("call_started");
    let mut deaf = UnixStream::connect(stage.home().join("control")).unwrap();
    let tree = stage.spinney(&["ps", "--json"]).json()[0]["tree"].clone();
    writeln!(deaf, "{}", json!({ "version": 2, "body": { "kind": "text", "tree": tree } })).unwrap();
    let mut terminal = stage.terminal(&["attach"], 100, 24);
    let before = terminal.until("asks model fast");
    assert!(!before.contains("blue"), "{before}");
    upstream.release();
    let shown = terminal.until("is blue. So it is.");
    assert!(shown.lines().any(|line| line.contains("● lead") && line.contains("So it is.")), "{shown}");
    terminal.send("\u{3}");
    terminal.end();
    assert_eq!(stage.spinney(&["cancel"]).code, Some(0));
    assert_eq!(running.end().code, Some(4));
    let mut told = String::new();
    BufReader::new(deaf).read_line(&mut told).unwrap();
    assert_eq!(told.trim(), r#"{"version":2,"body":{"kind":"text_follows"}}"#);
}

/// A process of an older version refuses to send text; `attach` works anyway.
#[test]
fn attach_works_with_a_process_that_sends_no_text() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::held()]);
    let mut running = stage.play(&["run", "--json", &stage.tree_on(&upstream)]);
    running.until("call_started");
    // All the places are taken, which looks the same to every client.
    let tree = stage.spinney(&["ps", "--json"]).json()[0]["tree"].clone();
    let ask = json!({ "version": 2, "body": { "kind": "text", "tree": tree } });
    let subscribe = || {
        let mut reader = UnixStream::connect(stage.home().join("control")).unwrap();
        writeln!(reader, "{ask}").unwrap();
        let mut told = String::new();
        BufReader::new(reader.try_clone().unwrap()).read_line(&mut told).unwrap();
        (reader, told)
    };
    let readers: Vec<_> = (0..8).map(|_| subscribe()).collect();
    assert!(readers.iter().all(|(_, told)| told.contains("text_follows")));
    assert!(subscribe().1.contains("too many processes read the text of this tree"));
    let mut terminal = stage.terminal(&["attach"], 100, 24);
    terminal.until("asks model fast");
    assert_eq!(stage.spinney(&["cancel"]).code, Some(0), "others are still heard");
    assert_eq!(running.end().code, Some(4));
    assert_eq!(terminal.end().code, Some(4));
}

#[test]
fn ctrl_c_once_stops_in_good_order_and_says_how_to_go_on() {
    let stage = TestFolder::new();
    let script = "
rules:
  - { when: { turn: 1 }, call: [ { tool: look } ] }
  - say: done
tools: { look: { think_ms: 2000, say: it } }
";
    let mut terminal = stage.terminal(&["run", &stage.tree("look", script)], 80, 24);
    terminal.until("look {}");
    terminal.send("\u{3}");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(130), "{}", ended.out);
    let summary = &ended.out[ended.out.find("stopped after").unwrap()..];
    insta::assert_snapshot!("stopped_80", steady(summary));
    let resume = summary.lines().find_map(|line| line.trim().strip_prefix("next    ")).unwrap();
    assert_eq!(stage.shell(resume).code, Some(0));
}

/// A question is asked in place, and the answer is typed there.
#[test]
fn a_question_is_asked_and_answered_on_the_terminal() {
    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", &stage.tree("ask_human", ASKS)], 80, 24);
    terminal.until("\n>");
    terminal.send("blue\n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    insta::assert_snapshot!("answered_80", steady(&ended.out));
}

/// A terminal that changes its size in the middle of a run: wide, narrow, low, and one row high. Nothing of the view is left
/// behind, and the summary is whole.
#[test]
fn a_terminal_may_change_its_size_while_a_tree_runs() {
    let stage = TestFolder::new();
    let script = "
rules:
  - call:
      - { tool: spawn_agent, args: { agent: nobody, goal: Look. } }
      - { tool: hang, args: { at: 'BEGIN, and many words between, so that only a wide terminal has the END' } }
tools: { hang: { hang: true } }
";
    let tree = stage.tree("spawn_agent, hang", script);
    let mut terminal = stage.terminal(&["run", &tree], 60, 24);
    terminal.until_visible("BEGIN");
    let views = |text: &str| (text.matches("test · ").count(), text.matches("lead !1").count());
    for (columns, lines, shown, hidden) in [
        (200, 24, "the END", "\u{0}"),
        (60, 24, "BEGIN", "the END"),
        (200, 24, "the END", "\u{0}"),
        (60, 8, "BEGIN", "is refused"),
        (60, 1, "", "test"),
        (60, 24, "is refused", "the END"),
        (200, 1, "", "test"),
        (61, 24, "is refused", "the END"),
    ] {
        terminal.resize(columns, lines);
        terminal.until_hidden(hidden);
        let all = terminal.until_visible(shown);
        let expected = if lines == 1 { (0, 0) } else { (1, 1) };
        assert_eq!(views(&all), expected, "{columns}x{lines}:\n{all}");
        let text = terminal.text();
        assert!(text.starts_with("SCRIPTED: "), "{columns}x{lines}:\n{text}");
    }
    assert_eq!(stage.spinney(&["cancel"]).code, Some(0));
    let ended = terminal.end();
    assert_eq!(ended.code, Some(4), "{}", ended.out);
    assert_eq!(views(&ended.out), (0, 0), "{}", ended.out);
    insta::assert_snapshot!("resized_61", steady(&ended.out));
}

/// An answer whose author broke its lines: paragraphs and items are filled anew, code and tables stay.
#[test]
fn an_answer_with_line_breaks_of_its_own_fits_the_terminal() {
    let answer = "\
I compared the three of them for a small team, and PyTorch is what I would begin
with: most people know it, most questions have been answered somewhere, and what
it lacks in speed hardly matters at your size.

- JAX is faster on large machines, but few people know it, and its errors take
  getting used to.
- TensorFlow is fine if you have it.

| name    | help      | speed                                                     |
|---------|-----------|-----------------------------------------------------------|
| PyTorch | much      | good                                                      |

```python
import torch; print(torch.tensor([1.0, 2.0, 3.0]).sum())  # a line that nobody breaks
```
";
    let indented: String = answer.lines().map(|line| format!("      {line}\n")).collect();
    for (columns, name) in [(60, "answer_60"), (80, "answer_80"), (200, "answer_200")] {
        let stage = TestFolder::new();
        let tree = stage.tree("", &format!("rules:\n  - say: |\n{indented}"));
        let ended = stage.terminal(&["run", &tree], columns, 30).end();
        assert_eq!(ended.code, Some(0), "{}", ended.out);
        insta::assert_snapshot!(name, steady(&ended.out));
    }
}

/// G17: the commands that a summary on a terminal suggests work when they are pasted.
#[test]
fn g17_what_the_summary_suggests_works() {
    let stage = TestFolder::new();
    let ended = stage.terminal(&["run", &scripted_team(&stage)], 80, 30).end();
    let looks: Vec<&str> =
        ended.out.lines().filter_map(|line| Some(&line[line.find("spinney ")?..])).collect();
    assert_eq!(looks.len(), 3, "{}", ended.out);
    for snapshot in looks {
        let pasted = stage.shell(snapshot);
        assert_eq!(pasted.code, Some(0), "{snapshot}: {}", pasted.err);
    }
    let file = ended.out.lines().find_map(|line| line.trim().strip_prefix("files   ")).unwrap();
    assert_eq!(fs::read_to_string(stage.folder().join(file)).unwrap(), "# One");
}

/// G16 (terminal): a terminal gets nothing but text and what draws the view, whatever a model, a tool or a name says.
/// The emulator fails at anything else.
#[test]
fn g16_a_terminal_gets_only_text_from_a_tree() {
    let stage = TestFolder::new();
    let tree = crate::hostile::tree(&stage);
    let mut terminal = stage.terminal(&["run", &tree], 120, 40);
    let asked = terminal.until("\n>");
    // It is wrapped before the long word.
    assert!(asked.contains("WHICH\n\\u{1b}[2J"), "{asked}");
    terminal.send("fine\n");
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    for part in ["ANSWERED", "\\u{1b}[2J", "\\u{202e}"] {
        assert!(ended.out.contains(part), "{part}: {}", ended.out);
    }
    for snapshot in [
        &["tree"][..],
        &["costs"],
        &["files"],
        &["files", "cat", "a.txt"],
        &["top", "--once"],
        &["window", "lead"],
    ] {
        assert_eq!(stage.terminal(snapshot, 80, 40).end().code, Some(0), "{snapshot:?}");
    }
}

/// `--plain`, and a terminal that cannot be drawn on, print lines.
#[test]
fn plain_prints_lines_also_on_a_terminal() {
    let stage = TestFolder::new();
    let ended = stage.terminal(&["run", "--plain", &scripted_team(&stage)], 100, 40).end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(ended.out.contains("lead starts: Look around."), "{}", ended.out);
}

/// The lines of the answer in the output of a run.
fn answer(out: &str) -> Vec<&str> {
    let from = out.lines().skip_while(|line| !line.starts_with("  answer  "));
    from.take_while(|line| line.starts_with("  answer  ") || line.starts_with("          "))
        .map(|line| &line[10..])
        .collect()
}

/// Issue 34: an answer with lines of its own was left with broken lines at most widths, in the summary, in lines and in
/// `show`.
#[test]
fn an_answer_is_filled_again_at_every_width() {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/research.yaml");
    let stage = TestFolder::new();
    let is_filled = |lines: &[&str], room: usize| {
        lines.windows(2).all(|pair| {
            let next = pair[1].split(' ').next().unwrap_or_default();
            pair[0].len() <= room && pair[0].len() + 1 + next.len() > room
        })
    };
    for columns in [60, 70, 80, 100, 120] {
        for more in [&[][..], &["--plain"]] {
            let ended = stage.terminal(&[&["run", example], more].concat(), columns, 40).end();
            let lines = answer(&ended.out);
            assert!(lines.len() > 1 && is_filled(&lines, usize::from(columns) - 10), "{lines:#?}");
        }
        let shown = stage.terminal(&["show", "lead"], columns, 400).end().out;
        let lines = shown.lines().skip_while(|line| !line.starts_with("    Take PyTorch"));
        let lines: Vec<&str> = lines.map(str::trim).take_while(|line| !line.is_empty()).collect();
        assert!(lines.len() > 1 && is_filled(&lines, usize::from(columns) - 4), "{lines:#?}");
    }
}

/// Issue 34: into a pipe, `tree` shortened names and texts, and had other lines than a terminal with room for them.
#[test]
fn a_tree_in_a_pipe_is_whole_and_the_same_as_on_a_wide_terminal() {
    let stage = TestFolder::new();
    let tree = scripted_team(&stage);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    let piped = stage.spinney(&["tree", "--color", "never"]).out;
    assert!(!piped.contains('…'), "{piped}");
    assert!(piped.contains("on any terminal that is not very wide."), "{piped}");
    let on_terminal = stage.terminal(&["tree", "--color", "never"], 300, 40).end().out;
    assert_eq!(on_terminal.trim_end(), piped.trim_end());
    insta::assert_snapshot!("tree_piped", steady(&piped));
    insta::assert_snapshot!("tree_100", steady(&stage.terminal(&["tree"], 100, 40).end().out));
}

/// Issue 34: whatever is typed while a tree runs, the terminal does not show it in the view, and it waits for the next
/// program that reads.
#[test]
fn typing_while_a_tree_runs_leaves_nothing_on_the_screen() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::says("I ask.", &[]).late()]);
    let mut terminal = stage.terminal(&["run", &stage.tree_on(&upstream)], 100, 24);
    terminal.until("● lead");
    let before = terminal.text();
    terminal.send("abc\n\nrm\n");
    upstream.release();
    let ended = terminal.end();
    assert_eq!(ended.code, Some(0), "{}", ended.out);
    assert!(!ended.out.contains("abc") && !ended.out.contains("● lead"), "{before}\n{}", ended.out);
}
