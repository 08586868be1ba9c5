//! Completion in shells, and manual pages.

use std::fs;

use rusqlite::Connection;

use crate::scripts::{ASKS, SAYS};
use crate::test_folder::TestFolder;

/// What a shell offers for the last word of a line, without options.
fn offered(stage: &TestFolder, line: &[&str]) -> Vec<String> {
    let args: Vec<&str> = ["--", "spinney"].iter().chain(line).copied().collect();
    let ended = stage.play_in(&args, &[("SPINNEY_COMPLETE", "fish")]).end();
    assert_eq!((ended.code, ended.err.as_str()), (Some(0), ""), "{line:?}");
    ended.out.lines().filter(|line| !line.starts_with('-')).map(str::to_owned).collect()
}

#[test]
fn trees_agents_questions_values_and_files_are_offered() {
    let stage = TestFolder::new();
    assert_eq!(offered(&stage, &["resume", ""]), [""; 0]);
    assert_eq!(stage.spinney(&["run", &stage.tree("", SAYS)]).code, Some(0));
    assert_eq!(stage.spinney(&["run", &stage.tree("ask_human", ASKS)]).code, Some(5));
    let trees = stage.spinney(&["ps", "--json"]).json();
    let id = |at: usize| trees[at]["tree"].as_str().unwrap()[..12].to_owned();
    let (new, old) = (id(0), id(1));
    // The newest first.
    let both = [
        format!("{new}\ttest waiting"),
        format!("{old}\ttest completed"),
        "last\tthe tree that started last".to_owned(),
    ];
    assert_eq!(offered(&stage, &["resume", ""]), both);
    assert_eq!(offered(&stage, &["resume", &old]), both[1..2]);
    assert_eq!(offered(&stage, &["show", "l"]), ["lead", "last\tthe tree that started last"]);
    for line in [&["show", &old, ""][..], &["events", "--agent", ""], &["cancel", "last", "le"]] {
        assert_eq!(offered(&stage, line), ["lead"], "{line:?}");
    }
    let questions = offered(&stage, &["answer", "last", ""]);
    assert_eq!(questions.len(), 1, "{questions:?}");
    assert!(questions[0].contains('\t'), "{questions:?}");
    assert_eq!(offered(&stage, &["answer", ""]), [&questions[..], &both].concat());
    assert_eq!(stage.spinney(&["shared", "last", "plan", "--set", "1"]).code, Some(0));
    assert_eq!(offered(&stage, &["shared", "last", ""]), ["plan"]);
    assert_eq!(offered(&stage, &["shared", "p"]), ["plan"]);
    assert_eq!(stage.spinney(&["checkpoint", "make", "lead", "--name", "then"]).code, Some(0));
    assert_eq!(offered(&stage, &["checkpoint", "rollback", "t"]), ["then"]);
    // Another home, and none.
    assert_eq!(offered(&stage, &["--home", "nowhere", "resume", ""]), [""; 0]);
    assert_eq!(offered(&stage, &["--home=.spinney", "resume", &old]), both[1..2]);
}

#[test]
fn tree_files_templates_and_commands_are_offered() {
    let stage = TestFolder::new();
    for file in ["a.yaml", "b.toml", "c.txt"] {
        stage.file(file, "");
    }
    fs::create_dir(stage.folder().join("more")).unwrap();
    assert_eq!(offered(&stage, &["run", ""]), ["a.yaml", "b.toml", "more/", "user/"]);
    assert_eq!(
        offered(&stage, &["init", "--template", "pa"]),
        ["panel\tthree reviewers who vote on a diff, and an author who changes it until it passes"]
    );
    assert_eq!(offered(&stage, &["ev"]), ["events\tShow what happened in a tree"]);
    assert_eq!(offered(&stage, &["man", "ev"]), ["events"]);
    assert_eq!(offered(&stage, &["config", "get", "budget.c"]), ["budget.cost_usd"]);
    assert_eq!(offered(&stage, &["events", "--topic", "m"]), ["model"]);
}

