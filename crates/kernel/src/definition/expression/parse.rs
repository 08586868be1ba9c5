//! Reads a source. It goes over the text once, from left to right, and nests at most as deep as the limit says.

use serde_json::{Number, Value};

use super::filter::Filter;
use super::node::{Base, Chain, Compare, Comparison, Link, LinkKind, Node, Span};
use super::{ExpressionError, Piece};
use crate::primitives::{cut, limit};

/// Longest part of a source that an error repeats, in bytes.
const FOUND_BYTES_MAX: usize = 40;
/// Words of the language, which name no value.
const KEYWORDS: [&str; 14] =
    ["and", "else", "False", "false", "if", "in", "is", "None", "none", "not", "null", "or", "True", "true"];
const OPERAND: &str = "expected a name, a text in quotes, a number, `true`, `false`, `none`, `[` or `(`";
const AFTER_OPERAND: &str = "expected an operator (`==`, `!=`, `<`, `<=`, `>`, `>=`, `in`, `not in`, `is defined`, `and`, `or`), \
                             a filter as in `| length`, or the end of the expression";

type Parsing<T> = Result<T, ExpressionError>;

pub(super) struct Parser<'s> {
    source: &'s str,
    at: usize,
    depth: usize,
    nodes: usize,
    names: Vec<String>,
}

impl<'s> Parser<'s> {
    pub(super) fn new(source: &'s str, bytes_max: usize) -> Parsing<Self> {
        if source.len() > bytes_max {
            return Err(ExpressionError {
                at: bytes_max,
                found: format!("{} bytes", source.len()),
                expected: format!("at most {bytes_max} bytes are allowed"),
            });
        }
        Ok(Self { source, at: 0, depth: 0, nodes: 0, names: Vec::new() })
    }

    pub(super) fn into_names(self) -> Vec<String> {
        self.names
    }

    /// The whole source as one expression.
    pub(super) fn expression(&mut self) -> Parsing<Node> {
        self.skip_space();
        if self.rest().starts_with("{{") {
            return Err(self.error("this is an expression already: write it without `{{` and `}}`"));
        }
        let node = self.or()?;
        if self.rest().is_empty() { Ok(node) } else { Err(self.after_operand()) }
    }

    /// The whole source as text with expressions.
    pub(super) fn template(&mut self) -> Parsing<Vec<Piece>> {
        let mut pieces = Vec::new();
        while !self.rest().is_empty() {
            let rest = self.rest();
            let mark = rest
                .match_indices('{')
                .map(|(at, _)| at)
                .find(|at| matches!(rest.as_bytes().get(at + 1), Some(b'{' | b'%' | b'#')));
            let end = self.at + mark.unwrap_or(rest.len());
            if end > self.at {
                pieces.push(Piece::Text(self.at..end));
                self.at = end;
            }
            if mark.is_some() {
                pieces.push(Piece::Expression(self.placeholder()?));
            }
        }
        Ok(pieces)
    }

    /// `{{ expression }}`.
    fn placeholder(&mut self) -> Parsing<Node> {
        if !self.eat("{{") {
            let mark = &self.rest()[..2];
            return Err(self.error(&format!(
                "a template has `{{{{ expression }}}}` and nothing else; for the characters write `{{{{ '{mark}' }}}}`"
            )));
        }
        if self.rest().starts_with(['-', '+']) {
            return Err(self.error("white space is never trimmed: write a space after `{{`"));
        }
        let node = self.or()?;
        if self.eat("}}") {
            return Ok(node);
        }
        if self.rest().is_empty() {
            return Err(self.error("expected `}}`"));
        }
        if self.rest().starts_with("-}}") || self.rest().starts_with("+}}") {
            return Err(self.error("white space is never trimmed: write `}}`"));
        }
        Err(self.after_operand())
    }

    fn or(&mut self) -> Parsing<Node> {
        self.list_of("or", Self::and, Node::Or)
    }

    fn and(&mut self) -> Parsing<Node> {
        self.list_of("and", Self::not, Node::And)
    }

    fn list_of(
        &mut self,
        word: &str,
        part: fn(&mut Self) -> Parsing<Node>,
        whole: fn(Vec<Node>) -> Node,
    ) -> Parsing<Node> {
        let first = part(self)?;
        if self.word() != word {
            return Ok(first);
        }
        self.count()?;
        let mut parts = vec![first];
        while self.eat_word(word) {
            parts.push(part(self)?);
        }
        Ok(whole(parts))
    }

    fn not(&mut self) -> Parsing<Node> {
        self.skip_space();
        if !self.eat_word("not") {
            return self.compare();
        }
        self.nested(|parser| Ok(Node::Not(Box::new(parser.not()?))))
    }

