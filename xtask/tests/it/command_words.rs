//! Rule `command-words`: no text of a library names a flag or a command of ours.

use super::{NOTHING, found};

const ARGUMENTS: (&str, &str) = (
    "crates/cli/src/args/mod.rs",
    "#[derive(Debug, Subcommand)]\nenum Command { Run(Run), Budget { #[arg(long)] add_usd: u64 } }\n\
     struct Run {\n    #[arg(long, value_name = \"X\")]\n    allow_host: String,\n    #[arg(long = \"file\")]\n    path: String,\n    goal: String,\n    #[arg(long)]\n    model: String,\n}\n",
);

#[test]
fn a_flag_or_a_command_in_a_library_is_found() {
    let text = "fn f() {\n    say(\"add --allow-host {host}\");\n    say(\"raise it with `spinney budget`\");\n    say(\"--file=x, --add-usd 1\");\n}\n";
    let remedy =
        "say what is needed, and add the option or command in crates/cli/src/error_text.rs or hint.rs";
    let line = |line: usize, word: &str| {
        format!("crates/host/src/x.rs:{line}: command-words: a string of a library names `{word}`; {remedy}")
    };
    assert_eq!(
        found("command-words", &[ARGUMENTS, ("crates/host/src/x.rs", text)]),
        [line(2, "--allow-host"), line(3, "spinney budget"), line(4, "--file")]
    );
    assert_eq!(found("command-words", &[ARGUMENTS, ("crates/cli/src/hint.rs", text)]), NOTHING);
}

/// What is not our option, what other programs have, comments, tests and the words of a protocol.
#[test]
fn other_words_are_fine() {
    let text = "//! What `spinney run` does.\nfn f() {\n    say(\"spinney: --goal, --model x, --allow-hosts, a budget, spinney-run\");\n}\n#[cfg(test)]\nmod tests {\n    const ASKED: &str = \"--allow-host\";\n}\n";
    let protocol = ("crates/host/src/inside.rs", "const OPTION: &str = \"--file\";");
    assert_eq!(found("command-words", &[ARGUMENTS, ("crates/host/src/x.rs", text), protocol]), NOTHING);
}
