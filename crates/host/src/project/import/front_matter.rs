//! The keys at the beginning of a Markdown file, between two lines of dashes. They are read line by line: what people write
//! there often is no valid YAML, such as a description with a colon in it.

/// A key, its value, and its line from 1 on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FrontKey {
    pub(super) key: String,
    pub(super) value: String,
    /// The items, if it is a list.
    pub(super) items: Vec<String>,
    pub(super) line: usize,
}

/// A file in its two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct FrontMatter {
    pub(super) keys: Vec<FrontKey>,
    pub(super) body: String,
    /// The line at which the body begins.
    pub(super) body_line: usize,
}

/// Most keys that are read.
const KEYS_MAX: usize = 64;

impl FrontMatter {
    pub(super) fn read(text: &str) -> Self {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let lines: Vec<&str> = text.lines().collect();
        let end = lines.iter().skip(1).position(|line| line.trim_end() == "---").map(|at| at + 1);
        let (Some(end), Some("---")) = (end, lines.first().map(|line| line.trim_end())) else {
            return Self { keys: Vec::new(), body: text.to_owned(), body_line: 1 };
        };
        let mut keys: Vec<FrontKey> = Vec::new();
        for (at, line) in lines.iter().enumerate().take(end).skip(1) {
            let is_within = line.starts_with([' ', '\t']) || line.starts_with('-');
            if line.trim().is_empty() || line.trim_start().starts_with('#') {
                continue;
            }
            if let Some(last) = keys.last_mut().filter(|_| is_within) {
                last.continue_with(line.trim());
            } else if let Some((key, value)) = line.split_once(':')
                && keys.len() < KEYS_MAX
            {
                keys.push(FrontKey::new(key, value, at + 1));
            }
        }
        let body = lines[end + 1..].join("\n");
        Self { keys, body, body_line: end + 2 }
    }

    pub(super) fn get(&self, key: &str) -> Option<&FrontKey> {
        self.keys.iter().find(|known| known.key == key)
    }
}

impl FrontKey {
    fn new(key: &str, value: &str, line: usize) -> Self {
        let value = value.trim();
        let list = value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
        let items = list.map(words).unwrap_or_default();
        let is_block = matches!(value, "|" | ">" | "|-" | ">-");
        let value = if is_block || list.is_some() { String::new() } else { unquoted(value) };
        Self { key: key.trim().to_owned(), value, items, line }
    }

    fn continue_with(&mut self, line: &str) {
        match line.strip_prefix('-') {
            Some(item) if self.value.is_empty() => self.items.push(unquoted(item.trim())),
            Some(_) | None => {
                if !self.value.is_empty() {
                    self.value.push(' ');
                }
                self.value.push_str(line);
            }
        }
    }

    /// Its items, or the words between commas.
    pub(super) fn list(&self) -> Vec<String> {
        if self.items.is_empty() { words(&self.value) } else { self.items.clone() }
    }
}

/// What stands between commas that are in no parentheses.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut depth) = (vec![String::new()], 0_usize);
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match words.last_mut() {
            Some(_) if letter == ',' && depth == 0 => words.push(String::new()),
            Some(word) => word.push(letter),
            None => {}
        }
    }
    words.iter().map(|word| unquoted(word.trim())).filter(|word| !word.is_empty()).collect()
}

fn unquoted(text: &str) -> String {
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner.replace("\\n", "\n").replace("\\\"", "\"");
        }
    }
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_people_write_them() {
        let text = "---\nname: reviewer\ndescription: Use it: \"always\", <example>a: b</example>\ntools: Read, Bash(git diff:*, git log:*), 'Grep'\nskills:\n  - one\n  - \"two\"\nlong: >\n  more\n  words\n---\n\nYou review.\n";
        let read = FrontMatter::read(text);
        assert_eq!(read.get("description").unwrap().value, "Use it: \"always\", <example>a: b</example>");
        let tools = read.get("tools").unwrap();
        assert_eq!(
            (tools.list(), tools.line),
            (vec!["Read".into(), "Bash(git diff:*, git log:*)".into(), "Grep".into()], 4)
        );
        assert_eq!(read.get("skills").unwrap().list(), ["one", "two"]);
        assert_eq!(read.get("long").unwrap().value, "more words");
        assert_eq!((read.body.as_str(), read.body_line), ("\nYou review.", 12));
    }

    #[test]
    fn a_file_without_keys_is_its_body() {
        for text in ["You review.", "---\nname: x\nno end", "", "---"] {
            let read = FrontMatter::read(text);
            assert_eq!((read.keys.len(), read.body.as_str()), (0, text));
        }
    }
}