    fn compare(&mut self) -> Parsing<Node> {
        let left = self.chain()?;
        let Some(by) = self.comparison()? else { return Ok(left) };
        self.count()?;
        let right = self.chain()?;
        let before = self.at;
        if self.comparison()?.is_some() {
            self.at = before;
            return Err(self.error("one comparison at a time: join two with `and`, as in `1 < a and a < 5`"));
        }
        let span = left.span().start..right.span().end;
        Ok(Node::Compare(Box::new(Compare { left, by, right, span })))
    }

    fn comparison(&mut self) -> Parsing<Option<Comparison>> {
        const SIGNS: [(&str, Comparison); 6] = [
            ("==", Comparison::Equal),
            ("!=", Comparison::NotEqual),
            ("<=", Comparison::LessOrEqual),
            (">=", Comparison::GreaterOrEqual),
            ("<", Comparison::Less),
            (">", Comparison::Greater),
        ];
        if let Some((_, by)) = SIGNS.into_iter().find(|(sign, _)| self.eat(sign)) {
            return Ok(Some(by));
        }
        if self.eat_word("in") {
            return Ok(Some(Comparison::In));
        }
        if !self.eat_word("not") {
            return Ok(None);
        }
        if self.eat_word("in") {
            Ok(Some(Comparison::NotIn))
        } else {
            Err(self.error("expected `in` after `not`"))
        }
    }

    /// A value, its keys, and then its filters and tests.
    fn chain(&mut self) -> Parsing<Node> {
        self.skip_space();
        self.count()?;
        let start = self.at;
        let base = self.base()?;
        let base_span = start..self.at;
        self.skip_space();
        let mut links = Vec::new();
        while let Some(kind) = self.key()? {
            self.count()?;
            links.push(Link { kind, span: start..self.at });
            self.skip_space();
        }
        while let Some(kind) = self.filter_or_test()? {
            self.count()?;
            links.push(Link { kind, span: start..self.at });
            self.skip_space();
        }
        Ok(Node::Chain(Chain { base, base_span, links }))
    }

    fn base(&mut self) -> Parsing<Base> {
        if self.rest().starts_with('(') {
            self.eat("(");
            let inner = self.nested(Self::or)?;
            return if self.eat_tight(")") {
                Ok(Base::Group(Box::new(inner)))
            } else {
                Err(self.unclosed(")"))
            };
        }
        if let Some(constant) = self.constant()? {
            return Ok(Base::Constant(constant));
        }
        let word = self.word();
        if word.is_empty() || KEYWORDS.contains(&word) {
            return Err(self.error(OPERAND));
        }
        self.at += word.len();
        let known = self.names.iter().position(|name| name == word);
        Ok(Base::Name(known.unwrap_or_else(|| {
            self.names.push(word.to_owned());
            self.names.len() - 1
        })))
    }

    /// `.key`, `.0`, `[index]`.
    fn key(&mut self) -> Parsing<Option<LinkKind>> {
        if self.eat(".") {
            let word = self.word();
            if !word.is_empty() {
                self.at += word.len();
                return Ok(Some(LinkKind::Key(word.to_owned())));
            }
            let digits = self.digits();
            if digits.is_empty() {
                return Err(
                    self.error("expected a key or an index after `.`; for other keys write `['key']`")
                );
            }
            let start = self.at;
            let index: u32 =
                digits.parse().map_err(|_| self.error(&format!("an index is at most {}", u32::MAX)))?;
            self.at += digits.len();
            let constant = Base::Constant(Value::from(index));
            let chain = Chain { base: constant, base_span: start..self.at, links: Vec::new() };
            return Ok(Some(LinkKind::Index(Node::Chain(chain))));
        }
        if !self.eat("[") {
            return Ok(None);
        }
        if self.rest().starts_with(':') {
            return Err(self.error("there are no slices: write one index, as in `name[0]`"));
        }
        let index = self.nested(Self::or)?;
        if self.rest().starts_with(':') {
            return Err(self.error("there are no slices: write one index, as in `name[0]`"));
        }
        if self.eat_tight("]") { Ok(Some(LinkKind::Index(index))) } else { Err(self.unclosed("]")) }
    }

    fn filter_or_test(&mut self) -> Parsing<Option<LinkKind>> {
        if self.rest().starts_with("||") {
            return Err(self.error("write `or`"));
        }
        if self.eat("|") {
            return self.filter().map(Some);
        }
        if !self.eat_word("is") {
            return Ok(None);
        }
        let negated = self.eat_word("not");
        if self.word() != "defined" {
            return Err(self.error("expected `defined`; compare with `== none` for none"));
        }
        self.at += "defined".len();
        Ok(Some(if negated { LinkKind::IsNotDefined } else { LinkKind::IsDefined }))
    }

