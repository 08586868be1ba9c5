//! No text of a library names one of our flags or commands: another face of the same library has neither. Remedies are
//! data, and the command line words them.
//!
//! What counts is read from the command line's own sources: the options of its arguments, and its commands after the name
//! of the program.

use std::collections::BTreeSet;

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Field, Item, ItemEnum};

use super::Finding;
use crate::workspace::{Source, Workspace};

const ARGUMENTS: &str = "crates/cli/src/args/";
const PROGRAM: &str = "spinney";

/// Libraries, which every face uses.
const LIBRARIES: [&str; 8] = [
    "crates/kernel/src/",
    "crates/journal/src/",
    "crates/runtime/src/",
    "crates/store/src/",
    "crates/drivers/src/",
    "crates/view/src/",
    "crates/host/src/",
    "crates/server/src/",
];

/// Flags that the programs which we start have as well.
const FLAGS_OF_OTHERS: [&str; 3] = ["--model", "--resume", "--search"];

/// Files whose words are for programs, and not a text for people: between our own processes, and options of `npx` and
/// `uvx`.
const PROTOCOLS: [&str; 2] = ["crates/host/src/inside.rs", "crates/drivers/src/packages/package.rs"];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let words = CommandWords::read(workspace);
    let is_library = |source: &&Source| {
        LIBRARIES.iter().any(|folder| source.path.starts_with(folder))
            && !PROTOCOLS.contains(&source.path.as_str())
    };
    let mut findings = Vec::new();
    for source in workspace.sources.iter().filter(is_library) {
        for string in source.scan.strings.iter().filter(|string| !source.is_test(string.line)) {
            findings.extend(words.find(&string.text).map(|word| Finding {
                path: source.path.clone(),
                line: string.line,
                rule: "command-words",
                item: word.clone(),
                what: format!("a string of a library names `{word}`"),
                remedy: "say what is needed, and add the option or command in crates/cli/src/error_text.rs or hint.rs",
            }));
        }
    }
    findings
}

/// What the command line has.
#[derive(Default)]
struct CommandWords {
    flags: BTreeSet<String>,
    commands: BTreeSet<String>,
}

impl CommandWords {
    fn read(workspace: &Workspace) -> Self {
        let mut words = Self::default();
        let arguments = workspace.sources.iter().filter(|source| source.path.starts_with(ARGUMENTS));
        for item in arguments.flat_map(|source| &source.syntax.items) {
            match item {
                Item::Struct(arguments) => words.flags.extend(arguments.fields.iter().filter_map(flag)),
                Item::Enum(commands) if is_subcommand(commands) => {
                    let names = commands.variants.iter().map(|variant| kebab(&variant.ident.to_string()));
                    words.commands.extend(names);
                    let fields = commands.variants.iter().flat_map(|variant| &variant.fields);
                    words.flags.extend(fields.filter_map(flag));
                }
                _ => {}
            }
        }
        words.flags.retain(|flag| !FLAGS_OF_OTHERS.contains(&flag.as_str()));
        words
    }

    /// The first flag in a text, or the first command after the name of the program.
    fn find(&self, text: &str) -> Option<String> {
        let is_between = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
        let words: Vec<&str> = text.split(is_between).filter(|word| !word.is_empty()).collect();
        let flag = words.iter().find(|word| self.flags.contains(**word));
        let is_command = |pair: &&[&str]| pair[0] == PROGRAM && self.commands.contains(pair[1]);
        let named = format!("{PROGRAM} ");
        let command = words.windows(2).find(is_command).map(|pair| format!("{named}{}", pair[1]));
        flag.map(ToString::to_string).or(command.filter(|command| text.contains(command.as_str())))
    }
}

fn is_subcommand(commands: &ItemEnum) -> bool {
    commands.attrs.iter().any(|attribute| {
        attribute.path().is_ident("derive")
            && attribute.meta.require_list().is_ok_and(|list| has_word(list.tokens.clone(), "Subcommand"))
    })
}

fn has_word(tokens: TokenStream, word: &str) -> bool {
    tokens.into_iter().any(|token| matches!(token, TokenTree::Ident(ident) if ident == word))
}

/// The long option that a field is: named in its attribute, or else after the field.
fn flag(field: &Field) -> Option<String> {
    let name = field.ident.as_ref()?.to_string();
    field.attrs.iter().find_map(long).map(|given| format!("--{}", given.unwrap_or_else(|| kebab(&name))))
}

/// Whether an attribute makes a long option, and its name if it gives one.
fn long(attribute: &Attribute) -> Option<Option<String>> {
    if !attribute.path().is_ident("arg") {
        return None;
    }
    let mut tokens = attribute.meta.require_list().ok()?.tokens.clone().into_iter();
    tokens.find(|token| matches!(token, TokenTree::Ident(word) if word == "long"))?;
    let is_given = matches!(tokens.next(), Some(TokenTree::Punct(punct)) if punct.as_char() == '=');
    let given = tokens.next().filter(|_| is_given).map(|name| name.to_string().trim_matches('"').to_owned());
    Some(given)
}

/// `AcceptLoss` and `accept_loss` as `accept-loss`.
fn kebab(name: &str) -> String {
    let mut kebab = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !kebab.is_empty() {
            kebab.push('-');
        }
        kebab.push(if letter == '_' { '-' } else { letter.to_ascii_lowercase() });
    }
    kebab
}
