//! Commands that we suggest. This is the only place that writes them: they work when pasted, in any home and any
//! shell.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use spinney_kernel::budget::{Resource, Shortfall};
use spinney_kernel::words::{AgentId, TreeId};
use spinney_kernel::world::TreeState;

use crate::exec::homes;
use crate::home;
use crate::home::ids::short;
use crate::terminal::out::is_hostile;

/// The name of a home that no command line names.
pub(crate) const HOME: &str = ".spinney";
/// The environment variable that sets another one.
pub(crate) const HOME_VARIABLE: &str = "SPINNEY_HOME";
/// The tree that started last, and the tree of a command that names none.
pub(crate) const LAST: &str = "last";

/// Placeholder for an answer. Pasted as it is, it approves nothing: only `yes` does.
pub(crate) const YOUR_ANSWER: &str = "your answer";
/// Placeholder for a tree file.
pub(crate) const YOUR_FILE: &str = "your tree.yaml";

/// A command of ours, with `--home` unless it finds this home without. Commands find the runs of `exec` from the home above
/// theirs.
pub(crate) fn command(home: &Path, words: &[&str]) -> String {
    command_in(homes::above(home), words)
}

/// A command about a home itself, which may be that of a run of `exec`.
#[expect(clippy::disallowed_methods, reason = "whoever pastes the command does so in this environment")]
pub(crate) fn command_in(home: &Path, words: &[&str]) -> String {
    let is_meant = std::env::var_os(HOME_VARIABLE).is_none() && home == home::nearest();
    written(Some(home).filter(|_| !is_meant), words)
}

/// A command about a tree: a verb, the tree's id, and further words.
pub(crate) fn about(home: &Path, verb: &str, tree: TreeId, more: &[&str]) -> String {
    command(home, &[&[verb, short(tree).as_str()], more].concat())
}

/// The command that raises a ceiling: by as much as the call lacks, rounded up to what a person would type. `None` is the
/// account of the root.
pub(crate) fn raise(home: &Path, tree: TreeId, account: Option<&AgentId>, short: &Shortfall) -> String {
    const DOLLAR: u64 = 1_000_000_000;
    let lacks = short.asked.saturating_sub(short.left()).max(1);
    let (option, amount) = match short.resource {
        Resource::Cost => ("--add-usd", lacks.div_ceil(DOLLAR)),
        Resource::Tokens => ("--add-tokens", lacks.next_multiple_of(1_000)),
        Resource::Steps => ("--add-steps", lacks),
        Resource::ToolCalls => ("--add-tool-calls", lacks),
        Resource::Retries => ("--add-retries", lacks),
    };
    let amount = amount.to_string();
    let more: &[&str] = match account {
        None => &[option, &amount],
        Some(agent) => &[agent.as_str(), option, &amount],
    };
    about(home, "budget", tree, more)
}

/// The command that continues a tree that is not running, by the state in its journal.
pub(crate) fn go_on(home: &Path, tree: TreeId, state: TreeState) -> String {
    if homes::is_of_exec(home) {
        return command(home, &["exec", "--resume", &short(tree)]);
    }
    if state == TreeState::Paused {
        return about(home, "resume", tree, &["--unpause"]);
    }
    about(home, "resume", tree, &[])
}

fn written(home: Option<&Path>, words: &[&str]) -> String {
    let mut written = "spinney".to_owned();
    if let Some(home) = home {
        written += &format!(" --home {}", quoted(home));
    }
    for word in words {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-=".contains(&byte);
        let is_plain = !word.is_empty() && word.bytes().all(is_plain);
        written.push(' ');
        written += &if is_plain { (*word).to_owned() } else { quoted(Path::new(word)) };
    }
    written
}

/// A path as one shell word. A path that cannot be shown safely is written in octal: it passes a terminal unchanged,
/// and any shell reads it back.
fn quoted(path: &Path) -> String {
    let bytes = path.as_os_str().as_bytes();
    // A leading dash would be taken for an option.
    let here = if bytes.starts_with(b"-") { "./" } else { "" };
    match path.to_str().filter(|text| !text.contains(is_hostile) && !text.contains('\n')) {
        Some(text) => format!("'{here}{}'", text.replace('\'', r"'\''")),
        None => {
            let spelled: String = bytes.iter().map(|byte| spelled(*byte)).collect();
            // A shell drops trailing line breaks of a command's output; a final character keeps them.
            if bytes.ends_with(b"\n") {
                return format!(r#""$(printf '{here}{spelled}/.')""#);
            }
            format!(r#""$(printf '{here}{spelled}')""#)
        }
    }
}

fn spelled(byte: u8) -> String {
    let is_plain = byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    if is_plain { char::from(byte).to_string() } else { format!(r"\{byte:03o}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_one_word_of_a_shell_whatever_is_in_it() {
        let resume = |home: &str| written(Some(Path::new(home)), &["resume", "1"]);
        assert_eq!(written(None, &["resume", "1"]), "spinney resume 1");
        assert_eq!(resume("./.spinney"), "spinney --home './.spinney' resume 1");
        assert_eq!(resume("it's $HOME"), r"spinney --home 'it'\''s $HOME' resume 1");
        assert_eq!(resume("-x"), "spinney --home './-x' resume 1");
        assert_eq!(resume("a \u{1b}b"), r#"spinney --home "$(printf 'a\040\033b')" resume 1"#);
        assert_eq!(resume("a\nb"), r#"spinney --home "$(printf 'a\012b')" resume 1"#);
        assert_eq!(resume("a\n"), r#"spinney --home "$(printf 'a\012/.')" resume 1"#);
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(written(None, &["answer", "1", "2", YOUR_ANSWER]), "spinney answer 1 2 'your answer'");
        assert_eq!(written(None, &["run", YOUR_FILE]), "spinney run 'your tree.yaml'");
        assert_eq!(written(None, &["rm", "1", "--force"]), "spinney rm 1 --force");
    }
}
