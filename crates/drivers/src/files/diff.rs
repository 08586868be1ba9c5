//! The difference that replacing a text makes, as a small unified diff. Where it is is known, so nothing is searched for:
//! the work is one pass over the text, whatever is in it.

use std::fmt::Write;
use std::ops::Range;

/// Lines around a change.
const AROUND: usize = 3;
/// Bytes of a diff: it is shown whole, beside what else the result says.
const BYTES_MAX: usize = 1_800;
/// Bytes of a line in it.
const LINE_BYTES_MAX: usize = 200;

/// A text in which another one is replaced.
pub(super) struct Replaced<'a> {
    pub(super) before: &'a str,
    /// The bytes where `old` begins, in order and without overlap.
    pub(super) at: Vec<usize>,
    /// Never empty.
    pub(super) old: &'a str,
    pub(super) new: &'a str,
}

impl Replaced<'_> {
    /// How long the text is afterwards.
    pub(super) fn bytes_after(&self) -> u64 {
        let times = self.at.len() as u64;
        let kept = self.before.len() as u64 - times * self.old.len() as u64;
        kept.saturating_add(times.saturating_mul(self.new.len() as u64))
    }

    /// The text afterwards.
    pub(super) fn after(&self) -> String {
        self.part(0..self.before.len(), &self.at)
    }

    /// Part of the text afterwards, with the replacements in it.
    fn part(&self, range: Range<usize>, at: &[usize]) -> String {
        let (mut after, mut from) = (String::new(), range.start);
        for at in at {
            after.push_str(&self.before[from..*at]);
            after.push_str(self.new);
            from = at + self.old.len();
        }
        after.push_str(&self.before[from..range.end]);
        after
    }
}

/// Lines that change.
struct Change {
    /// Which lines of the text before.
    lines: Range<usize>,
    after: Vec<String>,
}

/// The difference, with a few lines around each change. What is too much is left out and counted.
pub(super) fn unified(path: &str, replaced: &Replaced<'_>) -> String {
    let lines: Vec<&str> = replaced.before.split_inclusive('\n').collect();
    let changes = changes(replaced, &lines);
    let mut diff = format!("--- {path}\n+++ {path}\n");
    // How many lines the text has grown by so far.
    let (mut grown, mut shown) = (0_isize, 0);
    for hunk in changes.chunk_by(|one, next| next.lines.start - one.lines.end <= 2 * AROUND) {
        let text = hunk_text(hunk, &lines, &mut grown);
        if diff.len() + text.len() <= BYTES_MAX {
            diff.push_str(&text);
            shown += hunk.len();
            continue;
        }
        if shown == 0 {
            let end = text[..text.floor_char_boundary(BYTES_MAX)].rfind('\n').map_or(0, |end| end + 1);
            let _ = writeln!(diff, "{}[the rest of this change is not shown]", &text[..end]);
            shown += hunk.len();
        }
        break;
    }
    if shown < changes.len() {
        let _ = writeln!(diff, "[{} more changes are not shown]", changes.len() - shown);
    }
    diff.trim_end_matches('\n').to_owned()
}

/// The lines that each replacement changes; replacements on the same lines are one change.
fn changes(replaced: &Replaced<'_>, lines: &[&str]) -> Vec<Change> {
    let starts: Vec<usize> = lines
        .iter()
        .scan(0, |next, line| {
            let start = *next;
            *next += line.len();
            Some(start)
        })
        .collect();
    let line_of = |at: usize| starts.partition_point(|start| *start <= at).saturating_sub(1);
    let mut groups: Vec<(Range<usize>, Vec<usize>)> = Vec::new();
    for at in &replaced.at {
        let last = line_of(at + replaced.old.len() - 1);
        // Without its line break a line continues with the next one.
        let end = if replaced.old.ends_with('\n') { last + 2 } else { last + 1 };
        let touched = line_of(*at)..end.min(lines.len());
        match groups.last_mut() {
            Some((range, places)) if touched.start < range.end => {
                range.end = range.end.max(touched.end);
                places.push(*at);
            }
            Some(_) | None => groups.push((touched, vec![*at])),
        }
    }
    let end = |line: usize| starts.get(line).copied().unwrap_or(replaced.before.len());
    let change = |(range, places): (Range<usize>, Vec<usize>)| {
        let after = replaced.part(starts[range.start]..end(range.end), &places);
        trimmed(range, &after, lines)
    };
    groups.into_iter().map(change).collect()
}

