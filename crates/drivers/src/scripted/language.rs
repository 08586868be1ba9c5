//! The part of Jinja that a script may use: nothing in it makes a value much larger than what it was made from.
//!
//! Fuel counts instructions and not the size of what one instruction builds, and constants are folded while a template
//! is compiled, where there is no fuel at all. So everything that multiplies sizes is refused before the compiler sees
//! it. What is not listed here is refused.
//!
//! Filters are the exception that has its own bound: [`super::filter`].

use minijinja::machinery::Span;
use minijinja::machinery::ast::{BinOp, BinOpKind, CallArg, Expr, ForLoop, IfCond, Stmt, UnaryOpKind};
use minijinja::value::ValueKind;

use super::filter;
use super::template::quoted;

/// Tests that may follow `is`.
const TESTS: [&str; 15] = [
    "boolean",
    "defined",
    "endingwith",
    "even",
    "false",
    "integer",
    "mapping",
    "none",
    "number",
    "odd",
    "sequence",
    "startingwith",
    "string",
    "true",
    "undefined",
];

/// What to write in place of something that joins texts.
const JOIN_REMEDY: &str = "write the parts side by side, as in `{{ a }}{{ b }}`";

/// Something that a script may not use.
#[derive(Debug)]
pub(super) struct NotAllowed {
    place: Span,
    what: String,
}

impl NotAllowed {
    fn new(place: Span, what: impl Into<String>) -> Self {
        Self { place, what: what.into() }
    }
}

impl std::fmt::Display for NotAllowed {
    /// The first line of a template is 1, and so is its first column.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { place, what } = self;
        write!(f, "line {} column {} of the template: {what}", place.start_line, place.start_col + 1)
    }
}

/// Checks a parsed template. Goes as deep as its marks allow (`MARKS_MAX`).
pub(super) fn check(statement: &Stmt<'_>) -> Result<(), NotAllowed> {
    let refused = |place, what: &str| {
        Err(NotAllowed::new(
            place,
            format!("`{what}` is not part of the scripts' language: use `if`, `for` and expressions"),
        ))
    };
    match statement {
        Stmt::Template(template) => all(&template.children),
        Stmt::EmitExpr(emit) => expression(&emit.expr),
        Stmt::EmitRaw(_) => Ok(()),
        Stmt::ForLoop(looped) => for_loop(looped),
        Stmt::IfCond(condition) => {
            let IfCond { expr, true_body, false_body } = &**condition;
            expression(expr)?;
            all(true_body)?;
            all(false_body)
        }
        Stmt::WithBlock(block) => refused(block.span(), "with"),
        Stmt::Set(set) => refused(set.span(), "set"),
        Stmt::SetBlock(set) => refused(set.span(), "set"),
        Stmt::AutoEscape(block) => refused(block.span(), "autoescape"),
        Stmt::FilterBlock(block) => refused(block.span(), "filter"),
        Stmt::Do(statement) => refused(statement.span(), "do"),
    }
}

