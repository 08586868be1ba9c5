//! Words of our own for things that engineers have words for. Files, modules, types and functions do not have them in
//! their names. Fields that journals hold (`is_told`, `told_tokens`) keep theirs, and tests are named by sentences.

use syn::visit::{self, Visit};

use super::Finding;
use crate::workspace::{Source, Workspace};

/// Each word, and what people say instead.
const PICTURES: [(&str, &str); 17] = [
    ("desk", "a writer"),
    ("tray", "a queue"),
    ("pen", "a write connection"),
    ("sheet", "statements"),
    ("crowd", "concurrent trees"),
    ("lull", "idle"),
    ("lately", "recent"),
    ("mover", "a checkpointer"),
    ("mind", "live state"),
    ("told", "recorded, delivered, shared, shown or described"),
    ("cast", "open calls"),
    ("story", "an event text, or recent events"),
    ("scribe", "a step writer"),
    ("scribing", "writing workspaces"),
    ("deed", "a step change"),
    ("sight", "a traced event"),
    ("hop", "an event context"),
];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().filter(|source| !source.is_test_file()).flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut reader = Reader { source, findings: Vec::new() };
    if let Some(name) = source.file_name().strip_suffix(".rs") {
        reader.name(1, name);
    }
    reader.visit_file(&source.syntax);
    reader.findings
}

struct Reader<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Reader<'_> {
    fn ident(&mut self, name: &syn::Ident) {
        self.name(name.span().start().line, &name.to_string());
    }

    fn name(&mut self, line: usize, name: &str) {
        let words = words(name);
        let found = PICTURES.iter().find(|(picture, _)| words.iter().any(|word| word == picture));
        let Some((picture, plain)) = found.filter(|_| !self.source.is_test(line)) else { return };
        self.findings.push(Finding {
            path: self.source.path.clone(),
            line,
            rule: "pictures",
            item: name.to_owned(),
            what: format!("`{name}` has the word `{picture}`; people say {plain}"),
            remedy: "use the word that databases, operating systems and Rust programmers use",
        });
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        self.ident(&item.ident);
        visit::visit_item_mod(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.ident(&item.ident);
        visit::visit_item_struct(self, item);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.ident(&item.ident);
        visit::visit_item_enum(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.ident(&item.ident);
        visit::visit_item_trait(self, item);
    }

    fn visit_signature(&mut self, signature: &'ast syn::Signature) {
        self.ident(&signature.ident);
        visit::visit_signature(self, signature);
    }
}

/// The words of a name in snake or camel case, in lower case.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for letter in name.chars() {
        if letter == '_' || letter.is_uppercase() {
            words.push(String::new());
        }
        if let (true, Some(word)) = (letter != '_', words.last_mut()) {
            word.extend(letter.to_lowercase());
        }
    }
    words
}
