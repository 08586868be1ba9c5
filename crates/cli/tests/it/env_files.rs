//! The files of variables that the user's configuration names: their keys reach only providers.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};

use crate::configuration::{configure, path, placed};
use crate::exec::{exec, used};
use crate::homes::is_root;
use crate::test_folder::TestFolder;
use crate::upstream::{Reply, Upstream};

const KEY: &str = "sk-of-the-file-0123456789abcdef";

/// Writes a private file of variables, and a configuration that names it.
fn keys(stage: &TestFolder, text: &str) -> String {
    let file = stage.file("keys.env", text);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    configure(
        stage,
        &format!(
            "allow_hosts = ['127.0.0.1']\nenv_files = ['{file}']\n[prices.tiny]\ninput_per_mtok_usd = 1\noutput_per_mtok_usd = 2\n"
        ),
    );
    file
}

/// A tree on a model that needs a key, and has its price from the user's configuration.
fn tree(stage: &TestFolder, upstream: &Upstream) -> String {
    let model = format!(
        "provider: openai_compatible, model: tiny, base_url: '{}', key_env: TEST_FILE_KEY",
        upstream.url
    );
    stage.file(
        "tree.yaml",
        &format!(
            "name: test\ngoal: 'Say {{{{ inputs.word }}}}.'\ninputs: {{ word: {{ env: TEST_WORD }} }}\nbudget: {{ cost_usd: 1 }}\n\
             models: {{ fast: {{ {model} }} }}\nagents: {{ lead: {{ model: fast }} }}\n"
        ),
    )
}

/// Everything in a folder and below.
fn files(folder: &std::path::Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            all.extend(files(&entry));
        } else if entry.is_file() {
            all.push((entry.clone(), fs::read(&entry).unwrap()));
        }
    }
    all
}

#[test]
fn a_key_of_a_file_is_used_where_the_environment_has_none() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::says("done", &[])]);
    let file = tree(&stage, &upstream);
    let missing = stage.spinney(&["run", &file]);
    assert!(missing.err.contains("TEST_FILE_KEY is not set"), "{}", missing.err);
    keys(&stage, &format!("# mine\nexport TEST_FILE_KEY='{KEY}'\nTEST_WORD=owls\n"));
    let ended = stage.spinney(&["run", &file]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let asked = upstream.asked();
    assert!(asked[0].head.contains(KEY) && asked[0].text.contains("Say owls."), "{}", asked[0].head);
    // The environment comes first, even if it sets a variable to nothing.
    let ended = stage
        .play_in(&["run", &file], &[("TEST_FILE_KEY", "sk-of-the-environment"), ("TEST_WORD", "bees")])
        .end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    let asked = upstream.asked();
    assert!(asked[1].head.contains("sk-of-the-environment") && asked[1].text.contains("Say bees."));
    let ended = stage.play_in(&["run", &file], &[("TEST_FILE_KEY", "")]).end();
    assert!(ended.err.contains("TEST_FILE_KEY is not set"), "{}", ended.err);
    let doctor = stage.spinney(&["doctor", &file, "--no-calls"]);
    assert!(doctor.out.contains("TEST_FILE_KEY"), "{}", doctor.out);
    // It is nowhere but in its own file.
    for (path, bytes) in files(stage.folder()).into_iter().filter(|(path, _)| !path.ends_with("keys.env")) {
        assert!(!bytes.windows(KEY.len()).any(|found| found == KEY.as_bytes()), "{}", path.display());
    }
}

/// A run that was stopped needs its key again, and finds it in the file.
#[test]
fn a_tree_is_resumed_with_the_key_of_a_file() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::held(), Reply::says("done", &[])]);
    keys(&stage, &format!("TEST_FILE_KEY={KEY}\nTEST_WORD=owls\n"));
    let running = stage.play(&["run", &tree(&stage, &upstream)]);
    upstream.was_asked(1);
    running.kill();
    let ended = stage.spinney(&["resume"]);
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(upstream.asked()[1].head.contains(KEY));
}

/// The gateway sends the key up; the program and the command that is notified get nothing of the file.
#[test]
fn a_program_gets_nothing_of_a_file() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![used(1)]);
    let file = stage.file(
        "keys.env",
        &format!(
            "ANTHROPIC_API_KEY={KEY}\nANTHROPIC_BASE_URL={}\nNO_PROXY=of-the-file\nTEST_OTHER={KEY}\n",
            upstream.url
        ),
    );
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let program = stage.file("program.sh", &format!("{}\ncall 10 hello\nenv\n", crate::exec::CALLS));
    configure(
        &stage,
        &format!(
            "env_files = ['{file}']\n[budget]\ncost_usd = 3\n[prices.m]\ninput_per_mtok_usd = 0\noutput_per_mtok_usd = 1000\n"
        ),
    );
    let ended = stage.play_in(&["exec", "--", "bash", &program], &[]).end();
    assert_eq!(ended.code, Some(0), "{}", ended.err);
    assert!(ended.err.contains("at most $3.00"), "{}", ended.err);
    assert!(ended.err.contains("spent $0.001 of $3.00 · 1 call"), "{}", ended.err);
    assert!(ended.out.contains("used 1"), "{}", ended.out);
    assert!(!ended.out.contains(KEY) && !ended.out.contains("of-the-file"), "{}", ended.out);
    assert!(upstream.asked()[0].head.contains(&format!("x-api-key: {KEY}")), "{}", upstream.asked()[0].head);
    // A key of the environment comes before one of the file, whichever of its two names it has.
    let running = exec(&stage, &upstream, &["--budget-usd", "1"], "call 10 again");
    assert_eq!(running.end().code, Some(0));
    assert!(!upstream.asked()[1].head.contains(KEY), "{}", upstream.asked()[1].head);
}

