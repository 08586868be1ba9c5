//! What a shell completes: commands and options, and the trees, agents, files and values of the home that a line means.
//! Only reads, and what cannot be read completes nothing: a shell has no place for an error. The journal of an older
//! release is not brought up to date: a key that is pressed in passing changes no home.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::{Arg, Command, CommandFactory as _, ValueHint};
use clap_complete::engine::{
    ArgValueCandidates, ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter,
};
use clap_complete::env::{CompleteEnv, Shells};
use spinney::tree::{OpenQuestion, shared_values};
use spinney_host::home::ids::LAST;
use spinney_host::home::{self, ids, output_files, side_journals};
use spinney_host::project::{ProjectFile, template};
use spinney_host::tree_list::newest_unchanged;
use spinney_host::user::settings;
use spinney_journal::{CatalogKind, Journal};
use spinney_kernel::primitives::{OWN_TOPICS, TreeId};
use spinney_terminal::out::inert;
use spinney_view::agents;
use spinney_view::questions::open as open_questions;
use spinney_view::wording::short_id;
use tokio::runtime::Builder;

use crate::args::Args;
use crate::hint;

/// Set by the script of a shell: which shell asks.
const VARIABLE: &str = "SPINNEY_COMPLETE";
/// Trees that are offered, newest first.
const TREES_MAX: usize = 50;
const TREE_FILES: [&str; 4] = ["yaml", "yml", "json", "toml"];

/// Answers a shell that asks for completions. Returns whether one did.
pub(crate) fn answer() -> clap::error::Result<bool> {
    let here = std::env::current_dir().ok();
    CompleteEnv::with_factory(command).var(VARIABLE).try_complete(std::env::args_os(), here.as_deref())
}

/// The script that makes a shell ask us.
pub(crate) fn script(shell: &str) -> Result<Vec<u8>> {
    let shells = Shells::builtins();
    let mut script = Vec::new();
    if let Some(shell) = shells.completer(shell) {
        shell.write_registration(VARIABLE, "spinney", "spinney", "spinney", &mut script)?;
    }
    Ok(script)
}

/// The command line, with what is known about values.
fn command() -> Command {
    with_values(Args::command())
}

fn with_values(mut command: Command) -> Command {
    let name = command.get_name().to_owned();
    let has_agent = command.get_positionals().any(|argument| argument.get_id() == "agent");
    command = command.mut_args(|argument| {
        let values = Values::complete(&name, argument.get_id().as_str(), has_agent);
        match (values, argument.get_value_hint()) {
            ([], ValueHint::AnyPath) => argument.add(safe(PathCompleter::any())),
            ([], ValueHint::FilePath) => argument.add(safe(PathCompleter::file())),
            ([], ValueHint::DirPath) => argument.add(safe(PathCompleter::dir())),
            ([], _) => argument,
            (values, _) => Values::offered_for(values, argument),
        }
    });
    command.mut_subcommands(with_values)
}

/// What an argument names.
#[derive(Clone, Copy)]
enum Values {
    Trees,
    Agents,
    Questions,
    Shared,
    Checkpoints,
    OutputFiles,
    TreeFiles,
    Templates,
    Commands,
    Settings,
    Topics,
}

impl Values {
    /// Where a tree may be left out, what follows it may be meant.
    fn complete(command: &str, argument: &str, has_agent: bool) -> &'static [Self] {
        match (command, argument) {
            ("send", "first" | "second") => &[Self::Agents, Self::Trees],
            ("answer", "first") => &[Self::Questions, Self::Trees],
            ("answer", "second") => &[Self::Questions],
            ("shared", "id") => &[Self::Shared, Self::Trees],
            ("cat", "id") => &[Self::OutputFiles, Self::Trees],
            ("man", "command") => &[Self::Commands],
            ("get" | "set" | "add" | "remove" | "unset", "key") => &[Self::Settings],
            ("events", "topic") => &[Self::Topics],
            (_, "id") if has_agent => &[Self::Agents, Self::Trees],
            (_, "id") | ("exec", "resume") => &[Self::Trees],
            ("events", "from") => &[],
            (_, "agent" | "from" | "to" | "into") => &[Self::Agents],
            ("shared", "key") => &[Self::Shared],
            ("branch" | "rollback", "name") => &[Self::Checkpoints],
            ("cat", "file") => &[Self::OutputFiles],
            ("run" | "check" | "doctor", "file") => &[Self::TreeFiles],
            ("init", "template") => &[Self::Templates],
            _ => &[],
        }
    }

    fn offered_for(values: &'static [Self], argument: Arg) -> Arg {
        if let [Self::TreeFiles] = values {
            let is_tree_file = |path: &Path| {
                path.extension().is_some_and(|ending| TREE_FILES.iter().any(|known| ending == *known))
            };
            return argument.add(safe(PathCompleter::file().filter(is_tree_file)));
        }
        let candidates = |value: &Self| read(value.candidates()).unwrap_or_default();
        argument.add(ArgValueCandidates::new(move || values.iter().flat_map(candidates).collect()))
    }

    async fn candidates(self) -> Result<Vec<CompletionCandidate>> {
        let line = Line::read();
        match self {
            Self::Trees => line.trees().await,
            Self::Agents => {
                let (journal, tree, _) = line.tree().await?;
                let known = agents::known(&journal, tree).await?;
                Ok(known.iter().filter_map(|agent| candidate(agent.as_str(), "")).collect())
            }
            Self::Commands => {
                let command = Args::command();
                let shown = command.get_subcommands().filter(|command| !command.is_hide_set());
                Ok(shown.filter_map(|command| candidate(command.get_name(), "")).collect())
            }
            Self::Settings => Ok(settings::NAMES.iter().filter_map(|name| candidate(name, "")).collect()),
            Self::Topics => Ok(OWN_TOPICS.into_iter().filter_map(|topic| candidate(topic, "")).collect()),
            Self::Questions => {
                let (journal, tree, _) = line.tree().await?;
                let open = open_questions(&journal, tree).await?;
                let question = |asked: &OpenQuestion| candidate(&asked.question.0.to_string(), &asked.text);
                Ok(open.values().filter_map(question).collect())
            }
            Self::Shared => {
                let (journal, tree, _) = line.tree().await?;
                let values = shared_values(&journal, tree).await?;
                Ok(values.all().filter_map(|(name, _)| candidate(name.as_str(), "")).collect())
            }
            Self::Checkpoints => {
                let journal = home::open_unchanged(&line.home)?;
                let facts = journal.catalog(CatalogKind::Checkpoint, "").await?;
                Ok(facts.iter().filter_map(|fact| candidate(&fact.key, "")).collect())
            }
            Self::OutputFiles => {
                let (_, tree, home) = line.tree().await?;
                let files = output_files::list(&home, tree);
                Ok(files.iter().filter_map(|file| candidate(&file.name.to_string_lossy(), "")).collect())
            }
            Self::Templates => {
                let project = ProjectFile::find(Path::new("."))?;
                let templates = project.map(|project| project.templates).unwrap_or_default();
                let listed = template::listed(&templates);
                Ok(listed.iter().filter_map(|(name, about)| candidate(name, about)).collect())
            }
            Self::TreeFiles => Ok(Vec::new()),
        }
    }
}

