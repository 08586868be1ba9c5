//! HTML as text that reads well: headings, lists, links and the text itself, in time that grows with its length. It is not
//! a parser of HTML; whatever it is given, it makes text of it.

use reqwest::Url;

/// What is not text: everything up to their end tag is left out.
const UNSHOWN: [&str; 8] = ["script", "style", "template", "noscript", "svg", "iframe", "object", "math"];
/// What begins on a line of its own.
const BLOCKS: [&str; 26] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "dd",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "table",
    "title",
    "tr",
    "ul",
    "html",
];
/// Line breaks in a row that a page may have outside of `pre`.
const BREAKS_MAX: usize = 3;
const LINK_BYTES_MAX: usize = 500;
/// Of all addresses together: a page of links is many times longer as text. Beyond it, links are only their text.
const LINKS_BYTES_MAX: usize = 1 << 20;
const ENTITY_BYTES_MAX: usize = 12;

/// The text of a page that was found at `base`.
pub(super) fn readable(html: &str, base: &Url) -> String {
    let mut page =
        Page { base, text: String::with_capacity(html.len() / 2), link: None, links_bytes: 0, is_pre: false };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        page.push(&rest[..at]);
        rest = &rest[at..];
        let Some((tag, after)) = Tag::parse(rest) else {
            let (less, after) = rest.split_at(1);
            page.push(less);
            rest = after;
            continue;
        };
        rest = after;
        if !tag.is_end && UNSHOWN.contains(&tag.name.as_str()) && !tag.is_closed {
            rest = past_end_of(&tag.name, rest);
        } else {
            page.tag(&tag);
        }
    }
    page.push(rest);
    page.end_link();
    page.text.trim().to_owned()
}

struct Page<'a> {
    base: &'a Url,
    text: String,
    /// Where the link that is open leads.
    link: Option<String>,
    /// Of the addresses that are shown.
    links_bytes: usize,
    is_pre: bool,
}

impl Page<'_> {
    fn push(&mut self, text: &str) {
        let decoded = decoded(text);
        if self.is_pre {
            self.text.push_str(&decoded);
            return;
        }
        for c in decoded.chars() {
            match c {
                c if !c.is_whitespace() => self.text.push(c),
                _ if self.text.is_empty() || self.text.ends_with(['\n', ' ']) => {}
                _ => self.text.push(' '),
            }
        }
    }

    /// How many line breaks are at the end, of so many at most.
    fn newlines(&self, most: usize) -> usize {
        self.text.bytes().rev().take(most).take_while(|byte| *byte == b'\n').count()
    }

    /// Begins a line, after so many empty ones.
    fn lines(&mut self, empty: usize) {
        while self.text.ends_with(' ') {
            self.text.pop();
        }
        if self.text.is_empty() {
            return;
        }
        // As many as count: a page could have any number of them, again and again.
        let there = self.newlines(empty + 1);
        for _ in there..=empty {
            self.text.push('\n');
        }
    }

    fn tag(&mut self, tag: &Tag) {
        match (tag.name.as_str(), tag.is_end) {
            ("br", _) if self.newlines(BREAKS_MAX) < BREAKS_MAX => self.text.push('\n'),
            ("a", is_end) => {
                self.end_link();
                if !is_end {
                    self.link = tag.href.as_deref().and_then(|href| self.target(href));
                }
            }
            ("li", false) => {
                self.lines(0);
                self.text.push_str("- ");
            }
            ("td" | "th", true) => self.text.push_str(" | "),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", is_end) => {
                self.lines(1);
                if !is_end {
                    let depth = usize::from(tag.name.as_bytes()[1] - b'0');
                    self.text.push_str(&"#".repeat(depth));
                    self.text.push(' ');
                }
            }
            ("pre", is_end) => {
                self.lines(1);
                self.is_pre = !is_end;
            }
            ("p" | "title" | "table" | "blockquote" | "ul" | "ol", _) => self.lines(1),
            (name, _) if BLOCKS.contains(&name) => self.lines(0),
            _ => {}
        }
    }

    fn end_link(&mut self) {
        if let Some(link) = self.link.take()
            && self.links_bytes + link.len() <= LINKS_BYTES_MAX
        {
            self.links_bytes += link.len();
            let space = if self.text.ends_with(char::is_whitespace) { "" } else { " " };
            self.text.push_str(&format!("{space}({link})"));
        }
    }

    /// The address of a link, unless it leads within the page or runs a script.
    fn target(&self, href: &str) -> Option<String> {
        let href = decoded(href);
        if href.is_empty() || href.starts_with('#') || href.len() > LINK_BYTES_MAX {
            return None;
        }
        let url = self.base.join(href.trim()).ok()?;
        let is_shown =
            matches!(url.scheme(), "http" | "https" | "mailto") && url.as_str().len() <= LINK_BYTES_MAX;
        is_shown.then(|| url.to_string())
    }
}

