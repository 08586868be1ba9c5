//! Commands that look: they take a tree the same way, fit their terminal, and add up.

use std::fs;
use std::os::unix::fs::chown;
use std::process::Command;

use serde_json::{Value, json};

use crate::scripts::{ASKS, SAYS};
use crate::test_folder::{Ended, TestFolder, steady};
use crate::upstream::{Reply, Upstream};

/// A lead with a helper that writes a file, and one whose model fails.
const TEAM: &str = "
rules:
  - when: { agent: lead, turn: 1 }
    call:
      - { tool: spawn_agent, args: { agent: helper, id: one, goal: Look at one., budget: { cost_usd: 0.1 } } }
      - { tool: spawn_agent, args: { agent: helper, id: two, goal: Look at two. } }
      - { tool: spawn_agent, args: { agent: nobody, goal: Look at three. } }
  - { when: { agent: lead }, say: Both are worth a look. }
  - when: { agent: helper, turn: 1, goal_contains: one }
    call: [ { tool: write_file, args: { path: outputs/one.md, text: '# One' } } ]
  - when: { agent: helper, goal_contains: two }
    fail: { kind: server, times: 1, retry_after_ms: 1 }
    say: Two is fine.
  - say: It is fine.
";

fn team(stage: &TestFolder) -> String {
    stage.file("team.script.yaml", TEAM);
    let price = "price: { input_per_mtok_usd: 0.25, output_per_mtok_usd: 1.25 }";
    stage.file(
        "team.yaml",
        &format!(
            "name: team
goal: Look around.
budget: {{ cost_usd: 1, tokens: 100000, retries: 9 }}
models: {{ fast: {{ provider: scripted, script: team.script.yaml, {price} }} }}
agents:
  lead: {{ model: fast, tools: [spawn_agent, write_file], subagents: [helper] }}
  helper: {{ model: fast, tools: [write_file], window: {{ size: 2000 }} }}
entry: lead
"
        ),
    )
}

/// A home in which a team has done its work.
fn done() -> TestFolder {
    let stage = TestFolder::new();
    let run = stage.spinney(&["run", &team(&stage)]);
    assert_eq!(run.code, Some(0), "{}{}", run.out, run.err);
    stage
}

fn shown(ended: &Ended) -> (Option<i32>, &str, &str) {
    (ended.code, &ended.out, &ended.err)
}

#[test]
fn every_command_takes_its_tree_the_same_way() {
    let stage = done();
    let id = stage.spinney(&["ps", "--json"]).result()["tree"].as_str().unwrap().to_owned();
    let before: [&[&str]; 19] = [
        &["resume"],
        &["events"],
        &["show"],
        &["window"],
        &["questions"],
        &["shared"],
        &["tree"],
        &["costs"],
        &["files"],
        &["replay"],
        &["attach"],
        &["cancel"],
        &["pause"],
        &["unpause"],
        &["budget"],
        &["answer"],
        &["send"],
        &["refresh"],
        &["checkpoint", "make"],
    ];
    let after = |verb: &str| -> &[&str] {
        match verb {
            "show" | "window" | "refresh" | "make" => &["lead"],
            "budget" => &["--add-usd", "1"],
            "answer" => &["2", "blue"],
            // A message to the root would continue a tree that has ended.
            "send" => &["helper", "hi"],
            _ => &[],
        }
    };
    for verb in before {
        let after = after(verb.last().unwrap());
        let said = |tree: &[&str]| stage.spinney(&[verb, tree, after].concat());
        let nothing = said(&[]);
        assert_ne!(nothing.code, None, "{verb:?}");
        assert!(!nothing.err.contains("Usage:"), "{verb:?}: {}", nothing.err);
        for tree in ["last", &id, &id[..10]] {
            assert_eq!(shown(&said(&[tree])), shown(&nothing), "{verb:?} {tree}");
        }
        let unknown = said(&["ffff"]);
        assert_eq!(unknown.code, Some(2), "{verb:?}");
        assert!(unknown.err.contains("no tree starts with `ffff`"), "{verb:?}: {}", unknown.err);
    }
    // Without a tree before it, an agent is not taken for one.
    let agent = stage.spinney(&["cancel", "lead"]);
    assert_eq!(agent.code, Some(2));
    insta::assert_snapshot!(agent.err, @"spinney: `lead` is an agent: name its tree before it, as in `last lead`");
    assert_eq!(stage.spinney(&["rm"]).code, Some(0));
    assert_eq!(stage.spinney(&["ps", "--json"]).out, "");
}

