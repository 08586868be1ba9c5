//! One Rust file: its text, its syntax tree, its scan, and which part of the workspace it belongs to.

use std::ops::RangeInclusive;

use proc_macro2::TokenStream;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::scan::scan;
use super::{Scan, TextFile, Unreadable};

/// A Rust file, parsed.
pub struct Source {
    /// Where it is.
    pub path: String,
    /// What it says.
    pub text: String,
    /// The tree: items, functions, expressions. Macro calls are leaves in it.
    pub syntax: syn::File,
    /// What the tree does not show: comments, and the inside of macro calls.
    pub scan: Scan,
    test_modules: Vec<RangeInclusive<usize>>,
}

impl Source {
    pub(super) fn parse(file: &TextFile) -> Result<Self, Unreadable> {
        let unreadable = |line, why: String| Unreadable { path: file.path.clone(), line, why };
        let tokens: TokenStream = file.text.parse().map_err(|error: proc_macro2::LexError| {
            unreadable(error.span().start().line, error.to_string())
        })?;
        let syntax: syn::File = syn::parse2(tokens.clone())
            .map_err(|error| unreadable(error.span().start().line, error.to_string()))?;
        let mut test_modules = TestModules::default();
        test_modules.visit_file(&syntax);
        let scan = scan(&file.text, tokens);
        Ok(Self {
            path: file.path.clone(),
            text: file.text.clone(),
            syntax,
            scan,
            test_modules: test_modules.0,
        })
    }

    /// Whether the line is test code, by the file's place or by a `#[cfg(test)]` module around it.
    pub fn is_test(&self, line: usize) -> bool {
        self.is_test_file() || self.test_modules.iter().any(|lines| lines.contains(&line))
    }

    /// Whether the whole file is test code: it is under `tests/`, or its name says so.
    pub fn is_test_file(&self) -> bool {
        let name = self.file_name();
        self.lies_under("tests") || name == "tests.rs" || name.ends_with("_tests.rs")
    }

    /// Whether the file is a benchmark.
    pub fn is_bench(&self) -> bool {
        self.lies_under("benches")
    }

    /// The part of the path after the last `/`.
    pub fn file_name(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or(&self.path)
    }

    /// The path's parts below the folder of its package: `src`, `request`, `spawn.rs`.
    pub fn parts_in_package(&self) -> impl Iterator<Item = &str> {
        let package_parts = if self.path.starts_with("crates/") { 2 } else { 1 };
        self.path.split('/').skip(package_parts)
    }

    fn lies_under(&self, folder: &str) -> bool {
        self.parts_in_package().any(|part| part == folder)
    }
}

/// The lines of each `#[cfg(test)]` module.
#[derive(Default)]
struct TestModules(Vec<RangeInclusive<usize>>);

impl<'ast> Visit<'ast> for TestModules {
    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.attrs.iter().any(is_cfg_test) {
            self.0.push(module.span().start().line..=module.span().end().line);
        }
        visit::visit_item_mod(self, module);
    }
}

fn is_cfg_test(attribute: &syn::Attribute) -> bool {
    attribute.path().is_ident("cfg") && attribute.parse_args().is_ok_and(|condition| demands_test(&condition))
}

/// `test`, or an `all(…)` that has it among its parts.
fn demands_test(condition: &syn::Meta) -> bool {
    if condition.path().is_ident("test") {
        return true;
    }
    let Ok(list) = condition.require_list() else { return false };
    let parts =
        list.parse_args_with(syn::punctuated::Punctuated::<syn::Meta, syn::Token![,]>::parse_terminated);
    list.path.is_ident("all") && parts.is_ok_and(|parts| parts.iter().any(demands_test))
}
