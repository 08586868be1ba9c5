//! Changes a TOML text in place: everything else stays as it was written, comments and order included. A change may come
//! out wrong in a text that is written in an unusual way, so callers read the result before they keep it.

#[cfg(test)]
mod tests;

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Why a text cannot be changed in place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TomlTextError {
    /// It is not TOML.
    #[error(transparent)]
    Invalid(#[from] toml::de::Error),
    /// A key has another form than the change needs.
    #[error("{0}")]
    OtherForm(String),
}

type Result<T> = std::result::Result<T, TomlTextError>;

pub(super) struct TomlText(String);

/// A value and where it is written.
struct Written {
    /// Its key, or itself in a list.
    key: Range<usize>,
    /// Of a table below a header this is the header; of one that only dotted keys make, the first of them.
    value: Range<usize>,
    inner: Inner,
}

enum Inner {
    Plain,
    List(Vec<Written>),
    /// In the order of the text.
    Table(Vec<(String, Written)>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    /// A value on the line of its key: a plain one, `[…]` or `{…}`.
    Value,
    /// `[key]`, or a list of `[[key]]`.
    Headers,
    /// A table that is only part of other keys: `key.inner = 1`, `[key.inner]`.
    Implied,
}

const fn other_form(why: String) -> TomlTextError {
    TomlTextError::OtherForm(why)
}

impl TomlText {
    pub(super) const fn new(text: String) -> Self {
        Self(text)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn has(&self, path: &[&str]) -> Result<bool> {
        Ok(find(&self.parsed()?, path).is_some())
    }

    /// Gives a key this value, which is written in TOML.
    pub(super) fn set(&mut self, path: &[&str], value: &str) -> Result<()> {
        let root = self.parsed()?;
        if let Some(written) = find(&root, path) {
            if self.form(written) != Form::Value {
                return Err(other_form(format!("`{}` is a table", path.join("."))));
            }
            self.0.replace_range(written.value.clone(), value);
            return Ok(());
        }
        let Some((name, above)) = path.split_last() else {
            return Err(other_form("no key is named".to_owned()));
        };
        let line = format!("{} = {value}", key(name));
        if above.is_empty() {
            self.insert_at_root(&root, &line);
            return Ok(());
        }
        match find(&root, above) {
            Some(table) => self.insert_into(table, above, &line),
            None => self.append_section(&format!("[{}]", header(above)), &[line]),
        }
        Ok(())
    }

    /// Adds a table below its own header, or as the others in its parent are written.
    pub(super) fn add_table(&mut self, path: &[&str], entries: &[(&str, String)]) -> Result<()> {
        let root = self.parsed()?;
        let parent = path.split_last().and_then(|(_, above)| find(&root, above));
        let is_beside_lines = parent.is_some_and(|parent| {
            self.is_inline(parent) || children(parent).any(|child| self.form(child) != Form::Headers)
        });
        if is_beside_lines {
            return self.set(path, &inline_table(entries));
        }
        self.append_section(&format!("[{}]", header(path)), &lines(entries));
        Ok(())
    }

    /// Adds a value to a list, which may not exist yet.
    pub(super) fn add_item(&mut self, name: &str, value: &str) -> Result<()> {
        let root = self.parsed()?;
        let Some(list) = find(&root, &[name]) else { return self.set(&[name], &format!("[{value}]")) };
        let Inner::List(items) = &list.inner else {
            return Err(other_form(format!("`{name}` is not a list")));
        };
        let Some(last) = items.last() else {
            self.0.insert_str(list.value.start + 1, value);
            return Ok(());
        };
        let before = items
            .len()
            .checked_sub(2)
            .and_then(|at| items.get(at))
            .map_or(list.value.start, |item| item.value.end);
        let has_own_line = self.0[before..last.value.start].contains('\n');
        let comma = self.comma(last.value.end, list.value.end);
        let rest = comma.map_or(last.value.end, |comma| comma + 1);
        let line_end = self.0[rest..list.value.end].find('\n').map(|at| rest + at);
        match line_end.filter(|_| has_own_line) {
            // Behind the comment of the last one, on a line like its own.
            Some(end) => {
                let end = if self.0[..end].ends_with('\r') { end - 1 } else { end };
                let indent = self.indent(last.value.start).to_owned();
                let trailing = if comma.is_some() { "," } else { "" };
                self.0.insert_str(end, &format!("{}{indent}{value}{trailing}", self.line_break()));
                if comma.is_none() {
                    self.0.insert(last.value.end, ',');
                }
            }
            None => self.0.insert_str(last.value.end, &format!(", {value}")),
        }
        Ok(())
    }

    /// Adds a table to a list of tables, which may not exist yet.
    pub(super) fn add_table_item(&mut self, name: &str, entries: &[(&str, String)]) -> Result<()> {
        let root = self.parsed()?;
        if find(&root, &[name]).is_some_and(|list| self.form(list) == Form::Value) {
            return self.add_item(name, &inline_table(entries));
        }
        self.append_section(&format!("[[{}]]", key(name)), &lines(entries));
        Ok(())
    }

    /// Removes a value of a list, counted from 0.
    pub(super) fn remove_item(&mut self, name: &str, at: usize) -> Result<()> {
        let root = self.parsed()?;
        let list = find(&root, &[name]).ok_or_else(|| other_form(format!("there is no `{name}`")))?;
        let Inner::List(items) = &list.inner else {
            return Err(other_form(format!("`{name}` is not a list")));
        };
        let item = items.get(at).ok_or_else(|| other_form(format!("`{name}` has no value {at}")))?;
        if self.form(item) == Form::Headers {
            let mut gone = Vec::new();
            self.statements(item, &mut gone);
            self.cut_lines(gone);
            return Ok(());
        }
        let before = at.checked_sub(1).and_then(|before| items.get(before));
        self.cut_between(&item.value, before.map(|before| before.value.end), list.value.end);
        Ok(())
    }

    /// Removes a key and its value; nothing if it is not there.
    pub(super) fn remove(&mut self, path: &[&str]) -> Result<()> {
        let root = self.parsed()?;
        let Some(written) = find(&root, path) else { return Ok(()) };
        let parent = path.split_last().and_then(|(_, above)| find(&root, above));
        if let Some(parent) = parent.filter(|parent| self.is_inline(parent)) {
            let ends = children(parent).map(|child| child.value.end);
            let before = ends.filter(|end| *end <= written.key.start).max();
            let all = written.key.start..written.value.end;
            self.cut_between(&all, before, parent.value.end);
            return Ok(());
        }
        let mut gone = Vec::new();
        self.statements(written, &mut gone);
        self.cut_lines(gone);
        Ok(())
    }

    fn parsed(&self) -> Result<Written> {
        let table = DeTable::parse(&self.0)?;
        let inner = table_of(table.get_ref());
        Ok(Written { key: 0..0, value: 0..0, inner })
    }

    fn form(&self, written: &Written) -> Form {
        let starts_with = |start: &str| self.0[written.value.clone()].starts_with(start);
        match &written.inner {
            Inner::Plain => Form::Value,
            Inner::List(items) if items.iter().any(|item| self.form(item) == Form::Headers) => Form::Headers,
            Inner::List(_) => Form::Value,
            Inner::Table(_) if starts_with("{") => Form::Value,
            Inner::Table(_) if starts_with("[") => Form::Headers,
            Inner::Table(_) => Form::Implied,
        }
    }

    fn is_inline(&self, written: &Written) -> bool {
        matches!(written.inner, Inner::Table(_)) && self.form(written) == Form::Value
    }

    /// Before the first header: what follows one belongs to it.
    fn insert_at_root(&mut self, root: &Written, line: &str) {
        let last = children(root)
            .filter(|child| self.form(child) != Form::Headers)
            .filter_map(|child| self.line_statement_end(child))
            .max();
        if let Some(last) = last {
            self.insert_line_after(last, line);
            return;
        }
        let mut headers = Vec::new();
        self.statements(root, &mut headers);
        let first = headers.iter().map(|header| header.start).min();
        let Some(first) = first else {
            self.append_line(line);
            return;
        };
        let mut at = self.line_start(first);
        // The comment right above a header is about it.
        while at > 0 {
            let above = self.line_start(at - 1);
            if !self.0[above..at].trim_start().starts_with('#') {
                break;
            }
            at = above;
        }
        let line_break = self.line_break();
        self.0.insert_str(at, &format!("{line}{line_break}{line_break}"));
    }

    fn insert_into(&mut self, table: &Written, path: &[&str], line: &str) {
        if self.is_inline(table) {
            match children(table).map(|child| child.value.end).max() {
                Some(last) => self.0.insert_str(last, &format!(", {line}")),
                None => self.0.replace_range(table.value.clone(), &format!("{{ {line} }}")),
            }
            return;
        }
        let beside = children(table).filter(|child| self.form(child) != Form::Headers);
        let beside = beside.filter_map(|child| Some((self.line_statement_end(child)?, child.key.start)));
        if let Some((end, key)) = beside.max() {
            // What comes before a key on its line is the same for each of them: blanks, and the names above it.
            let before = self.0[self.line_start(key)..key].to_owned();
            self.insert_line_after(end, &format!("{before}{line}"));
            return;
        }
        match self.form(table) {
            Form::Headers => self.insert_line_after(table.value.end, line),
            Form::Value | Form::Implied => {
                self.append_section(&format!("[{}]", header(path)), &[line.to_owned()]);
            }
        }
    }

    /// The end of the last line that a key without a header takes; `None` if all of it is below headers.
    fn line_statement_end(&self, written: &Written) -> Option<usize> {
        match self.form(written) {
            Form::Value => Some(written.value.end),
            Form::Headers => None,
            Form::Implied => children(written).filter_map(|child| self.line_statement_end(child)).max(),
        }
    }

    /// The header and the key-value pairs that a value is written in.
    fn statements(&self, written: &Written, all: &mut Vec<Range<usize>>) {
        match (self.form(written), &written.inner) {
            (Form::Value, _) => all.push(written.key.start..written.value.end),
            (Form::Headers, Inner::List(items)) => items.iter().for_each(|item| self.statements(item, all)),
            (form, _) => {
                if form == Form::Headers {
                    all.push(written.value.clone());
                }
                children(written).for_each(|child| self.statements(child, all));
            }
        }
    }

    /// Removes whole lines.
    fn cut_lines(&mut self, mut ranges: Vec<Range<usize>>) {
        ranges.sort_by_key(|range| std::cmp::Reverse(range.start));
        for range in ranges {
            let (start, end) = (self.line_start(range.start), self.line_end(range.end));
            self.0.replace_range(start..end, "");
            // Of the blank lines around it, one stays.
            let before = self.0[..start]
                .strip_suffix('\n')
                .map_or("", |before| &before[self.line_start(before.len())..]);
            let next = start..self.line_end(start);
            if before.trim().is_empty() && self.0[next.clone()].trim().is_empty() {
                self.0.replace_range(next, "");
            }
        }
    }

    /// Removes a part of a list or an inline table with its comma, and its line if nothing else is on it.
    fn cut_between(&mut self, part: &Range<usize>, before: Option<usize>, container_end: usize) {
        let mut from = part.start;
        match (self.comma(part.end, container_end), before) {
            (Some(comma), _) => {
                let blanks =
                    self.0[comma + 1..].len() - self.0[comma + 1..].trim_start_matches([' ', '\t']).len();
                self.0.replace_range(part.start..comma + 1 + blanks, "");
            }
            (None, Some(before)) => {
                self.0.replace_range(part.clone(), "");
                if let Some(comma) = self.comma(before, part.start) {
                    let is_blank = self.0[comma + 1..part.start].trim().is_empty();
                    let end = if is_blank { part.start } else { comma + 1 };
                    self.0.replace_range(comma..end, "");
                    from -= end - comma;
                }
            }
            (None, None) => self.0.replace_range(part.clone(), ""),
        }
        let (start, end) = (self.line_start(from), self.line_end(from));
        if start > 0 && self.0[start..end].trim().is_empty() {
            self.0.replace_range(start..end, "");
        }
    }

    /// The comma after a value, within its list or table.
    fn comma(&self, from: usize, to: usize) -> Option<usize> {
        let mut is_comment = false;
        for (at, c) in self.0.get(from..to)?.char_indices() {
            match c {
                '\n' => is_comment = false,
                '#' => is_comment = true,
                ',' if !is_comment => return Some(from + at),
                _ => {}
            }
        }
        None
    }

    fn line_break(&self) -> &'static str {
        if self.0.contains("\r\n") { "\r\n" } else { "\n" }
    }

    fn line_start(&self, at: usize) -> usize {
        self.0[..at].rfind('\n').map_or(0, |end| end + 1)
    }

    /// After the line break.
    fn line_end(&self, at: usize) -> usize {
        self.0[at..].find('\n').map_or(self.0.len(), |end| at + end + 1)
    }

    fn indent(&self, at: usize) -> &str {
        let line = &self.0[self.line_start(at)..at];
        &line[..line.len() - line.trim_start().len()]
    }

    fn insert_line_after(&mut self, at: usize, line: &str) {
        let end = self.line_end(at);
        if end == self.0.len() {
            self.append_line(line);
            return;
        }
        let line_break = self.line_break();
        self.0.insert_str(end, &format!("{line}{line_break}"));
    }

    fn append_line(&mut self, line: &str) {
        let line_break = self.line_break();
        if !self.0.is_empty() && !self.0.ends_with('\n') {
            self.0 += line_break;
        }
        self.0 += line;
        self.0 += line_break;
    }

    fn append_section(&mut self, header: &str, lines: &[String]) {
        if !self.0.trim().is_empty() {
            self.append_line("");
        }
        self.append_line(header);
        lines.iter().for_each(|line| self.append_line(line));
    }
}

fn table_of(table: &DeTable<'_>) -> Inner {
    let mut entries: Vec<(String, Written)> =
        table.iter().map(|(key, value)| (key.get_ref().to_string(), written(key.span(), value))).collect();
    entries.sort_by_key(|(_, written)| written.key.start);
    Inner::Table(entries)
}

fn written(key: Range<usize>, value: &Spanned<DeValue<'_>>) -> Written {
    let inner = match value.get_ref() {
        DeValue::Array(items) => Inner::List(items.iter().map(|item| written(item.span(), item)).collect()),
        DeValue::Table(table) => table_of(table),
        DeValue::String(_)
        | DeValue::Integer(_)
        | DeValue::Float(_)
        | DeValue::Boolean(_)
        | DeValue::Datetime(_) => Inner::Plain,
    };
    Written { key, value: value.span(), inner }
}

fn find<'w>(root: &'w Written, path: &[&str]) -> Option<&'w Written> {
    path.iter().try_fold(root, |written, name| match &written.inner {
        Inner::Table(entries) => entries.iter().find(|(key, _)| key == name).map(|(_, inner)| inner),
        Inner::Plain | Inner::List(_) => None,
    })
}

fn children(written: &Written) -> impl Iterator<Item = &Written> {
    let entries = match &written.inner {
        Inner::Table(entries) => entries.as_slice(),
        Inner::Plain | Inner::List(_) => &[],
    };
    entries.iter().map(|(_, inner)| inner)
}

/// A text as a value.
pub(super) fn text(text: &str) -> String {
    toml::Value::from(text).to_string()
}

fn key(name: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !name.is_empty() && name.bytes().all(is_plain) { name.to_owned() } else { toml_basic(name) }
}

/// In double quotes on one line: a key cannot be written in several.
fn toml_basic(name: &str) -> String {
    let mut quoted = String::from('"');
    for c in name.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => quoted += &format!("\\u{:04x}", u32::from(c)),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

fn header(path: &[&str]) -> String {
    path.iter().map(|name| key(name)).collect::<Vec<_>>().join(".")
}

fn lines(entries: &[(&str, String)]) -> Vec<String> {
    entries.iter().map(|(name, value)| format!("{} = {value}", key(name))).collect()
}

fn inline_table(entries: &[(&str, String)]) -> String {
    format!("{{ {} }}", lines(entries).join(", "))
}