/// As git finds its own: from any folder below. A home of another user is passed by.
#[test]
fn the_home_is_found_in_the_folders_above_if_it_is_ones_own() {
    let stage = TestFolder::new();
    let tree = stage.tree("", SAYS);
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    assert_eq!(fs::read_to_string(stage.home().join(".gitignore")).unwrap(), "*\n");
    let below = stage.folder().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let here = |args: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_spinney"));
        let output = command.args(args).env_remove("SPINNEY_HOME").current_dir(&below).output().unwrap();
        Ended::from(output)
    };
    assert_eq!(here(&["ps", "--json"]).out, stage.spinney(&["ps", "--json"]).out);
    // The command that it suggests works there, without naming the home.
    let ended = here(&["run", &tree]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.out.contains("  look    spinney events "), "{}", ended.out);
    assert!(!below.join(".spinney").exists());
    assert_eq!(here(&["ps", "--json"]).json().len(), 2);
    if chown(stage.home(), Some(12_345), None).is_ok() {
        let passed_by = here(&["ps"]);
        assert_eq!(passed_by.code, Some(2), "{}", passed_by.out);
        assert!(passed_by.err.contains("no home at .spinney"), "{}", passed_by.err);
        chown(stage.home(), Some(0), None).unwrap();
    }
}

#[test]
fn colours_are_for_terminals_and_for_those_who_ask() {
    let stage = done();
    let coloured = |args: &[&str]| stage.spinney(args).out.contains("\u{1b}[");
    for snapshot in ["ps", "tree", "costs", "events"] {
        assert!(!coloured(&[snapshot]), "{snapshot}");
        assert!(coloured(&[snapshot, "--color", "always"]), "{snapshot}");
        assert!(!coloured(&[snapshot, "--color", "never"]), "{snapshot}");
    }
    let terminal = stage.terminal_bytes(&["ps"], &[]);
    assert!(terminal.contains("\u{1b}[36m"), "{terminal:?}");
    assert!(!stage.terminal_bytes(&["ps"], &[("NO_COLOR", "1")]).contains("\u{1b}["));
    assert!(!stage.terminal_bytes(&["ps"], &[("TERM", "dumb")]).contains("\u{1b}["));
}

/// From 60 to 200 columns; a path is never cut, because it is there to be opened.
#[test]
fn tables_and_texts_fit_their_terminal() {
    let stage = done();
    for columns in ["60", "80", "120", "200"] {
        let looks: [&[&str]; 8] = [
            &["ps"],
            &["tree"],
            &["costs"],
            &["costs", "--by", "model"],
            &["events"],
            &["show", "lead"],
            &["window", "one"],
            &["top", "--once"],
        ];
        for snapshot in looks {
            let ended = stage.play_in(snapshot, &[("COLUMNS", columns)]).end();
            assert_eq!(ended.code, Some(0), "{snapshot:?}: {}", ended.err);
            let most = ended.out.lines().map(|line| line.chars().count()).max().unwrap();
            assert!(most <= columns.parse().unwrap(), "{snapshot:?} at {columns}: {most}\n{}", ended.out);
        }
    }
    let at = |snapshot: &str, columns: &str| {
        steady(&stage.play_in(&[snapshot], &[("COLUMNS", columns)]).end().out)
    };
    insta::assert_snapshot!("costs_60", at("costs", "60"));
    insta::assert_snapshot!("costs_80", at("costs", "80"));
    insta::assert_snapshot!("costs_200", at("costs", "200"));
    insta::assert_snapshot!("tree_60", at("tree", "60"));
    insta::assert_snapshot!("tree_80", at("tree", "80"));
    insta::assert_snapshot!("tree_200", at("tree", "200"));
    // Of one agent, so nothing happens at the same time.
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", ASKS)]).code, Some(5));
    let events = stage.play_in(&["events"], &[("COLUMNS", "60")]).end();
    insta::assert_snapshot!("events_60", steady(&events.out));
}

