//! `init`: what the templates are, that each of them runs as it is written, and that nothing is overwritten.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use crate::test_folder::TestFolder;

#[test]
fn init_writes_a_file_that_runs_at_once_and_overwrites_nothing() {
    let stage = TestFolder::new();
    let ended = stage.spinney(&["init"]);
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
    insta::assert_snapshot!(ended.out);
    let check = stage.spinney(&["check", "tree.yaml"]);
    assert!(check.out.starts_with("tree.yaml: no problems\n"), "{}", check.out);
    let run = stage.spinney(&["run", "tree.yaml", "--json"]);
    assert_eq!((run.code, &run.result()["agents"]), (Some(0), &json!(2)), "{}", run.err);
    let before = fs::read_to_string(stage.folder().join("tree.yaml")).unwrap();
    let again = stage.spinney(&["init"]);
    assert_eq!(again.code, Some(2));
    assert_eq!(
        again.err,
        "spinney: tree.script.yaml already exists; nothing was written: choose another name\n"
    );
    assert_eq!(fs::read_to_string(stage.folder().join("tree.yaml")).unwrap(), before);
    // A script that exists is kept, and so is the folder's other content; nothing half done stays.
    fs::remove_file(stage.folder().join("tree.script.yaml")).unwrap();
    assert_eq!(stage.spinney(&["init"]).code, Some(2));
    assert!(!stage.folder().join("tree.script.yaml").exists());
    assert_eq!(
        stage.spinney(&["init", "x.toml"]).err,
        "spinney: `init` writes YAML, not toml: end the name in .yaml\n"
    );
}

/// Every provider's file passes the check and runs on its script without a key; with `--schema`, editors find it.
#[test]
fn init_writes_files_for_providers_with_the_script_as_their_stand_in() {
    let stage = TestFolder::new();
    for provider in ["openai", "anthropic", "gemini"] {
        let ended = stage.spinney(&["init", provider, "--provider", provider, "--schema"]);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""));
        assert!(ended.out.contains("its answers come from tree.script.yaml"), "{}", ended.out);
        let file = format!("{provider}/tree.yaml");
        let text = fs::read_to_string(stage.folder().join(&file)).unwrap();
        assert!(text.starts_with("# yaml-language-server: $schema=tree-file.schema.json\n"), "{text}");
        let schema = fs::read_to_string(stage.folder().join(provider).join("tree-file.schema.json")).unwrap();
        assert_eq!(schema, include_str!("../../../../docs/tree-file.schema.json"));
        let line = stage.spinney(&["check", &file, "--json"]).result();
        let severities: Vec<&Value> =
            line["problems"].as_array().unwrap().iter().map(|problem| &problem["severity"]).collect();
        assert_eq!((&line["ok"], severities), (&json!(true), vec![&json!("note")]), "{line}");
        assert_eq!(stage.spinney(&["run", &file]).code, Some(0));
    }
    let ollama = stage.spinney(&["init", "ollama", "--provider", "ollama"]);
    assert!(ollama.out.ends_with("ollama must be running on this machine\n"), "{}", ollama.out);
    assert_eq!(stage.spinney(&["check", "ollama/tree.yaml"]).code, Some(0));
}

