//! `spinney config` and the user's file behind it: what it shows, what it changes, and which files are not trusted.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::path::PathBuf;
use std::process::Command;

use serde_json::json;

use crate::homes::is_root;
use crate::scripts::SAYS;
use crate::test_folder::TestFolder;

/// The user's file.
pub(crate) fn path(stage: &TestFolder) -> PathBuf {
    stage.folder().join("user/config/spinney/config.toml")
}

/// Writes the user's file.
pub(crate) fn configure(stage: &TestFolder, text: &str) {
    let path = path(stage);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
}

/// A text without the test's folder, and tables without the width that it gives their columns.
pub(crate) fn placed(stage: &TestFolder, text: &str) -> String {
    let text = text.replace(&stage.folder().canonicalize().unwrap().display().to_string(), "[folder]");
    let mut text = text.replace(&stage.folder().display().to_string(), "[folder]");
    while text.contains("   ") {
        text = text.replace("   ", "  ");
    }
    text
}

/// The output and the notes of a command that must succeed.
fn told(stage: &TestFolder, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!(ended.code, Some(0), "{args:?}: {}", ended.err);
    placed(stage, &format!("{}{}", ended.out, ended.err))
}

/// Why a command failed.
fn refused(stage: &TestFolder, args: &[&str]) -> String {
    let ended = stage.spinney(args);
    assert_eq!(ended.code, Some(2), "{args:?}: {}{}", ended.out, ended.err);
    assert_eq!(ended.out, "", "{args:?}");
    placed(stage, ended.err.trim_end())
}

const WHOLE: &str = "\
# What I use at home.
on_low = 'halt' # ask me
allow_hosts = [
  'OpenRouter.ai', # mine, too
]
env_files = ['~/keys.env']
notify = ['notify-send', 'Spinney', 'it ended']

[budget] # a day
cost_usd = 5
timeout = '30m'

[[allow_field]]
program = 'claude'
name = 'tool:web_search'

[prices.'gpt-4.1']
input_per_mtok_usd = 2
output_per_mtok_usd = 8
";