/// Every table sums up to what the result says, to the nano-dollar.
#[test]
fn costs_add_up_to_the_result() {
    let stage = done();
    let spent = stage.spinney(&["resume", "--json"]).result()["spent"].clone();
    let costs = stage.spinney(&["costs", "--json"]).result();
    let of = |sums: &Value, key: &str| sums["spent"][key].as_u64().unwrap();
    for key in ["cost_nanos", "tokens", "steps", "tool_calls", "retries"] {
        assert_eq!(of(&costs["total"], key), spent[key].as_u64().unwrap(), "{key}");
        for table in ["agents", "roles", "models", "steps", "attempts"] {
            let rows = costs[table].as_array().unwrap();
            let sum: u64 = rows.iter().map(|row| of(row, key)).sum();
            assert_eq!(sum, of(&costs["total"], key), "{key} of {table}");
        }
    }
    for by in ["agent", "role", "model", "step", "branch", "attempt"] {
        let table = stage.said(&["costs", "--by", by]);
        let cost = format!("${}", spent["cost_usd"]);
        assert!(table.lines().any(|line| line.starts_with("total ") && line.contains(&cost)), "{table}");
    }
}

/// What a provider's cache saved, against the price of plain input.
#[test]
fn costs_show_what_cached_prompts_saved() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::says("done", &[])]);
    let tree = stage.tree_on(&upstream);
    let text = fs::read_to_string(&tree).unwrap();
    let price = "input_per_mtok_usd: 0.25, cached_input_per_mtok_usd: 0.05";
    fs::write(&tree, text.replace("input_per_mtok_usd: 0.25", price)).unwrap();
    assert_eq!(stage.spinney(&["run", &tree]).code, Some(0));
    let total = stage.spinney(&["costs", "--json"]).result()["total"].clone();
    // 40 of 100 tokens were cached, each for a fifth of the price.
    assert_eq!((&total["input_tokens"], &total["cached_tokens"]), (&json!(100), &json!(40)));
    assert_eq!(total["saved_nanos"], json!(40 * 200));
    let printed = stage.said(&["costs"]);
    assert!(printed.contains("cached: 40 of 100 input tokens, which saved $0.000008"), "{printed}");
}

#[test]
fn files_are_listed_with_paths_to_open_and_printed() {
    let stage = done();
    let listed = stage.spinney(&["files", "--json"]).result();
    let path = stage.folder().join(listed["path"].as_str().unwrap());
    assert_eq!(fs::read_to_string(&path).unwrap(), "# One");
    assert_eq!((&listed["agent"], &listed["bytes"]), (&json!("one"), &json!(5)));
    for name in ["one.md", "one/outputs/one.md", "outputs/one.md", listed["path"].as_str().unwrap()] {
        let cat = stage.spinney(&["files", "cat", name]);
        assert_eq!((cat.code, cat.out.as_str()), (Some(0), "# One"), "{name}: {}", cat.err);
        assert_eq!(stage.spinney(&["files", "cat", "last", name]).out, "# One");
    }
    let unknown = stage.spinney(&["files", "cat", "ono.md"]);
    assert_eq!(unknown.code, Some(2));
    insta::assert_snapshot!("files_unknown", unknown.err);
    // A link in place of a file leads nowhere.
    fs::write(stage.folder().join("secret"), "secret").unwrap();
    fs::remove_file(&path).unwrap();
    std::os::unix::fs::symlink(stage.folder().join("secret"), &path).unwrap();
    assert_eq!(stage.spinney(&["files"]).out.lines().count(), 1);
    assert!(!stage.spinney(&["files", "cat", "one.md"]).out.contains("secret"));
}

#[test]
fn filters_of_events_refuse_names_that_nothing_has() {
    let stage = done();
    for (filter, part) in [
        (["--agent", "leed"], "no agent `leed` in this tree: did you mean `lead`?"),
        (["--topic", "agent.spwan"], "did you mean `agent.spawn`?"),
        (["--topic", "nothing"], "no event of this tree has the topic `nothing`: known topics: "),
    ] {
        for follow in [&[][..], &["--follow"]] {
            let refused = stage.spinney(&[&["events"], &filter[..], follow].concat());
            assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{filter:?}");
            assert!(refused.err.contains(part), "{}", refused.err);
        }
    }
    assert_eq!(stage.said(&["events", "--topic", "budget"]), "");
    assert!(stage.said(&["events", "--topic", "agent"]).contains("one  starts as helper"));
}

