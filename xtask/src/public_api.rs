//! What a program sees of the package `spinney`: every public item with its signature, as text for a reviewed snapshot.
//!
//! It follows `pub mod` and `pub use` through the sources, into our other crates as well. What a macro makes has no
//! signature here, only its name. Type names are unique in the workspace, so an `impl` belongs to the type of its name.

use std::collections::BTreeMap;
use std::fmt::Write;

use syn::spanned::Spanned;

use crate::workspace::{Import, Source, Workspace, imports};

/// The crates whose items can be part of it, by the names that sources use.
const CRATES: [(&str, &str); 4] = [
    ("spinney", "crates/runtime/src/"),
    ("spinney_kernel", "crates/kernel/src/"),
    ("spinney_journal", "crates/journal/src/"),
    ("spinney_store", "crates/store/src/"),
];

/// Re-exports are followed so many steps at most.
const STEPS_MAX: usize = 16;

/// The public items of `spinney`, one per paragraph, in the order of their paths. An item with several paths is described
/// at the shortest; the others refer to it.
pub fn public_api(workspace: &Workspace) -> String {
    let reader = Reader { workspace };
    let mut found = Vec::new();
    if let Some(root) = reader.root("spinney") {
        reader.walk(root, "spinney", &mut found);
    }
    let mut paths: BTreeMap<Identity, Vec<String>> = BTreeMap::new();
    for (path, found) in &found {
        paths.entry(found.identity(path)).or_default().push(path.clone());
    }
    let mut lines = BTreeMap::new();
    for (path, found) in found {
        let all = &paths[&found.identity(&path)];
        let first =
            all.iter().min_by_key(|path| (path.contains("::prelude::"), path.matches("::").count(), *path));
        let text = match first.filter(|first| **first != path) {
            Some(first) => format!("use {path} = {first}\n"),
            None => reader.described(&path, found),
        };
        lines.insert(path, text);
    }
    lines.into_values().collect()
}

struct Reader<'a> {
    workspace: &'a Workspace,
}

/// A module: a file, or a part of one.
#[derive(Clone, Copy)]
struct Module<'a> {
    source: &'a Source,
    items: &'a [syn::Item],
    krate: &'static str,
}

#[derive(Clone, Copy)]
enum ApiItem<'a> {
    Item(Module<'a>, &'a syn::Item),
    /// One of our modules.
    Module(Module<'a>),
    /// Made by a macro, or from a crate that is not ours.
    Other,
}

/// The file of an item and its name, or for others the path.
type Identity = (String, String);

impl ApiItem<'_> {
    fn identity(&self, path: &str) -> Identity {
        match self {
            Self::Item(module, item) => (module.source.path.clone(), name_of(item).unwrap_or_default()),
            Self::Module(module) => (module.source.path.clone(), format!("mod {path}")),
            Self::Other => (String::new(), path.rsplit("::").next().unwrap_or(path).to_owned()),
        }
    }
}

