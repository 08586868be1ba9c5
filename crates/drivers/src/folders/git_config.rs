//! A configuration of git as git reads it, as far as it matters what it names: includes, hooks, and programs. A text that git
//! would refuse is read as far as it makes sense: it protects too much rather than too little.

use std::iter::Peekable;
use std::str::Chars;

/// One variable of a configuration. Names are in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GitSetting {
    pub(super) section: String,
    pub(super) name: String,
    pub(super) value: String,
}

/// Sections in which every variable is a command.
const COMMAND_SECTIONS: [&str; 2] = ["alias", "pager"];
/// Variables of any section whose value git runs.
const COMMANDS: [&str; 25] = [
    "alternaterefscommand",
    "askpass",
    "clean",
    "cmd",
    "command",
    "difffilter",
    "driver",
    "editor",
    "external",
    "fsmonitor",
    "gitproxy",
    "helper",
    "packobjectshook",
    "pager",
    "path",
    "process",
    "program",
    "receivepack",
    "smudge",
    "sshcommand",
    "textconv",
    "tool",
    "update",
    "uploadarchive",
    "uploadpack",
];
/// Variables that name or run nothing: what `git init`, `git clone` and `git commit` write.
const HARMLESS: [(&str, &[&str]); 10] = [
    ("branch", &["merge", "pushremote", "rebase", "remote"]),
    (
        "core",
        &[
            "abbrev",
            "autocrlf",
            "bare",
            "compression",
            "eol",
            "filemode",
            "ignorecase",
            "logallrefupdates",
            "precomposeunicode",
            "quotepath",
            "repositoryformatversion",
            "safecrlf",
            "sharedrepository",
            "sparsecheckout",
            "sparsecheckoutcone",
            "symlinks",
        ],
    ),
    ("extensions", &["compatobjectformat", "objectformat", "partialclone", "refstorage"]),
    ("fetch", &["prune", "prunetags"]),
    ("gc", &["auto", "autodetach"]),
    ("init", &["defaultbranch"]),
    ("pull", &["ff", "rebase"]),
    ("remote", &["fetch", "mirror", "partialclonefilter", "promisor", "prune", "pushurl", "tagopt", "url"]),
    ("submodule", &["active", "url"]),
    ("user", &["email", "name"]),
];

impl GitSetting {
    /// Whether git runs what it says.
    pub(super) fn is_command(&self) -> bool {
        COMMAND_SECTIONS.contains(&self.section.as_str()) || COMMANDS.contains(&self.name.as_str())
    }

    /// Whether it can neither run a program nor lead to another configuration or folder.
    pub(super) fn is_harmless(&self) -> bool {
        let is_known = |(section, names): &(&str, &[&str])| {
            *section == self.section && names.contains(&self.name.as_str())
        };
        // `ext::` and its like are commands in the place of an address.
        HARMLESS.iter().any(is_known) && !self.value.contains("::")
    }

    /// The files of another configuration that is read here.
    pub(super) fn is_include(&self) -> bool {
        matches!(self.section.as_str(), "include" | "includeif") && self.name == "path"
    }

    /// The folder of hooks.
    pub(super) fn is_hooks_path(&self) -> bool {
        self.section == "core" && self.name == "hookspath"
    }
}

/// Every variable of a configuration, in its order.
pub(super) fn settings(text: &str) -> Vec<GitSetting> {
    let mut from = text.trim_start_matches('\u{feff}').chars().peekable();
    let (mut settings, mut section) = (Vec::new(), String::new());
    while let Some(next) = from.peek().copied() {
        match next {
            '#' | ';' => skip_line(&mut from),
            '[' => section = self::section(&mut from),
            letter if letter.is_ascii_alphanumeric() => {
                let (name, value) = variable(&mut from);
                settings.push(GitSetting { section: section.clone(), name, value });
            }
            _ => drop(from.next()),
        }
    }
    settings
}

fn skip_line(from: &mut Peekable<Chars<'_>>) {
    from.by_ref().take_while(|letter| *letter != '\n').for_each(drop);
}