#[test]
fn show_lists_what_was_refused_and_which_child_is_smaller() {
    let stage = done();
    let shown = stage.said(&["show", "lead"]);
    assert!(shown.contains("it was refused, event "), "{shown}");
    assert!(shown.contains("unknown role `nobody`"), "{shown}");
}

/// The fields of everything that `--json` writes, as `docs/cli.md` lists them.
#[test]
fn json_fields_are_what_the_docs_list() {
    let stage = done();
    let waiting = TestFolder::new();
    assert_eq!(waiting.spinney(&["run", &waiting.tree("ask_human", ASKS)]).code, Some(5));
    assert_eq!(waiting.spinney(&["checkpoint", "make", "lead"]).code, Some(0));
    let looks: [(&TestFolder, &[&str]); 12] = [
        (&stage, &["resume", "--json"]),
        (&stage, &["ps", "--json"]),
        (&stage, &["tree", "--json"]),
        (&stage, &["costs", "--json"]),
        (&stage, &["files", "--json"]),
        (&stage, &["show", "lead", "--json"]),
        (&stage, &["window", "lead", "--json"]),
        (&waiting, &["questions", "--json"]),
        (&waiting, &["checkpoint", "ls", "--json"]),
        (&waiting, &["models", "haiku", "--json"]),
        (&waiting, &["doctor", "--json"]),
        (&waiting, &["check", "tree.yaml", "--json"]),
    ];
    let mut fields = String::new();
    for (stage, snapshot) in looks {
        let ended = stage.spinney(snapshot);
        let last = ended.json().pop().unwrap_or_else(|| panic!("{snapshot:?} wrote nothing: {}", ended.err));
        fields += &format!("{}: {}\n", snapshot.join(" "), keys(&last));
    }
    insta::assert_snapshot!("json_fields", fields);
    let docs = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md")).unwrap();
    let words = fields.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty());
    for word in words {
        assert!(docs.contains(word), "{word} is not documented");
    }
}

/// The keys of a value, without the values.
fn keys(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(key, value)| match keys(value) {
                    inner if inner.is_empty() => key.clone(),
                    inner => format!("{key} {inner}"),
                })
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(values) => values
            .first()
            .map(keys)
            .filter(|inner| !inner.is_empty())
            .map_or_else(String::new, |inner| format!("[{inner}]")),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => String::new(),
    }
}

/// G17 (help): every example of every command's help does something when it is pasted: none is wrong usage.
#[test]
fn g17_every_example_in_help_works() {
    let stage = TestFolder::new();
    let top = stage.said(&["help"]);
    let verbs = top.split_once("Commands:\n").unwrap().1.lines();
    // A description that is wrapped continues below itself.
    let listed = verbs.take_while(|line| !line.is_empty()).filter(|line| !line.starts_with("   "));
    let verbs: Vec<&str> = listed.filter_map(|line| line.split_whitespace().next()).collect();
    let mut examples = Vec::new();
    for help in verbs
        .iter()
        .filter(|verb| **verb != "help")
        .map(|verb| stage.said(&["help", verb]))
        .chain([top.clone()])
    {
        let lines = help.split_once("Examples:\n").unwrap_or_else(|| panic!("no examples: {help}")).1.lines();
        // In the list of all commands, a remark follows.
        let commands = lines.map(|line| line.trim().split("   ").next().unwrap().trim().to_owned());
        examples.extend(commands.filter(|line| !line.is_empty()));
    }
    assert!(examples.len() > 50, "{examples:?}");
    for example in examples {
        let stage = TestFolder::new();
        let tree = stage.tree("ask_human", ASKS);
        let needs_home = !["init", "check", "models", "doctor", "completions", "help"]
            .iter()
            .any(|verb| example.starts_with(&format!("spinney {verb}")));
        if needs_home {
            assert_eq!(stage.spinney(&["run", &tree]).code, Some(5));
        }
        let ended = stage.shell(&example);
        assert_ne!(ended.code, None, "{example}");
        // Refused because of this tree's state is fine; wrong usage is not.
        assert!(!ended.err.contains("error: "), "{example}: {}", ended.err);
        assert!(!ended.err.contains("Usage:"), "{example}: {}", ended.err);
    }
}
