//! What a `use` line brings into a file: one import per name, however the line groups them.

/// One imported name.
pub struct Import {
    /// Where the name is.
    pub line: usize,
    /// The full path, without any renaming. A glob ends in `*`.
    pub path: String,
    /// What the file calls it; nothing for a glob or for `as _`.
    pub alias: Option<String>,
}

/// Every name that a `use` line brings.
pub fn imports(item: &syn::ItemUse) -> Vec<Import> {
    let mut imports = Vec::new();
    collect("", &item.tree, &mut imports);
    imports
}

fn collect(prefix: &str, tree: &syn::UseTree, imports: &mut Vec<Import>) {
    let mut add = |name: &syn::Ident, alias: Option<&syn::Ident>| {
        // `use std::fs::{self}` imports `fs`, which is the end of the prefix.
        let path =
            if name == "self" { prefix.trim_end_matches("::").to_owned() } else { format!("{prefix}{name}") };
        let alias = match alias {
            Some(alias) => Some(alias.to_string()).filter(|alias| alias != "_"),
            None => path.rsplit("::").next().map(str::to_owned),
        };
        imports.push(Import { line: name.span().start().line, path, alias });
    };
    match tree {
        syn::UseTree::Name(name) => add(&name.ident, None),
        syn::UseTree::Rename(rename) => add(&rename.ident, Some(&rename.rename)),
        syn::UseTree::Path(path) => collect(&format!("{prefix}{}::", path.ident), &path.tree, imports),
        syn::UseTree::Group(group) => group.items.iter().for_each(|tree| collect(prefix, tree, imports)),
        syn::UseTree::Glob(glob) => {
            let line = glob.star_token.spans[0].start().line;
            imports.push(Import { line, path: format!("{prefix}*"), alias: None });
        }
    }
}