struct Tag {
    name: String,
    is_end: bool,
    is_closed: bool,
    href: Option<String>,
}

impl Tag {
    /// A tag or comment at the beginning of a text, and what is after it.
    fn parse(text: &str) -> Option<(Self, &str)> {
        let nothing = |after| {
            let name = String::new();
            Some((Self { name, is_end: false, is_closed: true, href: None }, after))
        };
        if let Some(comment) = text.strip_prefix("<!--") {
            return nothing(comment.split_once("-->").map_or("", |(_, after)| after));
        }
        if text.starts_with("<!") || text.starts_with("<?") {
            return nothing(text.split_once('>').map_or("", |(_, after)| after));
        }
        let inside = &text[1..];
        let (is_end, inside) = inside.strip_prefix('/').map_or((false, inside), |inside| (true, inside));
        if !inside.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let end = inside.find(|c: char| c.is_whitespace() || matches!(c, '>' | '/')).unwrap_or(inside.len());
        let (name, mut rest) = inside.split_at(end);
        let mut tag = Self { name: name.to_ascii_lowercase(), is_end, is_closed: false, href: None };
        loop {
            rest = rest.trim_start();
            match rest.chars().next() {
                None => return Some((tag, "")),
                Some('>') => return Some((tag, &rest[1..])),
                Some('/') => {
                    tag.is_closed = rest[1..].starts_with('>');
                    rest = &rest[1..];
                }
                Some(_) => {
                    let (name, value, after) = attribute(rest);
                    if name.eq_ignore_ascii_case("href") && tag.href.is_none() {
                        tag.href = Some(value.to_owned());
                    }
                    rest = after;
                }
            }
        }
    }
}

/// The name and the value of an attribute, and what is after it: at least one character less.
fn attribute(text: &str) -> (&str, &str, &str) {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let end = text[first..].find(|c: char| c.is_whitespace() || matches!(c, '=' | '>' | '/'));
    let (name, rest) = text.split_at(end.map_or(text.len(), |end| first + end));
    let Some(value) = rest.trim_start().strip_prefix('=') else { return (name, "", rest) };
    let value = value.trim_start();
    for quote in ['"', '\''] {
        if let Some(quoted) = value.strip_prefix(quote) {
            let (value, after) = quoted.split_once(quote).unwrap_or((quoted, ""));
            return (name, value, after);
        }
    }
    let end = value.find(|c: char| c.is_whitespace() || c == '>').unwrap_or(value.len());
    let (value, after) = value.split_at(end);
    (name, value, after)
}

/// What is after `</NAME …>`.
fn past_end_of<'a>(name: &str, mut rest: &'a str) -> &'a str {
    while let Some((_, after)) = rest.split_once("</") {
        let is_end = after.get(..name.len()).is_some_and(|start| start.eq_ignore_ascii_case(name));
        if is_end {
            return after.split_once('>').map_or("", |(_, after)| after);
        }
        rest = after;
    }
    ""
}

