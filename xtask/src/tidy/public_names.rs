//! A public type name exists once in the workspace: a reader who knows it in one crate knows it in all.

use std::collections::BTreeMap;

use super::Finding;
use crate::workspace::{Source, Workspace};

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut first: BTreeMap<String, &str> = BTreeMap::new();
    let mut findings = Vec::new();
    for source in workspace.sources.iter().filter(|source| is_library(source)) {
        for item in &source.syntax.items {
            let Some(name) = public_type(item) else { continue };
            let known = first.entry(name.to_string()).or_insert(&source.path);
            if *known != source.path {
                findings.push(Finding {
                    path: source.path.clone(),
                    line: name.span().start().line,
                    rule: "public-names",
                    item: name.to_string(),
                    what: format!("`{name}` is also a public type in {known}"),
                    remedy: "give one of them a name that says what sets it apart",
                });
            }
        }
    }
    findings
}

fn is_library(source: &Source) -> bool {
    let mut parts = source.parts_in_package();
    source.path.starts_with("crates/")
        && parts.next() == Some("src")
        && parts.next() != Some("bin")
        && !source.is_test_file()
}

fn public_type(item: &syn::Item) -> Option<&syn::Ident> {
    let (visibility, name) = match item {
        syn::Item::Struct(item) => (&item.vis, &item.ident),
        syn::Item::Enum(item) => (&item.vis, &item.ident),
        syn::Item::Trait(item) => (&item.vis, &item.ident),
        syn::Item::Type(item) => (&item.vis, &item.ident),
        _ => return None,
    };
    matches!(visibility, syn::Visibility::Public(_)).then_some(name)
}