/// Names of files may be a stranger's, and a shell quotes nothing of what it is offered.
#[test]
fn what_a_shell_could_take_for_more_than_a_word_is_not_offered() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("", SAYS)]).code, Some(0));
    let tree = stage.spinney(&["ps", "--json"]).json()[0]["tree"].as_str().unwrap().to_owned();
    let outputs = stage.home().join("workspace").join(tree).join("lead").join("outputs");
    fs::create_dir_all(&outputs).unwrap();
    for name in ["ok_1.txt", "x;touch pwned;", "$(touch pwned)", "a b", "`id`", "*"] {
        fs::write(outputs.join(name), "").unwrap();
        stage.file(&format!("{name}.yaml"), "");
    }
    let files = offered(&stage, &["files", "cat", "last", ""]);
    assert!(files.len() == 1 && files[0].ends_with("ok_1.txt"), "{files:?}");
    let tree_files = offered(&stage, &["run", ""]);
    assert!(tree_files.contains(&"ok_1.txt.yaml".to_owned()), "{tree_files:?}");
    for line in [&["run", ""][..], &["--home", ""]] {
        let offered = offered(&stage, line);
        assert!(!offered.iter().any(|word| word.contains([';', '$', ' ', '`', '*'])), "{offered:?}");
    }
}

/// A key that is pressed in passing changes no home: the journal of an older release stays as it is.
#[test]
fn completion_brings_no_older_journal_up_to_date() {
    let stage = TestFolder::new();
    assert_eq!(stage.spinney(&["run", &stage.tree("", SAYS)]).code, Some(0));
    let file = stage.home().join("journal.sqlite3");
    let version = || -> u32 {
        let journal = Connection::open(&file).unwrap();
        journal.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap()
    };
    let older = version() - 1;
    Connection::open(&file).unwrap().pragma_update(None, "user_version", older).unwrap();
    for line in [&["resume", ""][..], &["show", "last", ""], &["checkpoint", "rollback", ""]] {
        assert_eq!(offered(&stage, line), [""; 0], "{line:?}");
        assert_eq!(version(), older, "{line:?}");
    }
}

/// A script is code that a shell runs: it is as the library writes it, with our names.
#[test]
fn every_shell_has_a_script_that_asks_us() {
    let stage = TestFolder::new();
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = stage.spinney(&["completions", shell]);
        assert_eq!((script.code, script.err.as_str()), (Some(0), ""), "{shell}");
        assert!(
            script.out.contains("SPINNEY_COMPLETE") && script.out.contains(shell),
            "{shell}: {}",
            script.out
        );
    }
    // In a real shell.
    stage.file(
        "complete.sh",
        "eval \"$(spinney completions bash)\"\nCOMP_WORDS=(spinney checkp); COMP_CWORD=1; COMP_TYPE=9\n\
         _clap_complete_spinney spinney checkp spinney\necho \"${COMPREPLY[@]}\"\n",
    );
    let completed = stage.shell("bash complete.sh");
    assert_eq!(completed.out.trim(), "checkpoint", "{}", completed.err);
}

/// Pages have the texts of `--help`.
#[test]
fn manual_pages_are_made_from_the_help() {
    let stage = TestFolder::new();
    let page = stage.spinney(&["man", "checkpoint", "make"]);
    assert_eq!((page.code, page.err.as_str()), (Some(0), ""));
    assert!(
        page.out.contains(".TH spinney-checkpoint-make 1") && page.out.contains("context as it is now"),
        "{}",
        page.out
    );
    assert_eq!(stage.spinney(&["man", "--all", "pages"]).code, Some(0));
    let pages: Vec<_> =
        fs::read_dir(stage.folder().join("pages")).unwrap().map(|page| page.unwrap().file_name()).collect();
    assert!(
        pages.iter().any(|page| page == "spinney-exec.1") && pages.iter().any(|page| page == "spinney.1")
    );
    assert!(!pages.iter().any(|page| page.to_string_lossy().contains("guard")), "{pages:?}");
    let unknown = stage.spinney(&["man", "chekpoint"]);
    assert_eq!((unknown.code, unknown.out.as_str()), (Some(2), ""));
}