/// A change without the lines at both ends that stay as they are.
fn trimmed(range: Range<usize>, after: &str, lines: &[&str]) -> Change {
    let mut after: Vec<&str> = after.split_inclusive('\n').collect();
    let mut before = &lines[range.clone()];
    while let ([rest @ .., one], Some(other)) = (before, after.last())
        && one == other
    {
        before = rest;
        after.pop();
    }
    let same = before.iter().zip(&after).take_while(|(one, other)| one == other).count();
    let start = range.start + same;
    let end = range.start + before.len();
    Change { lines: start..end, after: after[same..].iter().map(|line| (*line).to_owned()).collect() }
}

/// Changes that are near each other, with the lines around them.
fn hunk_text(hunk: &[Change], lines: &[&str], grown: &mut isize) -> String {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else { return String::new() };
    let start = first.lines.start.saturating_sub(AROUND);
    let end = (last.lines.end + AROUND).min(lines.len());
    let mut text = String::new();
    let (mut at, before_grown) = (start, *grown);
    for change in hunk {
        lines[at..change.lines.start].iter().for_each(|line| push(&mut text, ' ', line));
        lines[change.lines.clone()].iter().for_each(|line| push(&mut text, '-', line));
        change.after.iter().for_each(|line| push(&mut text, '+', line));
        at = change.lines.end;
        *grown += change.after.len().cast_signed() - change.lines.len().cast_signed();
    }
    lines[at..end].iter().for_each(|line| push(&mut text, ' ', line));
    let count = end - start;
    let count_after = count.saturating_add_signed(*grown - before_grown);
    let start_after = start.saturating_add_signed(before_grown);
    let side = |start: usize, count: usize| match count {
        // Nothing is there: the line before it.
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{count}", start + 1),
    };
    format!("@@ -{} +{} @@\n{text}", side(start, count), side(start_after, count_after))
}

