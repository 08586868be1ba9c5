//! Secrets where a journal would keep them are refused before anything starts, and are nowhere afterwards.

use std::fs;
use std::path::Path;

use crate::exec::{exec_in, used};
use crate::test_folder::{Ended, TestFolder};
use crate::upstream::Upstream;

const SHAPED: &str = "sk-ant-api03-9f8e7d6c5b4a39281706AbCd";
const TOKEN: &str = "correct horse battery";
const ENVIRONMENT: [(&str, &str); 2] = [("MY_MODEL_KEY", TOKEN), ("MY_TEAM", "staple staple staple")];

/// A tree whose models need two variables and answer from a script without them, with something more in it.
fn tree(stage: &TestFolder, more: &str) -> String {
    stage.file("tree.script.yaml", "rules: [ { say: done } ]");
    let called = "provider: openai_compatible, model: x, base_url: 'http://127.0.0.1:9/v1', key_env: MY_MODEL_KEY, \
                  params: { headers: { x-team: MY_TEAM } }, price: { input_per_mtok_usd: 1, output_per_mtok_usd: 1 }";
    stage.file(
        "tree.yaml",
        &format!(
            "name: t\ngoal: Go.\nbudget: {{ cost_usd: 1 }}\nmodels:\n  called: {{ {called} }}\n  fast: {{ provider: scripted, script: tree.script.yaml, price: {{ input_per_mtok_usd: 1, output_per_mtok_usd: 1 }} }}\nagents:\n  lead: {{ model: fast }}\n{more}"
        ),
    )
}

fn is_anywhere(folder: &Path, secret: &str) -> bool {
    let entries = fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path());
    entries.into_iter().any(|path| {
        if path.is_dir() {
            return is_anywhere(&path, secret);
        }
        let bytes = fs::read(&path).unwrap_or_default();
        bytes.windows(secret.len()).any(|part| part == secret.as_bytes())
    })
}

/// It was refused with this, no tree was started, and the secret is not in the home or what was said.
#[track_caller]
fn is_refused(stage: &TestFolder, ended: &Ended, said: &str) {
    assert_eq!(ended.code, Some(2), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains(said), "{said}: {}", ended.err);
    for secret in [SHAPED, TOKEN, "staple staple"] {
        assert!(!ended.err.contains(secret) && !ended.out.contains(secret), "{}", ended.err);
        assert!(!is_anywhere(stage.home(), secret));
    }
    assert!(
        !stage.home().join("journal.sqlite3").exists() || stage.spinney(&["ps", "--json"]).out.is_empty()
    );
}

/// G31, in part: secrets never come into a journal with what a tree is resumed from.
#[test]
fn g31_secrets_are_refused_wherever_the_journal_of_a_tree_would_keep_them() {
    let stage = TestFolder::new();
    let run = |more: &str, args: &[&str]| {
        let file = tree(&stage, more);
        stage.play_in(&[&["run", &file][..], args].concat(), &ENVIRONMENT).end()
    };
    let inputs = "inputs: { topic: { default: none } }\n";
    let key_env = "inputs: { topic: { env: MY_MODEL_KEY } }\n";
    for (more, args, said) in [
        (
            format!("# {SHAPED}\n"),
            vec![],
            "tree.yaml:9 contains what looks like a key, which the journal would keep",
        ),
        (format!("tags: {{ a: '{TOKEN}' }}\n"), vec![], "tree.yaml:9 contains the value of MY_MODEL_KEY"),
        (
            "tags: { a: staple staple staple }\n".to_owned(),
            vec![],
            "tree.yaml:9 contains the value of MY_TEAM",
        ),
        (String::new(), vec!["--goal", SHAPED], "the given goal contains what looks like a key"),
        (String::new(), vec!["--goal", TOKEN], "the given goal contains the value of MY_MODEL_KEY"),
        (
            inputs.to_owned(),
            vec!["--set", "topic=sk-ant-api03-9f8e7d6c5b4a39281706AbCd"],
            "input `topic` contains what",
        ),
        (
            inputs.to_owned(),
            vec!["--set", "topic=a correct horse battery"],
            "input `topic` contains the value of MY_MODEL_KEY",
        ),
        (key_env.to_owned(), vec![], "input `topic` contains the value of MY_MODEL_KEY"),
    ] {
        is_refused(&stage, &run(&more, &args), said);
    }
    let file = tree(&stage, "");
    for (secret, said) in
        [(SHAPED, "tree.script.yaml:2 contains what looks"), (TOKEN, "tree.script.yaml:2 contains the value")]
    {
        stage.file("tree.script.yaml", &format!("rules:\n  - say: {secret}\n"));
        is_refused(&stage, &stage.play_in(&["run", &file], &ENVIRONMENT).end(), said);
    }
    // What is not secret here is not refused: the value of a variable that the file does not name, and short ones.
    let file = tree(&stage, "tags: { a: hunter2 }\n");
    let ended = stage
        .play_in(
            &["run", &file, "--goal", "hunter2 some other text"],
            &[("MY_MODEL_KEY", "hunter2"), ("OTHER", "some other text")],
        )
        .end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
}