#[test]
fn a_file_that_cannot_be_trusted_or_read_stops_a_run_and_no_value_is_shown() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::says("done", &[])]);
    let tree = tree(&stage, &upstream);
    let file = keys(&stage, "");
    let told = |what: &str| {
        let ended = stage.spinney(&["run", &tree]);
        assert_eq!(ended.code, Some(2), "{what}: {}", ended.err);
        assert!(!ended.err.contains("secret"), "{}", ended.err);
        format!("{what}: {}\n", placed(&stage, ended.err.trim_end()))
    };
    let mut all = String::new();
    fs::write(&file, "A=1\nTEST_FILE_KEY=my secret\n").unwrap();
    all += &told("wrong");
    fs::write(&file, format!("A={}\n", "secret".repeat(64 * 1024 / 6 + 1))).unwrap();
    all += &told("too large");
    fs::write(&file, "TEST_FILE_KEY=secret\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o660)).unwrap();
    all += &told("others may write it");
    fs::remove_file(&file).unwrap();
    all += &told("missing");
    fs::create_dir(&file).unwrap();
    all += &told("a folder");
    insta::assert_snapshot!(all, @r"
    wrong: spinney: cannot read [folder]/keys.env: line 2: TEST_FILE_KEY: put the value in single quotes
    too large: spinney: cannot read [folder]/keys.env: it has more than 65536 bytes
    others may write it: spinney: cannot read [folder]/keys.env: other users can write to it (mode 660): check its content, then run `chmod 600 '[folder]/keys.env'`
    missing: spinney: [folder]/keys.env does not exist, but `env_files` of your configuration names it: create it, or run `spinney config remove env_files [folder]/keys.env`
    a folder: spinney: cannot read [folder]/keys.env: it is a folder: name a file in it
    ");
    fs::remove_dir(&file).unwrap();
    if is_root(&stage) {
        keys(&stage, "TEST_FILE_KEY=secret\n");
        chown(&file, Some(12_345), None).unwrap();
        assert!(told("of another user").contains("it belongs to another user (uid 12345)"));
        fs::remove_file(&file).unwrap();
    }
    // The configuration itself can still be shown and mended, as the message says.
    let mended = stage.shell(&format!("spinney config remove env_files {file}"));
    assert_eq!(mended.code, Some(0), "{}", mended.err);
    assert!(fs::read_to_string(path(&stage)).unwrap().contains("\nenv_files = []\n"));
    assert_eq!(upstream.asked().len(), 0);
}

/// A file of a project with this name means nothing.
#[test]
fn a_file_of_a_project_is_not_read_by_itself() {
    let stage = TestFolder::new();
    let upstream = Upstream::new(vec![Reply::says("done", &[])]);
    let tree = tree(&stage, &upstream);
    stage.file(".env", "TEST_FILE_KEY=sk-of-the-project\nTEST_WORD=owls\n");
    let ended = stage.spinney(&["run", &tree]);
    assert!(ended.err.contains("TEST_FILE_KEY is not set"), "{}", ended.err);
}

/// A program under a budget does not get at these keys by starting another run: that would have its own budget.
#[test]
fn a_run_inside_a_run_reads_no_files() {
    let (stage, upstream) = (TestFolder::stranger(), Upstream::new(vec![used(900)]));
    keys(&stage, &format!("ANTHROPIC_API_KEY={KEY}\nANTHROPIC_BASE_URL={}\n", upstream.url));
    let inner = format!(
        "unset ANTHROPIC_API_KEY ANTHROPIC_BASE_URL ANTHROPIC_AUTH_TOKEN OPENAI_API_KEY OPENAI_BASE_URL CODEX_API_KEY \
         GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GEMINI_BASE_URL\n\
         {} exec --budget-usd 50 -- true; echo inner: $?",
        env!("CARGO_BIN_EXE_spinney")
    );
    let ended = exec(&stage, &upstream, &["--budget-usd", "1"], &inner).end();
    assert!(ended.out.contains("inner: 2"), "{} {}", ended.out, ended.err);
    assert!(ended.err.contains("are not read inside a run of `exec`"), "{}", ended.err);
    assert_eq!(upstream.asked().len(), 0);
}
