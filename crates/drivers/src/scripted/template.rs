//! The templates of one script: checked and compiled when it is read, rendered under a bound of fuel and of size.
//!
//! Fuel is a count of instructions, not a time, so a template that ends here ends everywhere. It bounds no sizes; the
//! language does ([`super::language`]).

use std::io;

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, UndefinedBehavior, Value, machinery};

use super::{filter, language};

/// Instructions that one template may run: far more than an answer needs, some milliseconds of work.
pub const FUEL_MAX: u64 = 50_000;
/// Most bytes that one template may write.
pub const RENDERED_BYTES_MAX: usize = 1024 * 1024;

/// Most operators and other marks of a text with markup. A chain of some thousand would overflow the stack where the
/// text is compiled, and so would values nested as deep; this bounds both far below.
pub const MARKS_MAX: usize = 500;

/// Words that join expressions, as marks do.
const JOINING: [&str; 8] = ["and", "or", "not", "in", "is", "if", "else", "elif"];

/// All templates of a script.
#[derive(Debug)]
pub(super) struct Templates {
    environment: Environment<'static>,
    syntax: SyntaxConfig,
    count: usize,
}

/// One text of a script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Template {
    /// No markup: it is what it says.
    Plain(String),
    /// With markup, by the name that it has among the others.
    Marked(String),
}

impl Templates {
    pub(super) fn new() -> Self {
        let mut environment = Environment::new();
        environment.set_fuel(Some(FUEL_MAX));
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        // `range` is left, for loops.
        for global in ["debug", "dict", "namespace"] {
            environment.remove_global(global);
        }
        filter::register(&mut environment);
        let syntax = SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default();
        environment.set_syntax(syntax.clone());
        Self { environment, syntax, count: 0 }
    }

    /// Compiles a text that may use these names and no others.
    pub(super) fn add(&mut self, source: &str, names: &[&str]) -> Result<Template, String> {
        if !has_markup(source) {
            return Ok(Template::Plain(source.to_owned()));
        }
        let marks = marks(source);
        if marks > MARKS_MAX {
            return Err(format!("the template has {marks} operators and other marks, at most {MARKS_MAX}"));
        }
        self.count += 1;
        let name = self.count.to_string();
        // Before it is compiled: the compiler evaluates constants, however large they become.
        let parsed = machinery::parse(source, &name, self.syntax.clone()).map_err(|error| said(&error))?;
        language::check(&parsed).map_err(|problem| problem.to_string())?;
        drop(parsed);
        self.environment.add_template_owned(name.clone(), source.to_owned()).map_err(|error| said(&error))?;
        let compiled = self.environment.get_template(&name).map_err(|error| said(&error))?;
        let is_known = |name: &String| {
            names.contains(&name.as_str()) || self.environment.globals().any(|(global, _)| global == name)
        };
        let unknown = compiled.undeclared_variables(false).into_iter().filter(|name| !is_known(name)).min();
        match unknown {
            Some(unknown) => Err(format!("unknown name `{unknown}`: a template knows {}", quoted(names))),
            None => Ok(Template::Marked(name)),
        }
    }

    /// How many of the texts so far have markup: rendering any other runs nothing.
    pub(super) const fn marked(&self) -> usize {
        self.count
    }

    /// Renders one, or says why not.
    pub(super) fn render(&self, template: &Template, context: &Value) -> Result<String, String> {
        let name = match template {
            Template::Plain(text) => return Ok(text.clone()),
            Template::Marked(name) => name,
        };
        let compiled = self.environment.get_template(name).map_err(|error| said(&error))?;
        let mut page = Page::default();
        let rendered = compiled.render_captured_to(context, &mut page).map(drop);
        match rendered {
            _ if page.is_full => Err(format!("the template writes more than {RENDERED_BYTES_MAX} bytes")),
            Ok(()) => String::from_utf8(page.bytes).map_err(|error| error.to_string()),
            Err(error) => Err(said(&error)),
        }
    }
}

/// Names between backticks, as messages show them.
pub(super) fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

fn has_markup(source: &str) -> bool {
    ["{{", "{%", "{#"].iter().any(|mark| source.contains(mark))
}

/// How many operators and other marks a text with markup has, counted generously: no expression can be deeper.
fn marks(source: &str) -> usize {
    let words = source.split(|c: char| !c.is_ascii_alphabetic()).filter(|word| JOINING.contains(word));
    source.bytes().filter(u8::is_ascii_punctuation).count() + words.count()
}

/// An error without the name we gave the template.
fn said(error: &Error) -> String {
    match error.detail() {
        Some(detail) => format!("{}: {detail}", error.kind()),
        None => error.kind().to_string(),
    }
}

/// A writer that takes only so much.
#[derive(Debug, Default)]
struct Page {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for Page {
    fn write(&mut self, more: &[u8]) -> io::Result<usize> {
        if self.bytes.len() + more.len() > RENDERED_BYTES_MAX {
            self.is_full = true;
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        self.bytes.extend_from_slice(more);
        Ok(more.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