    fn filter(&mut self) -> Parsing<LinkKind> {
        let name = self.word();
        let Some(filter) = Filter::named(name) else {
            let instead = if name == "tojson" { "write `json`; all" } else { "the" };
            return Err(self.error(&format!("{instead} filters are {}", Filter::names())));
        };
        self.at += name.len();
        let end = self.at;
        self.skip_space();
        let mut arguments = Vec::new();
        if self.eat("(") {
            while !self.rest().starts_with(')') {
                arguments.push(self.nested(Self::or)?);
                if !self.eat(",") {
                    break;
                }
            }
            if !self.eat_tight(")") {
                return Err(self.unclosed(")"));
            }
        } else {
            self.at = end;
        }
        let (fewest, most) = filter.arguments();
        if !(fewest..=most).contains(&arguments.len()) {
            self.at = end - name.len();
            return Err(
                self.error(&format!("`{name}` takes at most {most} arguments, not {}", arguments.len()))
            );
        }
        Ok(LinkKind::Filter(filter, arguments))
    }

    /// A constant, if one starts here.
    fn constant(&mut self) -> Parsing<Option<Value>> {
        match self.rest().as_bytes().first() {
            Some(b'\'' | b'"') => self.text().map(|text| Some(Value::String(text))),
            Some(b'0'..=b'9' | b'-') => self.number().map(|number| Some(Value::Number(number))),
            Some(b'[') => self.list().map(Some),
            _ => {
                let constant = match self.word() {
                    "true" | "True" => Value::Bool(true),
                    "false" | "False" => Value::Bool(false),
                    "none" | "None" => Value::Null,
                    _ => return Ok(None),
                };
                self.at += self.word().len();
                Ok(Some(constant))
            }
        }
    }

    fn list(&mut self) -> Parsing<Value> {
        self.eat("[");
        let mut items = Vec::new();
        while !self.rest().starts_with(']') {
            self.count()?;
            let item = self.nested(Self::constant)?;
            items.push(item.ok_or_else(|| {
                self.error(
                    "a list holds constants: texts in quotes, numbers, `true`, `false`, `none` and lists",
                )
            })?);
            self.skip_space();
            if !self.eat(",") {
                break;
            }
        }
        if self.eat_tight("]") { Ok(Value::Array(items)) } else { Err(self.unclosed("]")) }
    }

    fn number(&mut self) -> Parsing<Number> {
        let start = self.at;
        if self.rest().starts_with('-') {
            self.at += 1;
        }
        let digits = self.digits();
        if digits.is_empty() {
            self.at = start;
            return Err(self.error(&format!("there is no arithmetic: {OPERAND}")));
        }
        self.at += digits.len();
        let mut decimal = false;
        if self.rest().starts_with('.') {
            self.at += 1;
            let fraction = self.digits();
            self.at += fraction.len();
            decimal = !fraction.is_empty();
            if !decimal {
                return Err(self.error("expected digits after the point"));
            }
        }
        if self.rest().starts_with(|next: char| next.is_alphanumeric() || next == '_') {
            return Err(
                self.error("a number is written with digits and at most one point, as in `10` or `0.5`")
            );
        }
        let written = &self.source[start..self.at];
        let number = if decimal {
            serde_json::from_str(written).ok()
        } else {
            written
                .parse::<i64>()
                .map(Number::from)
                .or_else(|_| written.parse::<u64>().map(Number::from))
                .ok()
        };
        number.ok_or_else(|| {
            self.at = start;
            self.error(&format!("an integer is from {} to {}", i64::MIN, u64::MAX))
        })
    }

    fn text(&mut self) -> Parsing<String> {
        let start = self.at;
        let mut text = String::new();
        let mut letters = self.rest().char_indices();
        let quote = letters.next().map(|(_, quote)| quote);
        while let Some((at, letter)) = letters.next() {
            if Some(letter) == quote {
                self.at = start + at + letter.len_utf8();
                return Ok(text);
            }
            if letter != '\\' {
                text.push(letter);
                continue;
            }
            text.push(match letters.next() {
                Some((_, quoted @ ('\\' | '\'' | '"'))) => quoted,
                Some((_, 'n')) => '\n',
                Some((_, 'r')) => '\r',
                Some((_, 't')) => '\t',
                _ => {
                    self.at = start + at;
                    return Err(self.error("the escapes are `\\\\`, `\\'`, `\\\"`, `\\n`, `\\r` and `\\t`"));
                }
            });
        }
        let missing = if quote == Some('"') {
            "expected `\"` at the end of this text"
        } else {
            "expected `'` at the end of this text"
        };
        Err(self.error(missing))
    }

