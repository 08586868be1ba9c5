//! How deep control flow nests inside one function body. Part of the sizes.

use syn::spanned::Spanned;
use syn::visit::Visit;

/// The innermost control flow of a body.
pub(super) struct Deepest {
    /// How many blocks of control flow it lies in, its own included.
    pub(super) depth: usize,
    /// Where it starts.
    pub(super) line: usize,
}

/// A chain of `else if` counts once, so does `match` with all its arms; a closure counts if it has a block.
pub(super) fn deepest(body: &syn::Block) -> Deepest {
    let mut plumb = Plumb { depth: 0, deepest: Deepest { depth: 0, line: body.span().start().line } };
    plumb.visit_block(body);
    plumb.deepest
}

struct Plumb {
    depth: usize,
    deepest: Deepest,
}

impl Plumb {
    fn enter(&mut self, flow: &impl Spanned, walk: impl FnOnce(&mut Self)) {
        self.depth += 1;
        if self.depth > self.deepest.depth {
            self.deepest = Deepest { depth: self.depth, line: flow.span().start().line };
        }
        walk(self);
        self.depth -= 1;
    }
}

impl<'ast> Visit<'ast> for Plumb {
    fn visit_expr_if(&mut self, flow: &'ast syn::ExprIf) {
        self.visit_expr(&flow.cond);
        self.enter(flow, |plumb| plumb.visit_block(&flow.then_branch));
        match flow.else_branch.as_ref().map(|(_, branch)| branch.as_ref()) {
            Some(syn::Expr::If(next)) => self.visit_expr_if(next),
            Some(branch) => self.enter(flow, |plumb| plumb.visit_expr(branch)),
            None => {}
        }
    }

    fn visit_expr_match(&mut self, flow: &'ast syn::ExprMatch) {
        self.visit_expr(&flow.expr);
        self.enter(flow, |plumb| flow.arms.iter().for_each(|arm| plumb.visit_arm(arm)));
    }

    fn visit_expr_loop(&mut self, flow: &'ast syn::ExprLoop) {
        self.enter(flow, |plumb| plumb.visit_block(&flow.body));
    }

    fn visit_expr_while(&mut self, flow: &'ast syn::ExprWhile) {
        self.visit_expr(&flow.cond);
        self.enter(flow, |plumb| plumb.visit_block(&flow.body));
    }

    fn visit_expr_for_loop(&mut self, flow: &'ast syn::ExprForLoop) {
        self.visit_expr(&flow.expr);
        self.enter(flow, |plumb| plumb.visit_block(&flow.body));
    }

    fn visit_expr_closure(&mut self, closure: &'ast syn::ExprClosure) {
        if matches!(closure.body.as_ref(), syn::Expr::Block(_)) {
            self.enter(closure, |plumb| plumb.visit_expr(&closure.body));
        } else {
            self.visit_expr(&closure.body);
        }
    }

    /// A function inside a function is measured by itself.
    fn visit_item(&mut self, _: &'ast syn::Item) {}
}
