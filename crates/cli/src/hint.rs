//! Commands that we suggest. This is the only place that writes them: they work when pasted, in any home and any
//! shell.

use std::path::Path;

use spinney_host::home::ids::TreeInHome;
use spinney_host::home::{self, side_journals};
use spinney_host::shell_word;
use spinney_kernel::budget::{Resource, usd};
use spinney_kernel::primitives::{AgentId, TreeId};
use spinney_kernel::world::TreeState;
use spinney_store::OpenHomeError;
use spinney_view::branches::AgentBranch;
use spinney_view::remedy::SuggestedRaise;
use spinney_view::wording::short_id;

/// The environment variable that sets another one.
pub(crate) const HOME_VARIABLE: &str = "SPINNEY_HOME";

/// Placeholder for an answer. Pasted as it is, it approves nothing: only `yes` does.
pub(crate) const YOUR_ANSWER: &str = "your answer";
/// Placeholder for a tree file.
pub(crate) const YOUR_FILE: &str = "your tree.yaml";

/// One of our commands, with `--home` unless it finds this home without. Commands find trees in side journals from the
/// home above them.
pub(crate) fn command(home: &Path, words: &[&str]) -> String {
    command_in(side_journals::above(home), words)
}

/// A command about a home itself, which may be a side journal.
#[expect(clippy::disallowed_methods, reason = "the command is pasted in this environment")]
pub(crate) fn command_in(home: &Path, words: &[&str]) -> String {
    let is_meant = std::env::var_os(HOME_VARIABLE).is_none() && home == home::nearest();
    written(Some(home).filter(|_| !is_meant), words)
}

/// A command about the user's configuration, which is the same in every home.
pub(crate) fn config(words: &[&str]) -> String {
    let is_option = |word: &&str| word.starts_with('-');
    // After a verb and a key come values, which are not options.
    let (before, values) = words.split_at(words.len().min(2));
    let dashes: &[&str] = if values.iter().any(is_option) { &["--"] } else { &[] };
    written(None, &[&["config"], before, dashes, values].concat())
}

/// The command that installs the servers of a file, which is the same in every home.
pub(crate) fn install(file: &Path) -> String {
    written(None, &["mcp", "install", &file.to_string_lossy()])
}

/// A command for another machine, whose home we do not know.
pub(crate) fn on_another_machine(words: &[&str]) -> String {
    written(None, words)
}

/// A command about a tree: a verb, the tree's id, and further words.
pub(crate) fn about(home: &Path, verb: &str, tree: TreeId, more: &[&str]) -> String {
    command(home, &[&[verb, short_id(tree).as_str()], more].concat())
}

/// The command that raises ceilings. A raise of the root names no agent.
pub(crate) fn raise(
    TreeInHome { home, tree }: TreeInHome<'_>,
    root: Option<&AgentId>,
    raises: &[SuggestedRaise],
) -> String {
    let mut accounts: Vec<(&AgentId, Vec<String>)> = Vec::new();
    for raise in raises {
        let words = raise_words(raise);
        match accounts.iter_mut().find(|(known, _)| *known == &raise.account) {
            Some((_, all)) => all.extend(words),
            None => accounts.push((&raise.account, words.to_vec())),
        }
    }
    let command = |(account, words): &(&AgentId, Vec<String>)| {
        let agent = Some(account.as_str()).filter(|_| Some(*account) != root);
        let words: Vec<&str> = agent.into_iter().chain(words.iter().map(String::as_str)).collect();
        about(home, "budget", tree, &words)
    };
    accounts.iter().map(command).collect::<Vec<String>>().join(" && ")
}

/// The option that raises a ceiling, and by how much.
fn raise_words(SuggestedRaise { resource, amount, .. }: &SuggestedRaise) -> [String; 2] {
    let (option, amount) = match resource {
        Resource::Cost => ("--add-usd", usd(*amount).trim_start_matches('$').to_owned()),
        Resource::Tokens => ("--add-tokens", amount.to_string()),
        Resource::Steps => ("--add-steps", amount.to_string()),
        Resource::ToolCalls => ("--add-tool-calls", amount.to_string()),
        Resource::Retries => ("--add-retries", amount.to_string()),
    };
    [option.to_owned(), amount]
}

/// The command of git that merges what an agent changed.
pub(crate) fn merging(AgentBranch { repository, branch, .. }: &AgentBranch) -> String {
    let repository = shell_word::of_word(repository);
    format!("git -C {repository} merge {branch}")
}

/// The command that accepts a loss, if the error is about one.
pub(crate) fn accept_loss(home: &Path, error: &OpenHomeError) -> Option<String> {
    error.is_loss().then(|| accepting_loss(home))
}

/// The command that accepts a loss.
pub(crate) fn accepting_loss(home: &Path) -> String {
    match side_journals::side_tree(home) {
        // Such a run is continued by its own command. The journal of another one, which would say so, cannot be read.
        Some(tree) if side_journals::is_in_exec(home) => {
            command(home, &["exec", "--resume", &short_id(tree), "--accept-loss"])
        }
        Some(tree) => about(home, "resume", tree, &["--accept-loss"]),
        None => command_in(home, &["ps", "--accept-loss"]),
    }
}

/// What continues a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ContinuedBy {
    Resume,
    /// The program that it was started for.
    Exec,
}

impl ContinuedBy {
    pub(crate) async fn find(home: &Path) -> Self {
        if side_journals::is_of_exec(home).await { Self::Exec } else { Self::Resume }
    }

    /// The command for a tree that is not running, by the state in its journal: it continues the tree, unless the tree
    /// is sealed.
    pub(crate) fn command(self, home: &Path, tree: TreeId, state: TreeState) -> String {
        match (state, self) {
            (TreeState::Moved, _) => about(home, "export", tree, &["--take-back"]),
            (TreeState::Copied, _) => command(home, &["checkpoint", "ls"]),
            (_, Self::Exec) => command(home, &["exec", "--resume", &short_id(tree)]),
            (TreeState::Paused, Self::Resume) => about(home, "resume", tree, &["--unpause"]),
            (_, Self::Resume) => about(home, "resume", tree, &[]),
        }
    }
}

/// The command for a tree that is not running, by the state in its journal.
pub(crate) async fn next_command(home: &Path, tree: TreeId, state: TreeState) -> String {
    ContinuedBy::find(home).await.command(home, tree, state)
}

/// The same, with what it is for.
pub(crate) async fn next_step(home: &Path, tree: TreeId, state: TreeState) -> String {
    format!("{}: {}", next_verb(state), next_command(home, tree, state).await)
}

/// What [`next_command`] is for.
pub(crate) const fn next_verb(state: TreeState) -> &'static str {
    match state {
        TreeState::Moved => "take it back with",
        TreeState::Copied => "see where it can be branched",
        _ => "continue with",
    }
}

fn written(home: Option<&Path>, words: &[&str]) -> String {
    let mut written = "spinney".to_owned();
    if let Some(home) = home {
        written += &format!(" --home {}", shell_word::of_path(home));
    }
    for word in words {
        written.push(' ');
        written += &shell_word::of_word(word);
    }
    written
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
        assert_eq!(config(&["add", "allow_hosts", "[::1]:80"]), "spinney config add allow_hosts '[::1]:80'");
        assert_eq!(config(&["set", "notify", "say", "-x y"]), "spinney config set notify -- say '-x y'");
    }
}