fn push(text: &mut String, sign: char, line: &str) {
    let (line, end) = match line.strip_suffix('\n') {
        Some(line) => (line, "\n"),
        None => (line, "\n\\ No newline at end of file\n"),
    };
    let shown = line.floor_char_boundary(LINE_BYTES_MAX);
    let more = if shown < line.len() { "…" } else { "" };
    let _ = write!(text, "{sign}{}{more}{end}", &line[..shown]);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, old: &str, new: &str) -> String {
        let at = before.match_indices(old).map(|(at, _)| at).collect();
        unified("outputs/a", &Replaced { before, at, old, new })
    }

    #[test]
    fn a_change_is_shown_with_the_lines_around_it() {
        insta::assert_snapshot!(diff("1\n2\n3\n4\n5\n6\n7\n8\n", "5", "five"), @"
        --- outputs/a
        +++ outputs/a
        @@ -2,7 +2,7 @@
         2
         3
         4
        -5
        +five
         6
         7
         8
        ");
    }

    #[test]
    fn near_changes_share_their_lines_and_far_ones_do_not() {
        let text: String =
            (1..=30).map(|n| if n % 9 == 0 { "x\n".to_owned() } else { format!("{n}\n") }).collect();
        insta::assert_snapshot!(diff(&text, "x\n", ""), @"
        --- outputs/a
        +++ outputs/a
        @@ -6,7 +6,6 @@
         6
         7
         8
        -x
         10
         11
         12
        @@ -15,7 +14,6 @@
         15
         16
         17
        -x
         19
         20
         21
        @@ -24,7 +22,6 @@
         24
         25
         26
        -x
         28
         29
         30
        ");
    }

    #[test]
    fn what_stays_in_a_longer_text_is_not_a_change() {
        insta::assert_snapshot!(diff("a\nb\nc\nd", "a\nb\nc\n", "a\nB\nc\n"), @r"
        --- outputs/a
        +++ outputs/a
        @@ -1,4 +1,4 @@
         a
        -b
        +B
         c
         d
        \ No newline at end of file
        ");
        insta::assert_snapshot!(diff("a\nb\nc", "b\n", "b"), @r"
        --- outputs/a
        +++ outputs/a
        @@ -1,3 +1,2 @@
         a
        -b
        -c
        \ No newline at end of file
        +bc
        \ No newline at end of file
        ");
        insta::assert_snapshot!(diff("a\nb\nc", "\nc", ""), @r"
        --- outputs/a
        +++ outputs/a
        @@ -1,3 +1,2 @@
         a
        -b
        -c
        \ No newline at end of file
        +b
        \ No newline at end of file
        ");
        insta::assert_snapshot!(diff("all of it", "all of it", ""), @r"
        --- outputs/a
        +++ outputs/a
        @@ -1 +0,0 @@
        -all of it
        \ No newline at end of file
        ");
    }

    #[test]
    fn a_large_difference_is_cut_and_says_so() {
        let text = format!("{}\n", "x".repeat(500)).repeat(40);
        let shown = diff(&text, &format!("{}\n", "x".repeat(500)), "y\n");
        assert!(shown.len() <= BYTES_MAX + 90, "{}", shown.len());
        assert!(shown.ends_with("[the rest of this change is not shown]"), "{shown}");
        let far: String = (0..400).map(|n| format!("x{}", "\n".repeat(8 + n % 2))).collect();
        let shown = diff(&far, "x", "y");
        assert!(shown.len() <= BYTES_MAX + 60, "{}", shown.len());
        assert!(shown.ends_with("more changes are not shown]"), "{shown}");
    }

    /// What the lines with signs say is what the text was and becomes.
    #[test]
    fn a_diff_applied_to_the_text_gives_the_text_afterwards() {
        for (before, old, new) in [
            ("a\nb\nc\n", "b", "x\ny"),
            ("a\nb\nc\n", "a\nb\n", ""),
            ("one two one\none", "one", "1"),
            ("a\n\n\n\nb\n", "\n\n", "\n"),
            ("x", "x", "y\n"),
            ("a\nb\n", "\n", ""),
        ] {
            let at: Vec<usize> = before.match_indices(old).map(|(at, _)| at).collect();
            let replaced = Replaced { before, at, old, new };
            let after = replaced.after();
            assert_eq!(after, before.replace(old, new));
            assert_eq!(replaced.bytes_after(), after.len() as u64);
            assert_eq!(applied(before, &unified("f", &replaced)), after, "{before:?} {old:?} {new:?}");
        }
    }

    /// Applies a diff of a short text, whose hunks are in order.
    fn applied(before: &str, diff: &str) -> String {
        let lines: Vec<&str> = before.split_inclusive('\n').collect();
        let (mut after, mut at) = (String::new(), 0);
        let mut shown = diff.lines().skip(2).peekable();
        while let Some(line) = shown.next() {
            let end = if shown.peek().is_some_and(|next| next.starts_with('\\')) { "" } else { "\n" };
            match line.split_at(1) {
                ("@", rest) => {
                    let from = rest.split(['-', ',', ' ']).nth(2).unwrap().parse::<usize>().unwrap();
                    let is_none = rest.split(' ').nth(1).unwrap().ends_with(",0");
                    let from = if is_none { from } else { from - 1 };
                    after.push_str(&lines[at..from].concat());
                    at = from;
                }
                (" ", rest) => {
                    assert_eq!(lines[at], format!("{rest}{end}"));
                    after.push_str(lines[at]);
                    at += 1;
                }
                ("-", rest) => {
                    assert_eq!(lines[at], format!("{rest}{end}"));
                    at += 1;
                }
                ("+", rest) => after.push_str(&format!("{rest}{end}")),
                ("\\", _) => {}
                other => panic!("{other:?}"),
            }
        }
        after + &lines[at..].concat()
    }
}