/// A value to offer; `None` for one that a shell could take for more than a word.
fn candidate(value: &str, about: &str) -> Option<CompletionCandidate> {
    let about = inert(about.lines().next().unwrap_or_default()).into_owned();
    let candidate = CompletionCandidate::new(value).help((!about.is_empty()).then(|| about.into()));
    is_safe(value.as_ref()).then_some(candidate)
}

/// What it completes, without what a shell could take for more than a word.
fn safe(completer: impl ValueCompleter + 'static) -> ArgValueCompleter {
    ArgValueCompleter::new(move |typed: &OsStr| {
        let mut candidates = completer.complete(typed);
        candidates.retain(|candidate| is_safe(candidate.get_value()));
        candidates
    })
}

/// Whether every shell takes it for one plain word. What a shell inserts it does not quote, and names in a home or a folder
/// may be a stranger's.
fn is_safe(value: &OsStr) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "._-/:@+,".contains(c);
    value
        .to_str()
        .is_some_and(|text| !text.is_empty() && !text.starts_with('-') && text.chars().all(is_plain))
}

/// The command line that a shell asks about.
struct Line {
    words: Vec<String>,
    home: PathBuf,
}

impl Line {
    #[expect(clippy::disallowed_methods, reason = "the command will read it in this environment")]
    fn read() -> Self {
        let given: Vec<OsString> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
        let words: Vec<String> = given.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        let named = words.iter().enumerate().find_map(|(at, word)| match word.strip_prefix("--home") {
            Some("") => given.get(at + 1).cloned(),
            Some(rest) => rest.strip_prefix('=').map(OsString::from),
            None => None,
        });
        let home = named.or_else(|| std::env::var_os(hint::HOME_VARIABLE)).map(PathBuf::from);
        Self { words, home: home.unwrap_or_else(home::nearest) }
    }

    /// The tree that it names, or the newest one.
    async fn tree(&self) -> Result<(impl Journal, TreeId, PathBuf)> {
        let is_id = |word: &str| word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
        let named = self.words.iter().skip(1).map(String::as_str).find(|word| is_id(word));
        let named = named.unwrap_or(LAST);
        let home = side_journals::find_with(&self.home, named, home::open_unchanged).await?;
        let journal = home::open_unchanged(&home)?;
        let tree = ids::find(&home, &journal, named).await?.tree;
        Ok((journal, tree, home))
    }

    /// The newest trees of the home, in all its journals.
    async fn trees(&self) -> Result<Vec<CompletionCandidate>> {
        let found = newest_unchanged(&self.home, TREES_MAX).await?;
        if found.is_empty() {
            return Ok(Vec::new());
        }
        let trees = found.iter().enumerate().filter_map(|(order, (head, name))| {
            let about = format!("{name} {}", head.state);
            Some(candidate(&short_id(head.tree), &about)?.display_order(Some(order)))
        });
        let last = candidate(LAST, "the tree that started last");
        Ok(trees.chain(last.map(|last| last.display_order(Some(TREES_MAX)))).collect())
    }
}

/// Reads a home. A shell asks before any command has a runtime.
fn read<T>(reading: impl Future<Output = Result<T>>) -> Result<T> {
    Builder::new_current_thread().build()?.block_on(reading)
}