/// Every template of the list runs at once, without an account, and does what the list says.
#[test]
fn every_template_runs_as_it_is_written() {
    let stage = TestFolder::new();
    insta::assert_snapshot!(stage.said(&["init", "--list"]), @r"
    hello                  an agent and its helper
    research               a lead, and researchers who work at the same time
    pipeline               an agent for each file, and one that summarises
    panel                  three reviewers who vote on a diff, and an author who changes it until it passes
    exec                   a budget around a program such as Claude Code or Codex
    s01-sequence           when every step needs the result of the one before it
    s02-fan-out            when several tasks do not depend on each other, and an agent decides which ones there are
    s03-fan-in             when a lead has something to do while others work, and gathers their results later
    s04-nesting            when a task is passed down several levels, and its answer back up
    s05-peers              when several agents should agree among themselves, and none of them is the master
    s06-choose             when the result of one step decides which agent works next
    s07-leave-and-return   when a task takes long and you do not want to watch it all the time
    s08-shared-memory      when several agents work on the same plan and must not overwrite each other
    s09-resume             when a tree must survive the death of its process
    s10-partial            when an agent may run out of turns or budget, and another one should continue from there
    s11-ask-from-below     when an agent deep in a chain may need something that only a person knows
    s12-several-questions  when several agents may need an answer, and none should hold up the others
    s13-redirect           when you may see, while the work runs, that it should go another way
    s14-answer-timeout     when a person may say no, but silence must not stop the work
    s15-critic-loop        when a draft must get better until somebody else accepts it
    s16-vote               when one agent's judgement is not enough, and several should agree before anything happens
    s17-race               when there are several ways to the same answer, and the first one that works is enough
    s18-map-reduce         when the same task has to be done for each item of a list, and one result made of all of them
    s19-timeout            when an answer is only worth waiting for so long
    s20-cycle              to see why agents that delegate to each other do not run in circles
    s21-undo               when a failure half-way must not leave half of the work behind
    s22-wrong-type         when the next step needs a number, a date or a list, and prose would do harm there
    s23-seven-of-ten       when some of many tasks may fail, and the rest is still worth having
    s24-one-trace          when logs and traces of many agents must be brought together
    s25-rate-limits        when one kind of agent must not use up a service or a budget that others share
    s26-streaming          when you want to read what an agent deep in the tree writes while it writes it
    s27-audit              when you must show later who did what, and that nobody changed the record
    structured-answer      when a program reads the answer

      spinney init research               write one of them here
      spinney init s18                    a scenario, by its number or its name
      spinney init --template s18 guests  into a folder
    ");
    let listed = stage.spinney(&["init", "--list", "--json"]).json();
    for (name, agents, output) in [
        ("hello", 2, "Small woods are home"),
        ("research", 3, "Plant several kinds"),
        ("pipeline", 4, "It has run since"),
        ("panel", 9, "The panel objected once"),
    ] {
        assert!(listed.iter().any(|line| line["template"] == name), "{listed:?}");
        for provider in [None, Some("anthropic")] {
            let path = format!("{name}-{}/own.yaml", provider.unwrap_or("script"));
            let mut args = vec!["init", "--template", name, &path];
            args.extend(provider.iter().flat_map(|provider| ["--provider", provider]));
            let wrote = stage.spinney(&args);
            assert_eq!((wrote.code, wrote.err.as_str()), (Some(0), ""), "{name}");
            let checked = stage.spinney(&["check", &path]);
            assert_eq!(checked.code, Some(0), "{name}: {}", checked.out);
            let text = fs::read_to_string(stage.folder().join(&path)).unwrap();
            assert!(!text.contains("tree.yaml") && !text.contains("tree.script"), "{name}: {text}");
            assert!(
                !text.contains("run review-panel") && !text.contains("language-server"),
                "{name}: {text}"
            );
            let ran = stage.spinney(&["run", &path, "--json"]);
            assert_eq!((ran.code, &ran.result()["agents"]), (Some(0), &json!(agents)), "{name}: {}", ran.err);
            assert!(ran.result()["output"].as_str().unwrap().contains(output), "{name}: {}", ran.out);
            let is_failed =
                |event: &&Value| event["is_error"] == true || event["outcome"]["is_error"] == true;
            let events = ran.json();
            assert_eq!(events.iter().find(is_failed), None, "{name}");
            for file in promised(&text) {
                let files = stage.said(&["files"]);
                assert!(files.contains(&file), "{name} promises {file}: {files}");
            }
        }
    }
}

/// The files that a tree file tells its agents to write.
fn promised(text: &str) -> Vec<String> {
    let words = text.split_whitespace().map(|word| word.trim_end_matches(['.', ',']));
    words.filter(|word| word.starts_with("outputs/")).map(str::to_owned).collect()
}

/// Issue 34: the budget holds in its own folder, so the commands go there first.
#[test]
fn the_template_for_programs_in_another_folder_says_to_go_there() {
    let stage = TestFolder::stranger();
    insta::assert_snapshot!(stage.said(&["init", "own budget", "--template", "exec"]), @r"
    wrote own budget/spinney.yaml
      cd 'own budget' && spinney exec -- claude            Claude Code under this budget
      cd 'own budget' && spinney exec -- codex             Codex
      cd 'own budget' && spinney exec --explain -- claude  which budgets apply, and why
    ");
    let told = stage.shell("cd 'own budget' && spinney exec --explain --json -- true").result();
    let cost =
        told["options"].as_array().unwrap().iter().find(|row| row["option"] == "budget.cost_usd").unwrap();
    assert_eq!((&cost["value"], &cost["from"]), (&json!("2"), &json!("spinney.yaml")));
}

/// The template around a program is the file of a project: it bounds what is started there.
#[test]
fn the_template_for_programs_is_a_budget_for_a_project() {
    let stage = TestFolder::stranger();
    insta::assert_snapshot!(stage.said(&["init", "--template", "exec"]), @r"
    wrote spinney.yaml
      spinney exec -- claude            Claude Code under this budget
      spinney exec -- codex             Codex
      spinney exec --explain -- claude  which budgets apply, and why
    ");
    let told = stage.spinney(&["exec", "--explain", "--json", "--", "true"]).result();
    let cost =
        told["options"].as_array().unwrap().iter().find(|row| row["option"] == "budget.cost_usd").unwrap();
    assert_eq!((&cost["value"], &cost["from"]), (&json!("2"), &json!("spinney.yaml")));
    for args in [&["x.yaml"][..], &["--provider", "openai"], &["--schema"]] {
        let refused = stage.spinney(&[&["init", "--template", "exec"], args].concat());
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{args:?}");
    }
    let again = stage.spinney(&["init", "--template", "exec"]);
    assert!(again.err.contains("spinney.yaml already exists; nothing was written"), "{}", again.err);
}

/// A project names folders in its file; `init` copies one of them, and only what is in the project.
#[test]
fn a_project_has_templates_of_its_own() {
    let stage = TestFolder::stranger();
    let folder = stage.folder();
    assert_eq!(stage.spinney(&["init", "docs/team"]).code, Some(0));
    fs::create_dir_all(folder.join("docs/none")).unwrap();
    fs::create_dir_all(folder.join("docs/linked")).unwrap();
    symlink("/etc/passwd", folder.join("docs/linked/tree.yaml")).unwrap();
    symlink("/etc", folder.join("docs/outside")).unwrap();
    stage.file(
        "spinney.yaml",
        "templates: { team: docs/team, gone: docs/gone, none: docs/none, linked: docs/linked, outside: docs/outside }\n",
    );
    let listed = stage.said(&["init", "--list"]);
    let is_team = |line: &str| line.starts_with("team ") && line.ends_with(" docs/team, of this project");
    assert!(listed.lines().any(is_team), "{listed}");
    let wrote = stage.said(&["init", "--template", "team", "own"]);
    insta::assert_snapshot!(wrote, @r"
    wrote own/tree.script.yaml, own/tree.yaml
      spinney check own/tree.yaml  what it looks like, and where it sends anything
      spinney run own/tree.yaml    run it
    ");
    let ran = stage.spinney(&["run", "own/tree.yaml", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    for (name, says) in [
        ("gone", "cannot read the template in"),
        ("none", "is empty"),
        ("linked", "cannot read"),
        ("outside", "is outside its project: nothing was read"),
        (
            "other",
            "unknown template `other`: known templates: hello, research, pipeline, panel, exec, gone, linked",
        ),
    ] {
        let refused = stage.spinney(&["init", "--template", name, "new"]);
        assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{name}");
        assert!(refused.err.contains(says), "{name}: {}", refused.err);
        assert!(!folder.join("new").exists(), "{name}");
    }
    for number in 0..40 {
        fs::write(folder.join(format!("docs/none/{number}")), "").unwrap();
    }
    let many = stage.spinney(&["init", "--template", "none", "new"]);
    assert!(many.err.contains("more than 32 files"), "{}", many.err);
    fs::write(folder.join("docs/linked/\u{1b}[2J"), "").unwrap();
    fs::remove_file(folder.join("docs/linked/tree.yaml")).unwrap();
    let unreadable = stage.spinney(&["init", "--template", "linked", "new"]);
    assert!(unreadable.err.contains(r#"an unreadable name: "\u{1b}[2J""#), "{}", unreadable.err);
    fs::write(folder.join("docs/team/large"), vec![b'x'; 1024 * 1024]).unwrap();
    let large = stage.spinney(&["init", "--template", "team", "new"]);
    assert!(large.err.contains("more than 1048576 bytes"), "{}", large.err);
}

/// Every scenario is copied by its number and by its name, as it lies in the project, and runs there as it does here.
#[test]
fn every_scenario_is_copied_by_its_number() {
    let stage = TestFolder::new();
    let listed = stage.spinney(&["init", "--list", "--json"]).json();
    let names = listed.iter().filter_map(|line| line["template"].as_str());
    let scenarios: Vec<&str> =
        names.filter(|name| name.starts_with('s') && name.as_bytes()[1].is_ascii_digit()).collect();
    assert!(scenarios.len() >= 25, "{scenarios:?}");
    let page = include_str!("../../../../docs/patterns.md");
    for name in &scenarios {
        assert!(page.contains(&format!("`{name}`")), "docs/patterns.md does not list {name}");
        let wrote = stage.spinney(&["init", &name[..3]]);
        assert_eq!((wrote.code, wrote.err.as_str()), (Some(0), ""), "{name}");
        let checked = stage.spinney(&["check", &format!("{name}.yaml"), "--json"]).result();
        assert_eq!(checked["ok"], json!(true), "{name}: {checked}");
    }
    let again = stage.spinney(&["init", "s18"]);
    assert!(
        again.err.contains("s18-map-reduce.script.yaml already exists; nothing was written"),
        "{}",
        again.err
    );
    let run = stage.spinney(&["run", "s18-map-reduce.yaml", "--json"]);
    assert_eq!((run.code, &run.result()["agents"]), (Some(0), &json!(6)), "{}", run.err);
    let text = fs::read_to_string(stage.folder().join("s18-map-reduce.yaml")).unwrap();
    assert!(
        text.starts_with("# S18, map-reduce. Use it when ") && !text.contains("language-server"),
        "{text}"
    );
}

/// A word that can only be a template is one; any other is a folder, and so is `./s18`.
#[test]
fn a_name_of_a_template_is_not_taken_for_a_folder() {
    let stage = TestFolder::new();
    let folder = stage.folder();
    for (word, file) in [
        ("s16-vote", "s16-vote.yaml"),
        ("panel", "review-panel.yaml"),
        ("./s16", "s16/tree.yaml"),
        ("s3-bucket", "s3-bucket/tree.yaml"),
        ("exec", "spinney.yaml"),
    ] {
        let wrote = stage.spinney(&["init", word]);
        assert_eq!(
            (wrote.code, folder.join(file).exists()),
            (Some(0), true),
            "{word}: {}{}",
            wrote.out,
            wrote.err
        );
    }
    let into = stage.said(&["init", "--template", "s17", "trains", "--schema"]);
    assert!(
        into.starts_with(
            "wrote trains/s17-race.script.yaml, trains/s17-race.yaml, trains/tree-file.schema.json\n"
        ),
        "{into}"
    );
    for (word, help) in [("s28", "did you mean `s08`?"), ("s18-mapreduce", "did you mean `s18-map-reduce`?")]
    {
        let refused = stage.spinney(&["init", word]);
        assert_eq!(
            (refused.code, refused.err),
            (Some(2), format!("spinney: unknown template `{word}`: {help}\n"))
        );
        assert!(!folder.join(word).exists());
    }
    let near = stage.spinney(&["init", "--template", "pannel"]);
    assert_eq!(near.err, "spinney: unknown template `pannel`: did you mean `panel`?\n");
}

/// `init --from`: what a project says to Claude Code becomes a tree file that passes the check, beside it or elsewhere; what
/// it could not carry over is said, and nothing is overwritten.
#[test]
fn init_writes_a_tree_file_from_what_other_programs_are_told() {
    let stage = TestFolder::new();
    let agents = stage.folder().join("project/.claude/agents");
    fs::create_dir_all(&agents).unwrap();
    let agent = "---\nname: reviewer\ndescription: Reviews changes\ntools: Read, Grep, Bash, WebSearch\nmodel: haiku\n---\nYou review.\n";
    fs::write(agents.join("reviewer.md"), agent).unwrap();
    stage.file("project/CLAUDE.md", "Be kind.\n");
    stage.file("project/notes.py", "");
    stage
        .file("project/.mcp.json", r#"{"mcpServers":{"notes":{"command":"python3","args":["./notes.py"]}}}"#);
    for path in ["project/tree.yaml", "elsewhere.yaml"] {
        let ended = stage.spinney(&["init", "--from", "project", path]);
        assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{}", ended.out);
        assert!(
            ended.out.starts_with(&format!("wrote {path}\n1 agent and 1 server of tools")),
            "{}",
            ended.out
        );
        assert!(ended.out.contains(".claude/agents/reviewer.md:4: tool WebSearch"), "{}", ended.out);
        let text = fs::read_to_string(stage.folder().join(path)).unwrap();
        assert!(text.contains("# .claude/agents/reviewer.md:4"), "{text}");
        let check = stage.spinney(&["check", path, "--json"]);
        assert_eq!((check.code, &check.result()["ok"]), (Some(0), &json!(true)), "{} {text}", check.out);
        let again = stage.spinney(&["init", "--from", "project", path]);
        assert_eq!(again.code, Some(2));
        assert!(again.err.contains("already exists"), "{}", again.err);
    }
    let none = stage.spinney(&["init", "--from", "."]);
    assert!(none.code == Some(2) && none.err.contains("has nothing to import"), "{}", none.err);
}
