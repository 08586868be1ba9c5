//! One verb, one file, with its reply: the kernel's `request/` and `report/` folders are the list of features.

use super::Finding;
use crate::workspace::Workspace;

const FOLDERS: [&str; 2] = ["crates/kernel/src/rules/request/", "crates/kernel/src/rules/report/"];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    FOLDERS.into_iter().flat_map(|folder| check_folder(workspace, folder)).collect()
}

fn check_folder(workspace: &Workspace, folder: &str) -> Vec<Finding> {
    let modules: Vec<String> = workspace
        .sources
        .iter()
        .filter(|source| source.path.strip_prefix(folder) == Some("mod.rs"))
        .flat_map(|source| declared_modules(&source.syntax))
        .collect();
    let mut findings = Vec::new();
    for source in &workspace.sources {
        let Some(verb) = source.path.strip_prefix(folder).and_then(|name| name.strip_suffix(".rs")) else {
            continue;
        };
        if verb.contains('/') || verb == "mod" || source.is_test_file() {
            continue;
        }
        let find = |what, remedy| Finding {
            path: source.path.clone(),
            line: 1,
            rule: "verbs",
            item: verb.to_owned(),
            what,
            remedy,
        };
        if !modules.iter().any(|module| module == verb) {
            findings.push(find(
                format!("{folder}mod.rs does not name `{verb}`, so nothing compiles it"),
                "declare the module there, with its match arm, or delete the file",
            ));
        }
        let reply = format!("{}Reply", camel_case(verb));
        let structs: Vec<String> =
            visible_structs(&source.syntax).into_iter().filter(|name| *name != reply).collect();
        if structs != [camel_case(verb)] {
            findings.push(find(
                format!("the file must offer one struct `{}`, not {structs:?}", camel_case(verb)),
                "name file and struct after the one verb, and move others to files of their own",
            ));
        }
    }
    findings
}

fn declared_modules(file: &syn::File) -> Vec<String> {
    let name = |item: &syn::Item| {
        let syn::Item::Mod(module) = item else { return None };
        Some(module.ident.to_string())
    };
    file.items.iter().filter_map(name).collect()
}

fn visible_structs(file: &syn::File) -> Vec<String> {
    let name = |item: &syn::Item| {
        let syn::Item::Struct(item) = item else { return None };
        let is_visible = !matches!(item.vis, syn::Visibility::Inherited);
        is_visible.then(|| item.ident.to_string())
    };
    file.items.iter().filter_map(name).collect()
}

fn camel_case(snake: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars();
        letters
            .next()
            .map(|first| first.to_uppercase().chain(letters).collect::<String>())
            .unwrap_or_default()
    };
    snake.split('_').map(capital).collect()
}
