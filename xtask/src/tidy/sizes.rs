//! How long, wide and deep things may be. The numbers are smoke alarms; the rule is one file, one idea.
//!
//! Only the length of a file leaves test code out. The body of a macro call is not measured.

use syn::spanned::Spanned;
use syn::visit::{self, Visit};

use super::{Finding, nesting};
use crate::workspace::{Source, Workspace};

const FILE_LINES_MAX: usize = 500;
const FUNCTION_LINES_MAX: usize = 70;
const STRUCT_FIELDS_MAX: usize = 12;
const PARAMETERS_MAX: usize = 5;
const NESTING_MAX: usize = 4;

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let mut ruler = Ruler { source, findings: Vec::new() };
    ruler.file();
    ruler.visit_file(&source.syntax);
    ruler.findings
}

struct Ruler<'a> {
    source: &'a Source,
    findings: Vec<Finding>,
}

/// One measured thing: which limit it is held to, and what to say when it is over.
struct Measure<'a> {
    rule: &'static str,
    line: usize,
    item: &'a str,
    size: usize,
    size_max: usize,
    unit: &'static str,
    remedy: &'static str,
}

impl Ruler<'_> {
    fn measure(&mut self, measure: &Measure<'_>) {
        let &Measure { rule, line, item, size, size_max, unit, remedy } = measure;
        if size > size_max {
            let what = format!("`{item}` has {size} {unit}, at most {size_max}");
            let path = self.source.path.clone();
            self.findings.push(Finding { path, line, rule, item: item.to_owned(), what, remedy });
        }
    }

    fn file(&mut self) {
        if self.source.is_bench() {
            return;
        }
        let lines = (1..=self.source.text.lines().count()).filter(|line| !self.source.is_test(*line));
        self.measure(&Measure {
            rule: "file-lines",
            line: 1,
            item: self.source.file_name(),
            size: lines.count(),
            size_max: FILE_LINES_MAX,
            unit: "lines",
            remedy: "find the second idea in it and give it a file of its own",
        });
    }

    fn parameters(&mut self, signature: &syn::Signature) {
        let is_typed = |input: &&syn::FnArg| matches!(input, syn::FnArg::Typed(_));
        self.measure(&Measure {
            rule: "parameters",
            line: signature.ident.span().start().line,
            item: &signature.ident.to_string(),
            size: signature.inputs.iter().filter(is_typed).count(),
            size_max: PARAMETERS_MAX,
            unit: "parameters",
            remedy: "group those that travel together into a struct",
        });
    }

    fn body(&mut self, signature: &syn::Signature, body: &syn::Block) {
        let name = signature.ident.to_string();
        let first_line = signature.span().start().line;
        self.measure(&Measure {
            rule: "function-lines",
            line: first_line,
            item: &name,
            size: body.span().end().line - first_line + 1,
            size_max: FUNCTION_LINES_MAX,
            unit: "lines",
            remedy: "give its steps names and functions of their own",
        });
        let deepest = nesting::deepest(body);
        self.measure(&Measure {
            rule: "nesting",
            line: deepest.line,
            item: &name,
            size: deepest.depth,
            size_max: NESTING_MAX,
            unit: "levels of nesting",
            remedy: "return early, or move the inner part to a function",
        });
    }
}

impl<'ast> Visit<'ast> for Ruler<'_> {
    fn visit_item_fn(&mut self, function: &'ast syn::ItemFn) {
        self.parameters(&function.sig);
        self.body(&function.sig, &function.block);
        visit::visit_item_fn(self, function);
    }

    fn visit_item_impl(&mut self, item: &'ast syn::ItemImpl) {
        for member in &item.items {
            if let syn::ImplItem::Fn(method) = member {
                // The parameters of a trait's method are the trait's to answer for.
                if item.trait_.is_none() {
                    self.parameters(&method.sig);
                }
                self.body(&method.sig, &method.block);
            }
        }
        visit::visit_item_impl(self, item);
    }

    fn visit_trait_item_fn(&mut self, method: &'ast syn::TraitItemFn) {
        self.parameters(&method.sig);
        if let Some(body) = &method.default {
            self.body(&method.sig, body);
        }
        visit::visit_trait_item_fn(self, method);
    }

    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.measure(&Measure {
            rule: "struct-fields",
            line: item.ident.span().start().line,
            item: &item.ident.to_string(),
            size: item.fields.len(),
            size_max: STRUCT_FIELDS_MAX,
            unit: "fields",
            remedy: "find the fields that change together and make them a struct",
        });
    }
}