    /// One level deeper.
    fn nested<T>(&mut self, inner: impl FnOnce(&mut Self) -> Parsing<T>) -> Parsing<T> {
        if self.depth == limit::EXPRESSION_DEPTH_MAX {
            return Err(
                self.error(&format!("at most {} levels of nesting are allowed", limit::EXPRESSION_DEPTH_MAX))
            );
        }
        self.depth += 1;
        self.count()?;
        self.skip_space();
        let result = inner(self);
        self.depth -= 1;
        result
    }

    fn count(&mut self) -> Parsing<()> {
        self.nodes += 1;
        if self.nodes <= limit::EXPRESSION_NODES_MAX {
            return Ok(());
        }
        Err(self.error(&format!(
            "at most {} names, constants and operators are allowed",
            limit::EXPRESSION_NODES_MAX
        )))
    }

    fn rest(&self) -> &'s str {
        &self.source[self.at..]
    }

    fn skip_space(&mut self) {
        self.at += self.rest().bytes().take_while(u8::is_ascii_whitespace).count();
    }

    /// The name or keyword that starts here, or nothing.
    fn word(&self) -> &'s str {
        let rest = self.rest();
        let long = rest.bytes().take_while(|byte| byte.is_ascii_alphanumeric() || *byte == b'_').count();
        if rest.starts_with(|first: char| first.is_ascii_digit()) { "" } else { &rest[..long] }
    }

    fn digits(&self) -> &'s str {
        let rest = self.rest();
        &rest[..rest.bytes().take_while(u8::is_ascii_digit).count()]
    }

    /// Takes a sign and the white space after it.
    fn eat(&mut self, sign: &str) -> bool {
        let found = self.eat_tight(sign);
        // White space after `}}` belongs to the text of the template.
        if found && sign != "}}" && sign != "{{" {
            self.skip_space();
        }
        found
    }

    /// Takes a sign only.
    fn eat_tight(&mut self, sign: &str) -> bool {
        let found = self.rest().starts_with(sign);
        self.at += if found { sign.len() } else { 0 };
        found
    }

    /// Takes a keyword and the white space after it.
    fn eat_word(&mut self, word: &str) -> bool {
        let found = self.word() == word;
        if found {
            self.at += word.len();
            self.skip_space();
        }
        found
    }

    fn unclosed(&self, sign: &str) -> ExpressionError {
        if self.rest().is_empty() || self.rest().starts_with("}}") {
            self.error(&format!("expected `{sign}`"))
        } else {
            self.after_operand()
        }
    }

    /// What follows a whole operand cannot follow one.
    fn after_operand(&self) -> ExpressionError {
        let remedy = match self.rest().as_bytes() {
            [b'+' | b'*' | b'/' | b'%' | b'~' | b'-', ..] => {
                "there is no arithmetic and no joining of texts; in a template write `{{ a }}{{ b }}`"
            }
            [b'(', ..] => "nothing can be called: use a filter, as in `name | length`",
            [b'=', ..] => "write `==` to compare",
            [b'&', ..] => "write `and`",
            [b'!', ..] => "write `not` or `!=`",
            [b'.' | b'[', ..] => "put what is before it in parentheses, as in `(names | first).key`",
            _ if matches!(self.word(), "if" | "else") => "there is no `if`: use `and`, `or` and `default`",
            _ => AFTER_OPERAND,
        };
        self.error(remedy)
    }

    fn error(&self, expected: &str) -> ExpressionError {
        let word = self.word();
        let found = match self.rest().chars().next() {
            None => "the end".to_owned(),
            Some(_) if !word.is_empty() => format!("`{}`", cut(word, FOUND_BYTES_MAX)),
            Some(first) => format!("`{}`", self.sign(first)),
        };
        ExpressionError { at: self.at, found, expected: expected.to_owned() }
    }

    /// A sign of one or two characters.
    fn sign(&self, first: char) -> String {
        const LONG: [&str; 13] =
            ["{{", "}}", "{%", "{#", "==", "!=", "<=", ">=", "**", "//", "&&", "||", "->"];
        let rest = self.rest();
        LONG.into_iter().find(|sign| rest.starts_with(sign)).map_or_else(|| first.to_string(), str::to_owned)
    }
}

/// The text at a place of a source, shortened.
pub(super) fn excerpt(source: &str, span: &Span) -> String {
    cut(source.get(span.clone()).unwrap_or_default(), FOUND_BYTES_MAX * 2)
}
