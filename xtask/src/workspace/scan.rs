//! One walk over a file's tokens, for what the syntax tree does not show: comments, and the inside of macros.
//!
//! Names are resolved through the file's own `use` lines and no further; the compiler does the rest.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Literal, Span, TokenStream, TokenTree};

use super::import::{Import, imports};

/// What a file mentions and says, each list in the order of the file.
#[derive(Default)]
pub struct Scan {
    /// Every name or path.
    pub mentions: Vec<Mention>,
    /// Every string literal, by its value.
    pub strings: Vec<Spot>,
    /// Every line of every comment, including doc comments.
    pub comments: Vec<Spot>,
}

/// Text and where it is.
#[derive(Debug, PartialEq, Eq)]
pub struct Spot {
    /// The line in the file.
    pub line: usize,
    /// The text itself.
    pub text: String,
}

/// A path such as `std::time::Instant::now`, with its imported head written out.
///
/// Other roles of a name are marked: `.name` is a method or field, `name!` a macro, `#name` an attribute,
/// `fn name` a definition.
#[derive(Debug, PartialEq, Eq)]
pub struct Mention {
    /// The line in the file.
    pub line: usize,
    /// The path, joined by `::`.
    pub path: String,
}

impl Mention {
    /// Whether the path holds the parts of `pattern` in a row; or, for a pattern such as `std::env::*`,
    /// starts with them and continues.
    pub fn is(&self, pattern: &str) -> bool {
        match pattern.strip_suffix('*') {
            Some(module) => self.path.starts_with(module),
            None => format!("::{}::", self.path).contains(&format!("::{pattern}::")),
        }
    }
}

pub(super) fn scan(text: &str, tokens: TokenStream) -> Scan {
    let mut scanner = Scanner { text, seen: 0, aliases: BTreeMap::new(), scan: Scan::default() };
    scanner.stream(tokens, Inside::Code);
    scanner.comments_until(text.len());
    // A name may be used above the line that imports it, so all lines come first.
    for mention in &mut scanner.scan.mentions {
        let head_end = mention.path.find("::").unwrap_or(mention.path.len());
        if let Some(full) = scanner.aliases.get(&mention.path[..head_end]) {
            mention.path.replace_range(..head_end, full);
        }
    }
    scanner.scan
}

struct Scanner<'a> {
    text: &'a str,
    /// The end of the last token. What lies between it and the next token is blank or a comment.
    seen: usize,
    /// What the file calls a path, and the path.
    aliases: BTreeMap<String, String>,
    scan: Scan,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Code,
    Attribute,
}