/// With its entities as characters.
fn decoded(text: &str) -> String {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        decoded.push_str(&rest[..at]);
        let after = &rest[at + 1..];
        let end = after.bytes().take(ENTITY_BYTES_MAX).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&after[..end])?, &after[end + 1..]))) {
            Some((character, after)) => {
                decoded.push(character);
                rest = after;
            }
            None => {
                decoded.push('&');
                rest = after;
            }
        }
    }
    decoded.push_str(rest);
    decoded
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = match number.strip_prefix(['x', 'X']) {
            Some(hexadecimal) => u32::from_str_radix(hexadecimal, 16),
            None => number.parse(),
        };
        return code.ok().and_then(char::from_u32).filter(|c| *c != '\0');
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" => '\'',
        "nbsp" => ' ',
        "copy" => '\u{a9}',
        "reg" => '\u{ae}',
        "deg" => '\u{b0}',
        "middot" => '\u{b7}',
        "times" => '\u{d7}',
        "auml" => '\u{e4}',
        "ouml" => '\u{f6}',
        "uuml" => '\u{fc}',
        "szlig" => '\u{df}',
        "eacute" => '\u{e9}',
        "egrave" => '\u{e8}',
        "laquo" => '\u{ab}',
        "raquo" => '\u{bb}',
        "ndash" => '\u{2013}',
        "mdash" => '\u{2014}',
        "lsquo" => '\u{2018}',
        "rsquo" => '\u{2019}',
        "ldquo" => '\u{201c}',
        "rdquo" => '\u{201d}',
        "bull" => '\u{2022}',
        "hellip" => '\u{2026}',
        "euro" => '\u{20ac}',
        "trade" => '\u{2122}',
        "rarr" => '\u{2192}',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(html: &str) -> String {
        readable(html, &"https://a.org/docs/".parse().unwrap())
    }

    #[test]
    fn a_page_reads_like_text() {
        let page = "<!doctype html><html><head><title>Oaks &amp; elms</title><style>p { color: red }</style>\
            <script>if (a < b) alert('</p>')</script></head><body><!-- <p>no</p> -->\
            <h1>Oaks</h1><p>An <b>oak</b>\n   is a <a href='../tree?x=1&amp;y=2'>tree</a>.<br>It is <a href=\"#here\">old</a>.\
            <ul><li>leaves<li>acorns</ul><table><tr><td>1</td><td>2</td></tr></table>\
            <pre>a  b\n c</pre><a href=javascript:alert(1)>no link</a> 1 < 2 &#8364; &#x20AC; &unknown; &nbsp;end</body>";
        assert_eq!(
            text(page),
            "Oaks & elms\n\n# Oaks\n\nAn oak is a tree (https://a.org/tree?x=1&y=2).\nIt is old.\n\n- leaves\n- acorns\n\n1 | 2 |\n\na  b\n c\n\nno link 1 < 2 \u{20ac} \u{20ac} &unknown; end"
        );
    }

    /// The second page takes an hour if each paragraph looks at all line breaks before it.
    #[test]
    fn line_breaks_without_end_are_read_in_linear_time() {
        assert_eq!(text(&format!("a{}b", "<br>".repeat(100_000))), "a\n\n\nb");
        let page = format!("a<pre>{}</pre>{}b", "\n".repeat(4_000_000), "<p>".repeat(200_000));
        assert!(text(&page).ends_with("\nb"));
    }

    #[test]
    fn what_is_broken_is_text_as_well() {
        for (html, shown) in [
            ("", ""),
            ("<", "<"),
            ("a < b", "a < b"),
            ("<p", ""),
            ("<a href=", ""),
            ("<a href='x", "(https://a.org/docs/x)"),
            ("<script>alert(1)", ""),
            ("<SCRIPT>x</ScRiPt >after", "after"),
            ("<svg/>after", "after"),
            ("<!-- never closed", ""),
            ("&#0;&#x110000;&;&", "&#0;&#x110000;&;&"),
        ] {
            assert_eq!(text(html), shown, "{html:?}");
        }
    }

    proptest! {
        #[test]
        fn no_page_makes_it_panic(html in "[<>a/p!&;#= '\"\u{e9}\n-]{0,200}") {
            let _ = text(&html);
        }
    }

    #[test]
    fn a_page_of_links_is_not_many_times_longer_as_text() {
        let base = format!("https://a.org/{}/", "b".repeat(440));
        let html = "<a href=x>".repeat(20_000);
        let text = readable(&html, &base.parse().unwrap());
        assert!(text.len() > LINKS_BYTES_MAX / 2 && text.len() < 2 * LINKS_BYTES_MAX, "{}", text.len());
    }
}