#[test]
fn without_a_file_every_setting_is_shown_with_its_default() {
    let stage = TestFolder::stranger();
    insta::assert_snapshot!(told(&stage, &["config"]), @r"
    SETTING  VALUE  FROM
    budget.cost_usd  –  default
    budget.tokens  –  default
    budget.steps  –  default
    budget.timeout  –  default
    on_low  run: halt, exec: shrink  default
    allow_hosts  –  default
    allow_field  –  default
    allow_box  –  default
    prices  –  default
    notify  –  default
    env_files  –  default
    redact_env  –  default
    [folder]/user/config/spinney/config.toml does not exist yet; `spinney config set budget.cost_usd 5` creates it
    ");
    assert!(!path(&stage).exists(), "looking writes nothing");
    assert_eq!(told(&stage, &["config", "path"]), "[folder]/user/config/spinney/config.toml\n");
}

#[test]
fn every_setting_is_shown_with_its_value_and_its_source() {
    let stage = TestFolder::stranger();
    configure(&stage, WHOLE);
    stage.file("spinney.yaml", "budget: { cost_usd: 2, steps: 10 }\n");
    insta::assert_snapshot!(told(&stage, &["config"]), @r"
    SETTING  VALUE  FROM
    budget.cost_usd  2  spinney.yaml
    budget.tokens  –  default
    budget.steps  10  spinney.yaml
    budget.timeout  30m  config.toml
    on_low  halt  config.toml
    allow_hosts  openrouter.ai  config.toml
    allow_field  claude tool:web_search  config.toml
    allow_box  –  default
    prices.gpt-4.1  2,8  config.toml
    notify  notify-send Spinney it ended  config.toml
    env_files  ~/keys.env  config.toml
    redact_env  –  default
    config.toml is [folder]/user/config/spinney/config.toml
    spinney.yaml is [folder]/spinney.yaml; it can only lower budgets
    ");
    let line = stage.spinney(&["config", "--json"]).result();
    assert_eq!(line["type"], json!("config"));
    assert_eq!(line["file"], json!(path(&stage).display().to_string()));
    assert!(line["project"].as_str().unwrap().ends_with("/spinney.yaml"), "{line}");
    let settings = line["settings"].as_array().unwrap();
    assert_eq!(settings[0], json!({ "setting": "budget.cost_usd", "value": "2", "from": "spinney.yaml" }));
    assert_eq!(settings[1], json!({ "setting": "budget.tokens", "value": null, "from": "default" }));
    assert!(
        settings.contains(&json!({ "setting": "prices.gpt-4.1", "value": "2,8", "from": "config.toml" }))
    );
}

#[test]
fn one_setting_is_printed_as_it_can_be_set() {
    let stage = TestFolder::stranger();
    configure(&stage, WHOLE);
    for (key, text, json) in [
        // The user's own, whatever a project says.
        ("budget.cost_usd", "5\n", json!("5")),
        ("budget", "budget.cost_usd 5\nbudget.timeout 30m\n", json!({ "cost_usd": "5", "timeout": "30m" })),
        ("on_low", "halt\n", json!("halt")),
        ("allow_hosts", "openrouter.ai\n", json!(["openrouter.ai"])),
        (
            "allow_field",
            "claude tool:web_search\n",
            json!([{ "program": "claude", "name": "tool:web_search" }]),
        ),
        ("prices", "prices.gpt-4.1 2,8\n", json!({ "gpt-4.1": "2,8" })),
        ("prices.gpt-4.1", "2,8\n", json!("2,8")),
        ("notify", "notify-send Spinney it ended\n", json!(["notify-send", "Spinney", "it ended"])),
        ("env_files", "~/keys.env\n", json!(["~/keys.env"])),
    ] {
        assert_eq!(told(&stage, &["config", "get", key]), text);
        assert_eq!(stage.spinney(&["config", "get", key, "--json"]).result(), json, "{key}");
    }
    let ended = stage.spinney(&["config", "get", "budget.tokens"]);
    assert_eq!(
        (ended.code, ended.out.as_str(), ended.err.as_str()),
        (Some(0), "", "`budget.tokens` is not set\n")
    );
    assert_eq!(stage.spinney(&["config", "get", "budget.tokens", "--json"]).out, "null\n");
}

#[test]
fn a_new_file_is_private_and_has_what_was_set() {
    let stage = TestFolder::stranger();
    for line in [
        "set budget.cost_usd 5",
        "set budget.tokens 200000",
        "set budget.steps 60",
        "set budget.timeout 1800",
        "set on_low shrink",
        "add allow_hosts OpenRouter.ai 127.0.0.1:8080 [::1]:80",
        "add allow_field claude tool:web_search beta:x-2026-01-01",
        "set prices.gpt-4.1 2,8,0.5,2.5",
        "set notify -- notify-send -u low",
        "add env_files ~/keys.env",
    ] {
        let args: Vec<&str> = ["config"].into_iter().chain(line.split(' ')).collect();
        told(&stage, &args);
    }
    insta::assert_snapshot!(fs::read_to_string(path(&stage)).unwrap(), @r#"
    on_low = "shrink"
    allow_hosts = ["openrouter.ai", "127.0.0.1:8080", "[::1]:80"]
    notify = ["notify-send", "-u", "low"]
    env_files = ["~/keys.env"]

    [budget]
    cost_usd = 5
    tokens = 200000
    steps = 60
    timeout = "30m"

    [[allow_field]]
    program = "claude"
    name = "tool:web_search"

    [[allow_field]]
    program = "claude"
    name = "beta:x-2026-01-01"

    [prices."gpt-4.1"]
    input_per_mtok_usd = 2
    output_per_mtok_usd = 8
    cached_input_per_mtok_usd = 0.5
    cache_write_per_mtok_usd = 2.5
    "#);
    let mode = |path: &PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&path(&stage)), mode(&path(&stage).parent().unwrap().to_owned())), (0o600, 0o700));
    let files: Vec<_> =
        fs::read_dir(path(&stage).parent().unwrap()).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["config.toml"], "nothing is left beside it");
}