impl Scanner<'_> {
    fn stream(&mut self, stream: TokenStream, inside: Inside) {
        let tokens: Vec<TokenTree> = stream.into_iter().collect();
        let mut at = 0;
        while let Some(token) = tokens.get(at) {
            at = match token {
                TokenTree::Ident(word) if word == "use" => self.import(&tokens, at),
                TokenTree::Ident(_) => self.path(&tokens, at, inside),
                TokenTree::Literal(literal) => self.literal(literal, &tokens, at),
                TokenTree::Group(group) => {
                    let inside = if is_attribute(&tokens, at) { Inside::Attribute } else { Inside::Code };
                    self.token(group.span_open());
                    self.stream(group.stream(), inside);
                    self.token(group.span_close());
                    at + 1
                }
                TokenTree::Punct(punct) if punct.as_char() == '#' && punct.span().byte_range().len() > 1 => {
                    self.doc_comment(punct.span());
                    // The parser turned it into `#[doc = …]` or `#![doc = …]`, all at the same place.
                    at + if is_punct(tokens.get(at + 1), '!') { 3 } else { 2 }
                }
                TokenTree::Punct(punct) => {
                    self.token(punct.span());
                    at + 1
                }
            };
        }
    }

    /// Reads the path that starts at `start`; answers where the next token is.
    fn path(&mut self, tokens: &[TokenTree], start: usize, inside: Inside) -> usize {
        let mut path = String::new();
        let mut at = start;
        while let Some(TokenTree::Ident(part)) = tokens.get(at) {
            self.token(part.span());
            path += &part.to_string();
            at += 1;
            let colons = is_punct(tokens.get(at), ':') && is_punct(tokens.get(at + 1), ':');
            if !(colons && matches!(tokens.get(at + 2), Some(TokenTree::Ident(_)))) {
                break;
            }
            path += "::";
            at += 2;
        }
        let before = |steps: usize| start.checked_sub(steps).and_then(|at| tokens.get(at));
        let is_member = is_punct(before(1), '.') && !is_punct(before(2), '.');
        let is_macro =
            is_punct(tokens.get(at), '!') && matches!(tokens.get(at + 1), Some(TokenTree::Group(_)));
        let path = if is_member {
            format!(".{path}")
        } else if is_word(before(1), "fn") {
            format!("fn {path}")
        } else if inside == Inside::Attribute && start == 0 {
            format!("#{path}")
        } else if is_macro {
            format!("{path}!")
        } else {
            path
        };
        let line = tokens.get(start).map_or(0, |token| token.span().start().line);
        self.scan.mentions.push(Mention { line, path });
        at
    }

    /// Reads the `use` line that starts at `start`; answers where the next token is.
    fn import(&mut self, tokens: &[TokenTree], start: usize) -> usize {
        let length = tokens[start..].iter().position(|token| is_punct(Some(token), ';'));
        let end = length.map_or(tokens.len(), |length| start + length + 1);
        self.token(tokens[start].span());
        let mentions_before = self.scan.mentions.len();
        self.stream(tokens[start + 1..end].iter().cloned().collect(), Inside::Code);
        // What looks like a `use` line and is none, as in a macro's pattern, keeps its plain mentions.
        if let Ok(item) = syn::parse2::<syn::ItemUse>(tokens[start..end].iter().cloned().collect()) {
            self.scan.mentions.truncate(mentions_before);
            for Import { line, path, alias } in imports(&item) {
                self.scan.mentions.push(Mention { line, path: path.clone() });
                self.aliases.extend(alias.map(|alias| (alias, path)));
            }
        }
        end
    }

    fn literal(&mut self, literal: &Literal, tokens: &[TokenTree], at: usize) -> usize {
        self.token(literal.span());
        let line = literal.span().start().line;
        let is_member = at.checked_sub(1).is_some_and(|before| is_punct(tokens.get(before), '.'));
        let value = syn::Lit::new(literal.clone());
        if let syn::Lit::Str(string) = &value {
            self.scan.strings.push(Spot { line, text: string.value() });
        }
        // `pair.0.1` has a token `0.1` that is not a number.
        if let Some(float) = float_type(&value).filter(|_| !is_member) {
            self.scan.mentions.push(Mention { line, path: float.to_owned() });
        }
        at + 1
    }

    fn doc_comment(&mut self, span: Span) {
        self.comments_until(span.byte_range().start);
        self.comments_until(span.byte_range().end);
    }

    fn token(&mut self, span: Span) {
        self.comments_until(span.byte_range().start);
        self.seen = self.seen.max(span.byte_range().end);
    }

    /// Takes everything from the last token to `end` as comment, line by line.
    fn comments_until(&mut self, end: usize) {
        let Some(gap) = self.text.get(self.seen..end) else { return };
        if !gap.trim().is_empty() {
            let first = super::line_at(self.text, self.seen);
            let lines = gap.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            let spots = lines.map(|(index, line)| Spot { line: first + index, text: line.trim().to_owned() });
            self.scan.comments.extend(spots);
        }
        self.seen = end;
    }
}

/// The type of a literal that is a float, said or not.
fn float_type(value: &syn::Lit) -> Option<&str> {
    if let syn::Lit::Float(number) = value {
        return Some(number.suffix()).filter(|suffix| !suffix.is_empty()).or(Some("f64"));
    }
    // `1f32` has no point, so its digits are those of an integer.
    let syn::Lit::Int(number) = value else { return None };
    Some(number.suffix()).filter(|suffix| suffix.starts_with('f'))
}

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_word(token: Option<&TokenTree>, wanted: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(word)) if word == wanted)
}

/// `#[…]` or `#![…]`.
fn is_attribute(tokens: &[TokenTree], at: usize) -> bool {
    let before = |steps: usize| at.checked_sub(steps).and_then(|at| tokens.get(at));
    let is_bracket =
        matches!(tokens.get(at), Some(TokenTree::Group(group)) if group.delimiter() == Delimiter::Bracket);
    is_bracket && (is_punct(before(1), '#') || is_punct(before(1), '!') && is_punct(before(2), '#'))
}