impl<'a> Reader<'a> {
    fn root(&self, krate: &str) -> Option<Module<'a>> {
        let (krate, folder) = CRATES.into_iter().find(|(name, _)| *name == krate)?;
        let path = format!("{folder}lib.rs");
        let source = self.workspace.sources.iter().find(|source| source.path == path)?;
        Some(Module { source, items: &source.syntax.items, krate })
    }

    /// Everything public below a module.
    fn walk(&self, module: Module<'a>, path: &str, found: &mut Vec<(String, ApiItem<'a>)>) {
        for item in module.items.iter().filter(|item| is_public(item) && !is_hidden(item)) {
            match item {
                syn::Item::Use(line) => {
                    for Import { path: target, alias, .. } in imports(line) {
                        if let Some(all) = target.strip_suffix("::*")
                            && let ApiItem::Module(inner) = self.resolve(module, all, STEPS_MAX)
                        {
                            self.walk(inner, path, found);
                        }
                        let Some(alias) = alias else { continue };
                        let path = format!("{path}::{alias}");
                        match self.resolve(module, &target, STEPS_MAX) {
                            ApiItem::Module(inner) => self.walk_module(inner, path, found),
                            other => found.push((path, other)),
                        }
                    }
                }
                syn::Item::Mod(inner) => {
                    if let Some(opened) = self.child(module, inner) {
                        self.walk_module(opened, format!("{path}::{}", inner.ident), found);
                    }
                }
                item => {
                    let name = name_of(item).unwrap_or_default();
                    found.push((format!("{path}::{name}"), ApiItem::Item(module, item)));
                }
            }
        }
    }

    fn walk_module(&self, module: Module<'a>, path: String, found: &mut Vec<(String, ApiItem<'a>)>) {
        self.walk(module, &path, found);
        found.push((path, ApiItem::Module(module)));
    }

    /// What a path in a module means.
    fn resolve(&self, module: Module<'a>, path: &str, steps: usize) -> ApiItem<'a> {
        let mut parts = path.split("::");
        let first = parts.next().unwrap_or_default();
        let mut at = match first {
            "self" => ApiItem::Module(module),
            "crate" => self.root(module.krate).map_or(ApiItem::Other, ApiItem::Module),
            "super" => self.above(module).map_or(ApiItem::Other, ApiItem::Module),
            name => match self.root(name) {
                Some(root) => ApiItem::Module(root),
                None => self.lookup(module, name, steps),
            },
        };
        for name in parts {
            at = match at {
                ApiItem::Module(inner) => self.lookup(inner, name, steps),
                ApiItem::Item(..) | ApiItem::Other => ApiItem::Other,
            };
        }
        at
    }

    /// A name in a module, defined there or imported, private or not.
    fn lookup(&self, module: Module<'a>, name: &str, steps: usize) -> ApiItem<'a> {
        let Some(steps) = steps.checked_sub(1) else { return ApiItem::Other };
        for item in module.items {
            match item {
                syn::Item::Mod(inner) if inner.ident == name => {
                    return self.child(module, inner).map_or(ApiItem::Other, ApiItem::Module);
                }
                syn::Item::Use(line) => {
                    let import =
                        imports(line).into_iter().find(|import| import.alias.as_deref() == Some(name));
                    // `use name::Name` is not what `name` is.
                    if let Some(import) = import.filter(|import| import.path != name) {
                        return self.resolve(module, &import.path, steps);
                    }
                }
                item if name_of(item).is_some_and(|own| own == name) => return ApiItem::Item(module, item),
                _ => {}
            }
        }
        self.lookup_in_globs(module, name, steps)
    }

    fn lookup_in_globs(&self, module: Module<'a>, name: &str, steps: usize) -> ApiItem<'a> {
        let lines = module.items.iter().filter_map(|item| match item {
            syn::Item::Use(line) => Some(line),
            _ => None,
        });
        for import in lines.flat_map(imports) {
            if let Some(all) = import.path.strip_suffix("::*")
                && let ApiItem::Module(inner) = self.resolve(module, all, steps)
                && let found @ (ApiItem::Item(..) | ApiItem::Module(_)) = self.lookup(inner, name, steps)
            {
                return found;
            }
        }
        ApiItem::Other
    }

    fn child(&self, module: Module<'a>, inner: &'a syn::ItemMod) -> Option<Module<'a>> {
        if let Some((_, items)) = &inner.content {
            return Some(Module { items, ..module });
        }
        let own = module.source.path.strip_suffix(".rs")?;
        let folder = ["/lib", "/mod"].iter().find_map(|root| own.strip_suffix(root)).unwrap_or(own);
        let places = [format!("{folder}/{}.rs", inner.ident), format!("{folder}/{}/mod.rs", inner.ident)];
        let source = self.workspace.sources.iter().find(|source| places.contains(&source.path))?;
        Some(Module { source, items: &source.syntax.items, krate: module.krate })
    }

    fn above(&self, module: Module<'a>) -> Option<Module<'a>> {
        let own = module.source.path.strip_suffix(".rs")?;
        let (folder, _) = own.strip_suffix("/mod").unwrap_or(own).rsplit_once('/')?;
        let places = [format!("{folder}.rs"), format!("{folder}/mod.rs"), format!("{folder}/lib.rs")];
        let source = self.workspace.sources.iter().find(|source| places.contains(&source.path))?;
        Some(Module { source, items: &source.syntax.items, krate: module.krate })
    }

    fn described(&self, path: &str, found: ApiItem<'a>) -> String {
        let ApiItem::Item(module, item) = found else {
            return match found {
                ApiItem::Module(_) => format!("mod {path}\n"),
                ApiItem::Item(..) | ApiItem::Other => format!("item {path}\n"),
            };
        };
        let mut text = headline(module.source, item, path);
        let name = name_of(item).unwrap_or_default();
        let mut members = members(module.source, item);
        members.extend(self.implemented(module, &name));
        for member in members {
            let _ = writeln!(text, "    {member}");
        }
        text
    }

    /// The public functions and constants of a type, and the traits that it has without a derive.
    fn implemented(&self, module: Module<'a>, name: &str) -> Vec<String> {
        let folder = CRATES.iter().find(|(krate, _)| *krate == module.krate).map_or("", |(_, folder)| folder);
        let sources = self.workspace.sources.iter();
        let mut found = Vec::new();
        for source in sources.filter(|source| source.path.starts_with(folder) && !source.is_test_file()) {
            for item in &source.syntax.items {
                let syn::Item::Impl(block) = item else { continue };
                if !is_named(&block.self_ty, name) {
                    continue;
                }
                if let Some((_, interface, _)) = &block.trait_ {
                    found.push(format!("impl {}", text_of(source, interface)));
                    continue;
                }
                for member in &block.items {
                    match member {
                        syn::ImplItem::Fn(method) if is_visible(&method.vis) => {
                            found.push(text_of(source, &method.sig));
                        }
                        syn::ImplItem::Const(value) if is_visible(&value.vis) => {
                            found.push(format!("const {}: {}", value.ident, text_of(source, &value.ty)));
                        }
                        _ => {}
                    }
                }
            }
        }
        found.sort();
        found
    }
}

fn headline(source: &Source, item: &syn::Item, path: &str) -> String {
    let derives: Vec<String> = attributes(item)
        .iter()
        .filter(|attribute| attribute.path().is_ident("derive"))
        .filter_map(|attribute| attribute.meta.require_list().ok())
        .map(|list| list.tokens.to_string().replace(" ,", ",").replace(" :: ", "::"))
        .collect();
    let derives = if derives.is_empty() { String::new() } else { format!(": {}", derives.join(", ")) };
    let open = if attributes(item).iter().any(|attribute| attribute.path().is_ident("non_exhaustive")) {
        " (non-exhaustive)"
    } else {
        ""
    };
    let said = match item {
        syn::Item::Struct(it) => format!("struct {path}{}{derives}{open}", text_of(source, &it.generics)),
        syn::Item::Enum(it) => format!("enum {path}{}{derives}{open}", text_of(source, &it.generics)),
        syn::Item::Trait(it) => {
            let above = if it.supertraits.is_empty() {
                String::new()
            } else {
                format!(": {}", text_of(source, &it.supertraits))
            };
            format!("trait {path}{}{above}", text_of(source, &it.generics))
        }
        syn::Item::Type(it) => format!("type {path} = {}", text_of(source, &it.ty)),
        syn::Item::Const(it) => format!("const {path}: {}", text_of(source, &it.ty)),
        syn::Item::Fn(it) => format!("fn {path} = {}", text_of(source, &it.sig)),
        _ => format!("item {path}"),
    };
    format!("{said}\n")
}

/// The public fields, variants and functions that stand in the item itself.
fn members(source: &Source, item: &syn::Item) -> Vec<String> {
    match item {
        syn::Item::Struct(it) => {
            let public = it.fields.iter().filter(|field| is_visible(&field.vis));
            let mut fields: Vec<String> = public.map(|field| field_text(source, field)).collect();
            if it.fields.iter().any(|field| !is_visible(&field.vis)) {
                fields.push("..".to_owned());
            }
            fields
        }
        syn::Item::Enum(it) => it.variants.iter().map(|variant| variant_text(source, variant)).collect(),
        syn::Item::Trait(it) => it
            .items
            .iter()
            .filter_map(|member| match member {
                syn::TraitItem::Fn(method) => {
                    let given = if method.default.is_some() { " { .. }" } else { "" };
                    Some(format!("{}{given}", text_of(source, &method.sig)))
                }
                syn::TraitItem::Type(it) => Some(format!("type {}", it.ident)),
                syn::TraitItem::Const(it) => Some(format!("const {}: {}", it.ident, text_of(source, &it.ty))),
                _ => None,
            })
            .collect(),
        _ => Vec::new(),
    }
}

fn variant_text(source: &Source, variant: &syn::Variant) -> String {
    let fields: Vec<String> = variant.fields.iter().map(|field| field_text(source, field)).collect();
    match &variant.fields {
        syn::Fields::Named(_) => format!("{} {{ {} }}", variant.ident, fields.join(", ")),
        syn::Fields::Unnamed(_) => format!("{}({})", variant.ident, fields.join(", ")),
        syn::Fields::Unit => variant.ident.to_string(),
    }
}

fn field_text(source: &Source, field: &syn::Field) -> String {
    let kind = text_of(source, &field.ty);
    field.ident.as_ref().map_or_else(|| kind.clone(), |name| format!("{name}: {kind}"))
}

/// The text of a part of a file, in one line.
fn text_of(source: &Source, part: &impl Spanned) -> String {
    let lines = source.text.get(part.span().byte_range()).unwrap_or_default();
    let words: Vec<&str> = lines.split_whitespace().collect();
    let line = words.join(" ");
    line.replace("( ", "(").replace(", )", ")").replace("< ", "<").replace(", >", ">").replace(",)", ")")
}

fn name_of(item: &syn::Item) -> Option<String> {
    Some(match item {
        syn::Item::Struct(it) => it.ident.to_string(),
        syn::Item::Enum(it) => it.ident.to_string(),
        syn::Item::Trait(it) => it.ident.to_string(),
        syn::Item::Type(it) => it.ident.to_string(),
        syn::Item::Const(it) => it.ident.to_string(),
        syn::Item::Static(it) => it.ident.to_string(),
        syn::Item::Fn(it) => it.sig.ident.to_string(),
        _ => return None,
    })
}

fn is_public(item: &syn::Item) -> bool {
    is_visible(match item {
        syn::Item::Struct(it) => &it.vis,
        syn::Item::Enum(it) => &it.vis,
        syn::Item::Trait(it) => &it.vis,
        syn::Item::Type(it) => &it.vis,
        syn::Item::Const(it) => &it.vis,
        syn::Item::Static(it) => &it.vis,
        syn::Item::Fn(it) => &it.vis,
        syn::Item::Mod(it) => &it.vis,
        syn::Item::Use(it) => &it.vis,
        _ => return false,
    })
}

const fn is_visible(visibility: &syn::Visibility) -> bool {
    matches!(visibility, syn::Visibility::Public(_))
}

/// Whether it exists only for tests.
fn is_hidden(item: &syn::Item) -> bool {
    attributes(item).iter().any(|attribute| {
        let condition =
            || attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default();
        attribute.path().is_ident("cfg") && matches!(condition().as_str(), "test" | "doctest")
    })
}

fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Struct(it) => &it.attrs,
        syn::Item::Enum(it) => &it.attrs,
        syn::Item::Trait(it) => &it.attrs,
        syn::Item::Type(it) => &it.attrs,
        syn::Item::Const(it) => &it.attrs,
        syn::Item::Static(it) => &it.attrs,
        syn::Item::Fn(it) => &it.attrs,
        syn::Item::Mod(it) => &it.attrs,
        syn::Item::Use(it) => &it.attrs,
        _ => &[],
    }
}

/// Whether a type is the one of this name, with any parameters.
fn is_named(kind: &syn::Type, name: &str) -> bool {
    let syn::Type::Path(kind) = kind else { return false };
    kind.path.segments.last().is_some_and(|last| last.ident == name)
}