/// G12, G31: a program gets a secret by its environment, and no journal has it: not in arguments, not in bodies.
#[test]
fn g12_a_program_gets_secrets_by_the_environment_alone() {
    let stage = TestFolder::new();
    let keys = [
        ("ANTHROPIC_API_KEY", "the-users-own-key"),
        ("GEMINI_API_KEY", "staple staple"),
        ("MY_TOKEN", TOKEN),
    ];
    let exec = |options: &[&str], word: &str| {
        let args = [&["exec"][..], options, &["--", "echo", "begun", word]].concat();
        stage.play_in(&args, &keys).end()
    };
    for (options, word, said) in [
        (
            &[][..],
            SHAPED,
            "argument 2 of the program contains what looks like a key, which the journal would keep: pass it in the environment, for example with --secret NAME",
        ),
        (&[], "--key=the-users-own-key", "argument 2 of the program contains the value of ANTHROPIC_API_KEY"),
        (&[], "staple staple", "argument 2 of the program contains the value of GEMINI_API_KEY"),
        (&["--secret", "MY_TOKEN"], TOKEN, "argument 2 of the program contains the value of MY_TOKEN"),
        (&["--secret", "MY_OTHER_TOKEN"], "x", "MY_OTHER_TOKEN is not set"),
        (&["--secret", "ANTHROPIC_API_KEY"], "x", "the program never gets ANTHROPIC_API_KEY"),
    ] {
        is_refused(&stage, &exec(options, word), said);
        assert!(!stage.home().join("exec").exists());
    }
    let upstream = Upstream::new(vec![used(10), used(10)]);
    let script = "echo \"has ${#MY_TOKEN}\"; call 10 \"my token is $MY_TOKEN\"; exit 130";
    let options = ["--budget-usd", "1", "--secret", "MY_TOKEN", "--hide-keys"];
    let ended = exec_in(&stage, &upstream, &options, script, &[("MY_TOKEN", TOKEN)]).end();
    assert!(ended.code == Some(130) && ended.out.contains("has 21"), "{}{}", ended.out, ended.err);
    assert!(
        upstream.asked().iter().any(|asked| asked.text.contains(TOKEN)),
        "the provider gets what the program sends"
    );
    assert!(!is_anywhere(stage.home(), TOKEN));
    // The run knows that the variable is secret when it is resumed.
    let environment =
        [("ANTHROPIC_API_KEY", "the-users-own-key"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let resume = ["exec", "--resume", "last"];
    let without = stage.play_in(&resume, &environment).end();
    assert!(without.code == Some(2) && without.err.contains("MY_TOKEN is not set"), "{}", without.err);
    let again = stage.play_in(&resume, &[&environment[..], &[("MY_TOKEN", TOKEN)]].concat()).end();
    assert!(again.code == Some(130) && again.out.contains("has 21"), "{}{}", again.out, again.err);
    assert!(!is_anywhere(stage.home(), TOKEN));
}

/// A run is resumed from its journal alone: with its program and options, and those that were given when it was resumed.
#[test]
fn g31_a_program_is_resumed_from_its_journal_alone() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(10), used(10), used(10)]);
    let script = "call 10 again; exit 130";
    let ended = exec_in(&stage, &upstream, &["--budget-usd", "1", "--no-bodies"], script, &[]).end();
    assert_eq!(ended.code, Some(130), "{}", ended.err);
    let run = fs::read_dir(stage.home().join("runs")).unwrap().next().unwrap().unwrap().path();
    let environment =
        [("ANTHROPIC_API_KEY", "the-users-own-key"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let resume = |more: &[&str]| {
        let ended = stage.play_in(&[&["exec", "--resume", "last"][..], more].concat(), &environment).end();
        assert_eq!(ended.code, Some(130), "{}", ended.err);
        let events = stage.spinney(&["events", "last", "--json"]).json();
        events.iter().filter(|event| event["type"] == "tree_adjusted").count()
    };
    assert!(!run.join("exec.json").exists());
    assert_eq!(resume(&[]), 0, "nothing was given anew");
    assert_eq!(resume(&["--models", "m,n"]), 1);
    assert_eq!(resume(&[]), 1);
    assert!(!run.join("exec.json").exists());
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}
