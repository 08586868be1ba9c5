//! Names that say nothing, or that say that there are two ways to do a thing.
//!
//! Fields, variants, locals and the methods of a trait's implementation are not looked at.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::Finding;
use crate::workspace::{Source, Workspace};

const EMPTY_NAMES: [&str; 5] = ["utils", "helpers", "common", "types", "misc"];
const EMPTY_ENDINGS: [&str; 5] = ["Manager", "Service", "Wrapper", "Impl", "Info"];
const SECOND_WAYS: [&str; 3] = ["_v2", "_new", "_legacy"];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut reader = Reader { source, findings: Vec::new() };
    for part in source.parts_in_package() {
        reader.thing(1, part.trim_end_matches(".rs"));
    }
    reader.visit_file(&source.syntax);
    reader.findings
}

struct Reader<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

impl Reader<'_> {
    fn find(&mut self, line: usize, item: &str, what: String, remedy: &'static str) {
        let path = self.source.path.clone();
        self.findings.push(Finding { path, line, rule: "names", item: item.to_owned(), what, remedy });
    }

    /// What holds for files, modules and types.
    fn thing(&mut self, line: usize, name: &str) {
        if EMPTY_NAMES.contains(&name.to_lowercase().as_str()) {
            let what = format!("`{name}` names no idea");
            self.find(line, name, what, "name it after its one main thing");
        }
        self.second_way(line, name);
    }

    /// What holds for every name.
    fn second_way(&mut self, line: usize, name: &str) {
        if SECOND_WAYS.iter().any(|ending| name.to_lowercase().ends_with(ending)) || name.ends_with("V2") {
            let what = format!("`{name}` sounds like a second way to do one thing");
            self.find(line, name, what, "keep one way, delete the other, and give it the plain name");
        }
    }

    fn type_name(&mut self, name: &syn::Ident) {
        let (line, name) = place(name);
        self.thing(line, &name);
        if let Some(ending) = EMPTY_ENDINGS.iter().find(|ending| name.ends_with(**ending)) {
            let what = format!("`{ending}` at the end of `{name}` says nothing");
            self.find(line, &name, what, "drop the ending, or say what the type does");
        }
    }

    fn function(&mut self, attributes: &[syn::Attribute], signature: &syn::Signature) {
        let is_test = |attribute: &syn::Attribute| {
            attribute.path().segments.last().is_some_and(|segment| segment.ident == "test")
        };
        // A test's name is a sentence and ends with whatever word the sentence ends with.
        if attributes.iter().any(is_test) {
            return;
        }
        let (line, name) = place(&signature.ident);
        if name.starts_with("get_") {
            self.find(line, &name, format!("`{name}` starts with `get_`"), "drop the prefix");
        }
        self.second_way(line, &name);
    }

    fn flags(&mut self, visibility: &syn::Visibility, signature: &syn::Signature) {
        if !matches!(visibility, syn::Visibility::Public(_)) {
            return;
        }
        for input in &signature.inputs {
            if let syn::FnArg::Typed(parameter) = input
                && let syn::Type::Path(kind) = parameter.ty.as_ref()
                && kind.path.is_ident("bool")
            {
                let (line, name) = (parameter.span().start().line, signature.ident.to_string());
                let what = format!("public `{name}` takes a `bool`, which says nothing where it is called");
                self.find(line, &name, what, "take an enum of two variants, or make it two functions");
            }
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        self.function(&item.attrs, &item.sig);
        self.flags(&item.vis, &item.sig);
        visit::visit_item_fn(self, item);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        for member in &item.items {
            if let syn::ImplItem::Fn(method) = member
                && item.trait_.is_none()
            {
                self.function(&method.attrs, &method.sig);
                self.flags(&method.vis, &method.sig);
            }
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.type_name(&item.ident);
        for member in &item.items {
            if let syn::TraitItem::Fn(method) = member {
                self.function(&method.attrs, &method.sig);
                self.flags(&item.vis, &method.sig);
            }
        }
        visit::visit_item_trait(self, item);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.type_name(&item.ident);
    }

    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.type_name(&item.ident);
    }

    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.type_name(&item.ident);
    }

    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.type_name(&item.ident);
    }

    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // A module without a body is a file, and the file's path is judged.
        if item.content.is_some() {
            let (line, name) = place(&item.ident);
            self.thing(line, &name);
        }
        visit::visit_item_mod(self, item);
    }

    fn visit_item_const(&mut self, item: &'ast syn::ItemConst) {
        let (line, name) = place(&item.ident);
        self.second_way(line, &name);
    }

    fn visit_item_static(&mut self, item: &'ast syn::ItemStatic) {
        let (line, name) = place(&item.ident);
        self.second_way(line, &name);
    }
}

fn place(name: &syn::Ident) -> (usize, String) {
    (name.span().start().line, name.to_string())
}