fn all(statements: &[Stmt<'_>]) -> Result<(), NotAllowed> {
    statements.iter().try_for_each(check)
}

fn for_loop(looped: &ForLoop<'_>) -> Result<(), NotAllowed> {
    let ForLoop { target: _, iter, filter_expr, recursive, body, else_body } = looped;
    if *recursive {
        return Err(NotAllowed::new(iter.span(), "a loop cannot be `recursive`: nest loops instead"));
    }
    match iter {
        Expr::Call(call) if matches!(&call.expr, Expr::Var(name) if name.id == "range") => {
            arguments(&call.args)?;
        }
        Expr::List(list) if list.items.iter().all(|item| matches!(item, Expr::Const(_))) => {}
        _ if builds_list(iter) => {
            // A variable that holds lists of lists doubles with each loop around it.
            let what = "a loop iterates over `range(…)`, a value, or a list of constants";
            return Err(NotAllowed::new(iter.span(), what));
        }
        _ => expression(iter)?,
    }
    filter_expr.as_ref().map_or(Ok(()), expression)?;
    all(body)?;
    all(else_body)
}

/// Whether a list is written anywhere in it.
fn builds_list(part: &Expr<'_>) -> bool {
    let any_argument = |args: &[CallArg<'_>]| args.iter().any(|argument| builds_list(value(argument)));
    match part {
        Expr::List(_) | Expr::Tuple(_) | Expr::Map(_) => true,
        Expr::Var(_) | Expr::Const(_) => false,
        Expr::Slice(slice) => {
            let bounds = [&slice.start, &slice.stop, &slice.step];
            builds_list(&slice.expr) || bounds.into_iter().flatten().any(builds_list)
        }
        Expr::UnaryOp(unary) => builds_list(&unary.expr),
        Expr::BinOp(binary) => builds_list(&binary.left) || builds_list(&binary.right),
        Expr::Compare(compare) => {
            builds_list(&compare.expr) || compare.ops.iter().any(|op| builds_list(&op.expr))
        }
        Expr::IfExpr(choice) => {
            let parts = [Some(&choice.test_expr), Some(&choice.true_expr), choice.false_expr.as_ref()];
            parts.into_iter().flatten().any(builds_list)
        }
        Expr::Filter(filter) => filter.expr.as_ref().is_some_and(builds_list) || any_argument(&filter.args),
        Expr::Test(test) => builds_list(&test.expr) || any_argument(&test.args),
        Expr::GetAttr(attribute) => builds_list(&attribute.expr),
        Expr::GetItem(item) => builds_list(&item.expr) || builds_list(&item.subscript_expr),
        Expr::Call(call) => builds_list(&call.expr) || any_argument(&call.args),
    }
}

fn expression(part: &Expr<'_>) -> Result<(), NotAllowed> {
    let refused = |what: String| Err(NotAllowed::new(part.span(), what));
    match part {
        Expr::Var(_) | Expr::Const(_) => Ok(()),
        Expr::Slice(slice) => {
            expression(&slice.expr)?;
            [&slice.start, &slice.stop, &slice.step].into_iter().flatten().try_for_each(expression)
        }
        Expr::UnaryOp(unary) => expression(&unary.expr),
        Expr::BinOp(binary) => operation(binary, part.span()),
        Expr::Compare(compare) => {
            expression(&compare.expr)?;
            compare.ops.iter().try_for_each(|op| expression(&op.expr))
        }
        Expr::IfExpr(choice) => {
            expression(&choice.test_expr)?;
            expression(&choice.true_expr)?;
            choice.false_expr.as_ref().map_or(Ok(()), expression)
        }
        Expr::Filter(filter) => {
            if !filter::NAMES.contains(&filter.name) {
                let known = quoted(&filter::NAMES);
                return refused(format!("unknown filter `{}`: a script knows {known}", filter.name));
            }
            filter.expr.as_ref().map_or(Ok(()), expression)?;
            arguments(&filter.args)
        }
        Expr::Test(test) => {
            if !TESTS.contains(&test.name) {
                return refused(format!("unknown test `{}`: a script knows {}", test.name, quoted(&TESTS)));
            }
            expression(&test.expr)?;
            arguments(&test.args)
        }
        Expr::GetAttr(attribute) => expression(&attribute.expr),
        Expr::GetItem(item) => {
            expression(&item.expr)?;
            expression(&item.subscript_expr)
        }
        Expr::List(list) => list.items.iter().try_for_each(expression),
        Expr::Call(_) => refused("nothing can be called, except `range` in a loop".to_owned()),
        Expr::Tuple(_) => refused("tuples are not part of the scripts' language: write a list".to_owned()),
        Expr::Map(_) => refused("maps are not part of the scripts' language: write JSON as text".to_owned()),
    }
}

fn arguments(args: &[CallArg<'_>]) -> Result<(), NotAllowed> {
    for argument in args {
        if let CallArg::PosSplat(spread) | CallArg::KwargSplat(spread) = argument {
            return Err(NotAllowed::new(spread.span(), "arguments cannot be spread: write them one by one"));
        }
        expression(value(argument))?;
    }
    Ok(())
}

const fn value<'a, 'source>(argument: &'a CallArg<'source>) -> &'a Expr<'source> {
    match argument {
        CallArg::Pos(value)
        | CallArg::Kwarg(_, value)
        | CallArg::PosSplat(value)
        | CallArg::KwargSplat(value) => value,
    }
}

fn operation(binary: &BinOp<'_>, place: Span) -> Result<(), NotAllowed> {
    let BinOp { op, left, right } = binary;
    let refused = |sign: &str, remedy: &str| {
        Err(NotAllowed::new(place, format!("`{sign}` is not part of the scripts' language: {remedy}")))
    };
    match op {
        BinOpKind::Mul => refused("*", "it repeats texts and lists; write the number"),
        BinOpKind::Pow => refused("**", "write the number"),
        BinOpKind::Concat => refused("~", JOIN_REMEDY),
        // Adding fails unless both sides are numbers, so one certain number is enough.
        BinOpKind::Add if !is_number(left) && !is_number(right) => Err(NotAllowed::new(
            place,
            format!("`+` needs a number written on one side, as in `turn + 1`; for texts {JOIN_REMEDY}"),
        )),
        BinOpKind::Add
        | BinOpKind::Sub
        | BinOpKind::Div
        | BinOpKind::FloorDiv
        | BinOpKind::Rem
        | BinOpKind::Eq
        | BinOpKind::Ne
        | BinOpKind::Lt
        | BinOpKind::Lte
        | BinOpKind::Gt
        | BinOpKind::Gte
        | BinOpKind::ScAnd
        | BinOpKind::ScOr
        | BinOpKind::In => {
            expression(left)?;
            expression(right)
        }
    }
}

/// Whether it can be nothing but a number.
fn is_number(part: &Expr<'_>) -> bool {
    match part {
        Expr::Const(constant) => constant.value.kind() == ValueKind::Number,
        Expr::UnaryOp(unary) => matches!(unary.op, UnaryOpKind::Neg),
        Expr::BinOp(binary) => {
            matches!(binary.op, BinOpKind::Sub | BinOpKind::Div | BinOpKind::FloorDiv | BinOpKind::Rem)
                || matches!(binary.op, BinOpKind::Add)
                    && (is_number(&binary.left) || is_number(&binary.right))
        }
        Expr::Var(_)
        | Expr::Slice(_)
        | Expr::Compare(_)
        | Expr::IfExpr(_)
        | Expr::Filter(_)
        | Expr::Test(_)
        | Expr::GetAttr(_)
        | Expr::GetItem(_)
        | Expr::Call(_)
        | Expr::List(_)
        | Expr::Tuple(_)
        | Expr::Map(_) => false,
    }
}
