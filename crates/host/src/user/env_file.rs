//! Files of variables, one `NAME=VALUE` on each line, as shells and other tools read them. What they would read in
//! different ways is refused. No error repeats a value.

use std::collections::BTreeMap;
use std::fmt;

/// Why a file of variables cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EnvFileError {
    line: usize,
    /// The variable, if its name could be read.
    name: Option<String>,
    why: &'static str,
}

impl fmt::Display for EnvFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { line, name, why } = self;
        write!(f, "line {line}: ")?;
        name.iter().try_for_each(|name| write!(f, "{name}: "))?;
        f.write_str(why)
    }
}

impl std::error::Error for EnvFileError {}

const IN_QUOTES: &str = "put the value in single quotes";

/// The variables of a text, by name.
pub fn parse(text: &str) -> Result<BTreeMap<String, String>, EnvFileError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut all = BTreeMap::new();
    for (at, line) in text.lines().enumerate() {
        let wrong =
            |name: Option<&str>, why| EnvFileError { line: at + 1, name: name.map(str::to_owned), why };
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let exported = line.strip_prefix("export").filter(|rest| rest.starts_with([' ', '\t']));
        let (name, value) = exported
            .unwrap_or(line)
            .trim_start()
            .split_once('=')
            .ok_or_else(|| wrong(None, "write NAME=VALUE"))?;
        if !is_name(name) {
            return Err(wrong(None, "the name before `=` may contain only letters, digits and `_`"));
        }
        let value = value_of(value).map_err(|why| wrong(Some(name), why))?;
        if all.insert(name.to_owned(), value).is_some() {
            return Err(wrong(Some(name), "it is set twice: delete one of them"));
        }
    }
    Ok(all)
}

fn is_name(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    !name.starts_with(|first: char| first.is_ascii_digit()) && !name.is_empty() && name.bytes().all(is_plain)
}

fn value_of(text: &str) -> Result<String, &'static str> {
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return Err("the value contains a control character");
    }
    let (value, rest) = match text.chars().next() {
        Some('\'') => {
            let (value, rest) = text[1..].split_once('\'').ok_or("the quote is not closed on this line")?;
            (value.to_owned(), rest)
        }
        Some('"') => double_quoted(&text[1..])?,
        Some(' ' | '\t') if !text.trim_start().starts_with('#') => return Err("remove the space after `=`"),
        Some(_) | None => {
            let end = text.find([' ', '\t']).unwrap_or(text.len());
            let (value, rest) = text.split_at(end);
            if value.contains(['$', '`', '\\', '"', '\'']) {
                return Err(IN_QUOTES);
            }
            (value.to_owned(), rest)
        }
    };
    let rest_is_comment = rest.starts_with([' ', '\t']) && rest.trim_start().starts_with('#');
    if rest.trim().is_empty() || rest_is_comment { Ok(value) } else { Err(IN_QUOTES) }
}

/// A value up to its closing quote, and what follows.
fn double_quoted(text: &str) -> Result<(String, &str), &'static str> {
    let mut value = String::new();
    let mut rest = text.char_indices();
    while let Some((at, c)) = rest.next() {
        match c {
            '"' => return Ok((value, &text[at + 1..])),
            '$' | '`' => return Err("variables are not expanded: put the value in single quotes"),
            '\\' => value.push(match rest.next() {
                Some((_, 'n')) => '\n',
                Some((_, 't')) => '\t',
                Some((_, c @ ('\\' | '"' | '$' | '`'))) => c,
                Some(_) | None => {
                    return Err("unknown escape in double quotes: put the value in single quotes");
                }
            }),
            c => value.push(c),
        }
    }
    Err("the quote is not closed on this line")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_forms_are_read() {
        let text = "\u{feff}# keys\r\n\nA=sk-1#2\r\n export B='it # is $5' # mine\nC=\"a \\\"b\\\"\\n\\$\" \nD=\n_e2=x # no\nF= # empty\n";
        let read: Vec<(String, String)> = parse(text).unwrap().into_iter().collect();
        let expected =
            [("A", "sk-1#2"), ("B", "it # is $5"), ("C", "a \"b\"\n$"), ("D", ""), ("F", ""), ("_e2", "x")];
        assert_eq!(read, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn what_tools_read_differently_is_refused_and_no_value_is_repeated() {
        let wrong = [
            "A",
            "export",
            "1A=secret",
            "A B=secret",
            "A =secret",
            "A= secret",
            "A=sec ret",
            "A='secret",
            "A=\"secret",
            "A=\"sec\\ret\"",
            "A=\"$secret\"",
            "A=$secret",
            "A=sec`ret`",
            "A='secret'x",
            "A=sec\u{1b}ret",
            "A=secret\nA=secret",
            "A: secret",
            "=secret",
            "é=secret",
        ];
        let told: Vec<String> = wrong.iter().map(|text| parse(text).unwrap_err().to_string()).collect();
        assert!(told.iter().all(|told| !told.contains("sec")), "{told:?}");
        insta::assert_snapshot!(told.join("\n"), @r"
        line 1: write NAME=VALUE
        line 1: write NAME=VALUE
        line 1: the name before `=` may contain only letters, digits and `_`
        line 1: the name before `=` may contain only letters, digits and `_`
        line 1: the name before `=` may contain only letters, digits and `_`
        line 1: A: remove the space after `=`
        line 1: A: put the value in single quotes
        line 1: A: the quote is not closed on this line
        line 1: A: the quote is not closed on this line
        line 1: A: unknown escape in double quotes: put the value in single quotes
        line 1: A: variables are not expanded: put the value in single quotes
        line 1: A: put the value in single quotes
        line 1: A: put the value in single quotes
        line 1: A: put the value in single quotes
        line 1: A: the value contains a control character
        line 2: A: it is set twice: delete one of them
        line 1: write NAME=VALUE
        line 1: the name before `=` may contain only letters, digits and `_`
        line 1: the name before `=` may contain only letters, digits and `_`
        ");
    }
}