/// The name of a section, without what is in quotes or after a dot. What follows on its line are variables of it.
fn section(from: &mut Peekable<Chars<'_>>) -> String {
    from.next();
    let (mut name, mut is_name, mut is_quoted) = (String::new(), true, false);
    while let Some(letter) = from.next() {
        match letter {
            '\n' => break,
            ']' if !is_quoted => break,
            '\\' if is_quoted => drop(from.next()),
            '"' => (is_name, is_quoted) = (false, !is_quoted),
            '.' => is_name = false,
            letter if is_name && !letter.is_whitespace() => name.push(letter.to_ascii_lowercase()),
            _ => {}
        }
    }
    name
}

fn variable(from: &mut Peekable<Chars<'_>>) -> (String, String) {
    let mut name = String::new();
    while let Some(letter) = from.next_if(|letter| letter.is_ascii_alphanumeric() || *letter == '-') {
        name.push(letter.to_ascii_lowercase());
    }
    while from.next_if(|letter| matches!(letter, ' ' | '\t' | '\r')).is_some() {}
    // Without a value it is true.
    let value = from.next_if_eq(&'=').map(|_| value(from)).unwrap_or_default();
    (name, value)
}

fn value(from: &mut Peekable<Chars<'_>>) -> String {
    let (mut value, mut is_quoted) = (String::new(), false);
    // Where white space begins that is not part of it if nothing follows.
    let mut end = 0;
    while let Some(letter) = from.next() {
        match letter {
            '\n' => break,
            '#' | ';' if !is_quoted => {
                skip_line(from);
                break;
            }
            '"' => {
                is_quoted = !is_quoted;
                end = value.len();
            }
            '\\' => {
                match from.next() {
                    // The value continues on the next line.
                    Some('\n') | None => continue,
                    Some('\r') => drop(from.next_if_eq(&'\n')),
                    Some('n') => value.push('\n'),
                    Some('t') => value.push('\t'),
                    Some(escaped) => value.push(escaped),
                }
                end = value.len();
            }
            letter if letter.is_whitespace() && !is_quoted => {
                if !value.is_empty() {
                    value.push(letter);
                }
            }
            letter => {
                value.push(letter);
                end = value.len();
            }
        }
    }
    value.truncate(end);
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Vec<String> {
        settings(text)
            .into_iter()
            .map(|found| format!("{} {}={}", found.section, found.name, found.value))
            .collect()
    }

    #[test]
    fn configurations_are_read_as_git_reads_them() {
        for (text, expected) in [
            ("[core] hooksPath=x", "core hookspath=x"),
            ("[core]hooksPath = x", "core hookspath=x"),
            ("\u{feff}[CORE]\r\n\tHooksPath = \"a b\" ; why\r\n", "core hookspath=a b"),
            ("[core \"of no use\"] hooksPath = x # y", "core hookspath=x"),
            ("[filter.lfs]\nclean = a\\\n b  c  \n", "filter clean=a b  c"),
            ("[filter \"a\\\"]b\"] clean = x\\ty", "filter clean=x\ty"),
            ("# [core]\n[alias]\n; x = y\nl = \"!f() { ./x; }; f\"", "alias l=!f() { ./x; }; f"),
            ("[core]\n\tbare\n", "core bare="),
            ("[core\nhooksPath = x", "core hookspath=x"),
            ("[include]path=x", "include path=x"),
            ("[includeIf \"gitdir:/x/\"] path = y", "includeif path=y"),
        ] {
            assert_eq!(read(text), [expected], "{text:?}");
        }
        assert_eq!(read("[a] b = 1\nc = 2 [d] e = 3"), ["a b=1", "a c=2 [d] e = 3"]);
        assert_eq!(read("[a] [b] c = 1"), ["b c=1"]);
    }

    #[test]
    fn only_known_variables_are_harmless() {
        let is_harmless = |text: &str| settings(text).iter().all(GitSetting::is_harmless);
        let clone = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = false\n\tlogallrefupdates = true\n[remote \"origin\"]\n\turl = https://example.org/x.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n[branch \"main\"]\n\tremote = origin\n\tmerge = refs/heads/main\n";
        assert!(is_harmless(clone));
        for text in [
            "[core] fsmonitor = ./x",
            "[core] worktree = /",
            "[core] hooksPath = x",
            "[include] path = x",
            "[remote \"a\"] url = ext::sh -c x",
            "[remote \"a\"] uploadpack = x",
            "[filter \"a\"] clean = x",
            "[extensions] worktreeConfig = true",
        ] {
            assert!(!is_harmless(text), "{text}");
        }
    }
}