#[test]
fn comments_and_order_stay_as_they_are() {
    let stage = TestFolder::stranger();
    configure(&stage, WHOLE);
    for line in [
        "set budget.cost_usd 7.50",
        "set budget.steps 60",
        "set on_low shrink",
        "add allow_hosts localhost",
        "set prices.gpt-4.1 3,9,1",
        "set prices.small 0,0",
        "add allow_field codex tool:x",
        "remove allow_field claude tool:web_search",
        "unset notify",
        "remove env_files ~/keys.env",
    ] {
        told(&stage, &["config"].into_iter().chain(line.split(' ')).collect::<Vec<_>>());
    }
    insta::assert_snapshot!(fs::read_to_string(path(&stage)).unwrap(), @r#"
    # What I use at home.
    on_low = "shrink" # ask me
    allow_hosts = [
      'OpenRouter.ai', # mine, too
      "localhost",
    ]
    env_files = []

    [budget] # a day
    cost_usd = 7.5
    timeout = '30m'
    steps = 60

    [prices.'gpt-4.1']
    input_per_mtok_usd = 3
    output_per_mtok_usd = 9
    cached_input_per_mtok_usd = 1

    [prices.small]
    input_per_mtok_usd = 0
    output_per_mtok_usd = 0

    [[allow_field]]
    program = "codex"
    name = "tool:x"
    "#);
    assert_eq!(
        told(&stage, &["config", "add", "allow_hosts", "localhost"]),
        "allow_hosts openrouter.ai\nallow_hosts localhost\nnothing changed in [folder]/user/config/spinney/config.toml\n"
    );
    for key in ["budget", "prices", "allow_field", "allow_hosts", "env_files", "on_low"] {
        assert!(told(&stage, &["config", "unset", key]).starts_with(&format!("{key} is not set\n")), "{key}");
    }
    assert_eq!(fs::read_to_string(path(&stage)).unwrap().trim(), "# What I use at home.");
}

#[test]
fn what_cannot_be_set_is_an_error_and_changes_nothing() {
    let stage = TestFolder::stranger();
    configure(&stage, WHOLE);
    let lines: [&[&str]; 17] = [
        &["set", "buget.cost_usd", "5"],
        &["set", "budget", "5"],
        &["set", "budget.cost_usd", "five"],
        &["set", "budget.cost_usd", "5", "6"],
        &["set", "budget.tokens", "-5"],
        &["set", "budget.tokens", "--", "-5"],
        &["set", "budget.timeout", "0"],
        &["set", "on_low", "downgrade"],
        &["set", "allow_hosts", "a.b"],
        &["set", "prices", "1,2"],
        &["set", "prices.m", "1"],
        &["set", "notify", ""],
        &["add", "on_low", "halt"],
        &["add", "allow_hosts", "https://a.b/"],
        &["add", "allow_field", "claude"],
        &["remove", "allow_hosts", "a.b"],
        &["unset", "hosts"],
    ];
    let told: Vec<String> = lines
        .iter()
        .map(|line| {
            let args: Vec<&str> = ["config"].iter().chain(*line).copied().collect();
            format!("$ {}\n{}", args.join(" "), refused(&stage, &args))
        })
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    $ config set buget.cost_usd 5
    spinney: unknown setting `buget.cost_usd`: did you mean `budget.cost_usd`?
    $ config set budget 5
    spinney: cannot set `budget`: name one of its settings, such as budget.cost_usd
    $ config set budget.cost_usd five
    spinney: cannot set `budget.cost_usd`: `five` is not an amount in USD: write a plain positive number such as 0.25, at most nine decimals
    $ config set budget.cost_usd 5 6
    spinney: cannot set `budget.cost_usd`: it takes one value
    $ config set budget.tokens -5
    error: unexpected argument '-5' found

      tip: to pass '-5' as a value, use '-- -5'

    Usage: spinney config set [OPTIONS] <KEY> <VALUE>...

    For more information, try '--help'.
    $ config set budget.tokens -- -5
    spinney: cannot set `budget.tokens`: `-5` is not a count: write a whole number from 0 to 1000000000000000, without quotes
    $ config set budget.timeout 0
    spinney: cannot set `budget.timeout`: a time of `0` is out of bounds: write at least 1ms and at most 365d
    $ config set on_low downgrade
    spinney: cannot set `on_low`: unknown value `downgrade`: known values: halt, shrink
    $ config set allow_hosts a.b
    spinney: cannot set `allow_hosts`: it is a list: use `config add` and `config remove`
    $ config set prices 1,2
    spinney: cannot set `prices`: name the model, such as prices.gpt-5
    $ config set prices.m 1
    spinney: cannot set `prices.m`: `1` is not INPUT,OUTPUT in dollars per million tokens, such as 1.25,10
    $ config set notify 
    spinney: cannot set `notify`: the program is missing: write one, such as notify-send
    $ config add on_low halt
    spinney: cannot add to `on_low`: it is not a list: use `config set`
    $ config add allow_hosts https://a.b/
    spinney: cannot add to `allow_hosts`: `https://a.b/` is not a host: leave out the scheme and the path; write a name or an address with an optional port, such as openrouter.ai or 127.0.0.1:8080
    $ config add allow_field claude
    spinney: cannot add to `allow_field`: write a program and what it may send, such as claude tool:web_search_20250305
    $ config remove allow_hosts a.b
    spinney: cannot remove from `allow_hosts`: `a.b` is not in it
    $ config unset hosts
    spinney: unknown setting `hosts`: known settings: budget.cost_usd, budget.tokens, budget.steps, budget.timeout, on_low, allow_hosts, allow_field, allow_box, prices.MODEL, notify, env_files, redact_env
    ");
    assert_eq!(fs::read_to_string(path(&stage)).unwrap(), WHOLE);
    let many: Vec<String> = (0..17).map(|file| format!("/{file}.env")).collect();
    let args: Vec<&str> =
        ["config", "add", "env_files"].into_iter().chain(many.iter().map(String::as_str)).collect();
    assert!(refused(&stage, &args).ends_with("18 files are more than the limit of 16"));
    assert_eq!(fs::read_to_string(path(&stage)).unwrap(), WHOLE);
}

/// Commands that need the configuration do not start without it, and the message says what to do.
#[test]
fn a_file_that_cannot_be_trusted_or_read_stops_every_command_that_needs_it() {
    let stage = TestFolder::stranger();
    let tree = stage.tree("", SAYS);
    let commands: [&[&str]; 6] = [
        &["run", &tree],
        &["check", &tree],
        &["exec", "--", "true"],
        &["doctor"],
        &["config"],
        &["config", "set", "on_low", "halt"],
    ];
    let broken = |what: &str| {
        let told: Vec<String> = commands.iter().map(|args| refused(&stage, args)).collect();
        assert!(told.iter().all(|line| line.ends_with(told[0].trim_start_matches("spinney: "))), "{told:#?}");
        format!("{what}: {}\n", told[0])
    };
    let mut told = String::new();
    configure(&stage, "on_lo = 'halt'\n");
    told += &broken("a key that is unknown");
    configure(&stage, "on_low = [\n");
    told += &broken("no TOML");
    configure(&stage, &format!("# {}\n", "x".repeat(1024 * 1024)));
    told += &broken("too large");
    fs::write(path(&stage), b"on_low = '\xff'").unwrap();
    told += &broken("no text");
    configure(&stage, "");
    for mode in [0o620, 0o606, 0o666] {
        fs::set_permissions(path(&stage), fs::Permissions::from_mode(mode)).unwrap();
        told += &broken("others may write it");
    }
    fs::remove_file(path(&stage)).unwrap();
    fs::create_dir(path(&stage)).unwrap();
    told += &broken("a folder");
    fs::remove_dir(path(&stage)).unwrap();
    assert!(Command::new("mkfifo").arg(path(&stage)).status().unwrap().success());
    told += &broken("a pipe");
    fs::remove_file(path(&stage)).unwrap();
    symlink("config.toml", path(&stage)).unwrap();
    told +=
        &broken("a link to itself").replace("Too many levels of symbolic links", "Too many symbolic links");
    fs::remove_file(path(&stage)).unwrap();
    insta::assert_snapshot!(told, @r"
    a key that is unknown: spinney: [folder]/user/config/spinney/config.toml:1:1: unknown key `on_lo`: did you mean `on_low`?
    no TOML: spinney: [folder]/user/config/spinney/config.toml:1:11: unclosed array, expected `]`
    too large: spinney: cannot read [folder]/user/config/spinney/config.toml: it has more than 1048576 bytes
    no text: spinney: cannot read [folder]/user/config/spinney/config.toml: it is not UTF-8 at byte 10
    others may write it: spinney: cannot read [folder]/user/config/spinney/config.toml: other users can write to it (mode 620): check its content, then run `chmod 600 '[folder]/user/config/spinney/config.toml'`
    others may write it: spinney: cannot read [folder]/user/config/spinney/config.toml: other users can write to it (mode 606): check its content, then run `chmod 600 '[folder]/user/config/spinney/config.toml'`
    others may write it: spinney: cannot read [folder]/user/config/spinney/config.toml: other users can write to it (mode 666): check its content, then run `chmod 600 '[folder]/user/config/spinney/config.toml'`
    a folder: spinney: cannot read [folder]/user/config/spinney/config.toml: it is a folder: name a file in it
    a pipe: spinney: cannot read [folder]/user/config/spinney/config.toml: it is not a regular file
    a link to itself: spinney: cannot read [folder]/user/config/spinney/config.toml: Too many symbolic links (os error 40)
    ");
    if is_root(&stage) {
        configure(&stage, "");
        chown(path(&stage), Some(12_345), None).unwrap();
        insta::assert_snapshot!(broken("of another user"), @"of another user: spinney: cannot read [folder]/user/config/spinney/config.toml: it belongs to another user (uid 12345): remove it, or change its owner with `chown`");
    } else {
        configure(&stage, "");
        fs::set_permissions(path(&stage), fs::Permissions::from_mode(0o000)).unwrap();
        assert!(broken("not readable").contains("Permission denied"));
    }
}

#[test]
fn a_link_to_a_file_of_the_user_stays_a_link() {
    let stage = TestFolder::stranger();
    configure(&stage, "");
    fs::remove_file(path(&stage)).unwrap();
    let real = stage.folder().join("dotfiles.toml");
    fs::write(&real, "on_low = 'halt'\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&real, path(&stage)).unwrap();
    assert_eq!(told(&stage, &["config", "get", "on_low"]), "halt\n");
    told(&stage, &["config", "set", "on_low", "shrink"]);
    assert_eq!(fs::read_to_string(&real).unwrap(), "on_low = \"shrink\"\n");
    assert!(fs::symlink_metadata(path(&stage)).unwrap().is_symlink());
}

#[test]
fn files_of_other_editors_are_read_and_stay_as_they_are() {
    let stage = TestFolder::stranger();
    configure(&stage, &format!("\u{feff}{}", WHOLE.replace('\n', "\r\n")));
    assert_eq!(told(&stage, &["config", "get", "budget.cost_usd"]), "5\n");
    told(&stage, &["config", "set", "budget.steps", "9"]);
    let expected =
        format!("\u{feff}{}", WHOLE.replace("'30m'\n", "'30m'\nsteps = 9\n").replace('\n', "\r\n"));
    assert_eq!(fs::read_to_string(path(&stage)).unwrap(), expected);
}

/// Several at once: each change finds the others' in the file.
#[test]
fn changes_at_the_same_time_do_not_undo_each_other() {
    let stage = TestFolder::stranger();
    let hosts: Vec<String> = (0..8).map(|host| format!("h{host}.example")).collect();
    let running: Vec<_> =
        hosts.iter().map(|host| stage.play(&["config", "add", "allow_hosts", host])).collect();
    assert!(running.into_iter().all(|running| running.end().code == Some(0)));
    let mut found: Vec<String> =
        told(&stage, &["config", "get", "allow_hosts"]).lines().map(str::to_owned).collect();
    found.sort();
    assert_eq!(found, hosts);
}

/// Without a home folder there is no configuration, which is not an error; only changing it is.
#[test]
fn without_a_home_folder_nothing_is_configured() {
    let stage = TestFolder::stranger();
    let tree = stage.tree("", SAYS);
    let nowhere = [("XDG_CONFIG_HOME", "relative"), ("HOME", "")];
    assert_eq!(stage.play_in(&["run", &tree], &nowhere).end().code, Some(0));
    let ended = stage.play_in(&["config", "set", "on_low", "halt"], &nowhere).end();
    assert_eq!(ended.code, Some(2));
    assert!(ended.err.contains("set HOME or XDG_CONFIG_HOME"), "{}", ended.err);
}
