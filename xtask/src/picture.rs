//! A picture of a terminal: text with colours, as `tmux capture-pane -e` prints it, becomes an SVG.

use std::fmt::Write as _;

const CHAR_WIDTH: usize = 8;
const LINE_HEIGHT: usize = 18;
const MARGIN: usize = 14;

/// How text is shown. Only what our own output uses is known.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Look {
    is_bold: bool,
    is_dim: bool,
    colour: Option<&'static str>,
}

/// A piece of a line that looks the same.
struct Piece {
    column: usize,
    look: Look,
    text: String,
}

/// The SVG of a terminal's screen. Empty lines at its end are left out.
///
/// # Errors
/// An escape sequence that is not a colour.
pub fn svg(screen: &str) -> anyhow::Result<String> {
    let mut look = Look::default();
    let mut lines = Vec::new();
    for line in screen.trim_end().lines() {
        lines.push(pieces(line, &mut look)?);
    }
    let columns = lines.iter().flatten().map(|piece| piece.column + piece.text.chars().count()).max();
    let width = columns.unwrap_or_default() * CHAR_WIDTH + 2 * MARGIN;
    let height = lines.len() * LINE_HEIGHT + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\">\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#1b1f24\"/>\n\
         <g font-family=\"ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace\" font-size=\"13\" fill=\"#e6edf3\" xml:space=\"preserve\">\n"
    );
    for (number, line) in lines.iter().enumerate() {
        let y = MARGIN + number * LINE_HEIGHT + LINE_HEIGHT * 3 / 4;
        for Piece { column, look, text } in line.iter().filter(|piece| !piece.text.trim().is_empty()) {
            let x = MARGIN + column * CHAR_WIDTH;
            let length = text.chars().count() * CHAR_WIDTH;
            writeln!(
                svg,
                "<text x=\"{x}\" y=\"{y}\" textLength=\"{length}\"{}>{}</text>",
                attributes(*look),
                escaped(text)
            )?;
        }
    }
    svg.push_str("</g>\n</svg>\n");
    Ok(svg)
}

/// The pieces of a line. A style continues into the next line.
fn pieces(line: &str, look: &mut Look) -> anyhow::Result<Vec<Piece>> {
    let mut pieces: Vec<Piece> = Vec::new();
    let (mut column, mut rest) = (0, line);
    while let Some(first) = rest.chars().next() {
        if let Some(sequence) = rest.strip_prefix("\u{1b}[") {
            let Some((codes, after)) = sequence.split_once('m') else {
                anyhow::bail!("an escape sequence is no colour: {line:?}");
            };
            codes.split(';').try_for_each(|code| apply(look, code))?;
            rest = after;
            continue;
        }
        match pieces.last_mut() {
            Some(piece) if piece.look == *look => piece.text.push(first),
            Some(_) | None => pieces.push(Piece { column, look: *look, text: first.to_string() }),
        }
        column += 1;
        rest = &rest[first.len_utf8()..];
    }
    Ok(pieces)
}

fn apply(look: &mut Look, code: &str) -> anyhow::Result<()> {
    match code {
        "" | "0" => *look = Look::default(),
        "1" => look.is_bold = true,
        "2" => look.is_dim = true,
        "22" => (look.is_bold, look.is_dim) = (false, false),
        "31" => look.colour = Some("#ff7b72"),
        "32" => look.colour = Some("#7ee787"),
        "33" => look.colour = Some("#e3b341"),
        "34" => look.colour = Some("#79c0ff"),
        "35" => look.colour = Some("#d2a8ff"),
        "36" => look.colour = Some("#76e3ea"),
        "39" => look.colour = None,
        "49" => {}
        other => anyhow::bail!("the colour {other:?} is not known: add it to picture.rs"),
    }
    Ok(())
}

fn attributes(look: Look) -> String {
    let mut attributes = look.colour.map(|colour| format!(" fill=\"{colour}\"")).unwrap_or_default();
    if look.is_bold {
        attributes.push_str(" font-weight=\"bold\"");
    }
    if look.is_dim {
        attributes.push_str(" opacity=\"0.6\"");
    }
    attributes
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::svg;

    #[test]
    fn colours_of_a_terminal_are_colours_of_the_picture() {
        let svg = svg("a \u{1b}[1;31mb<c\u{1b}[0m\n\u{1b}[2md\n\n").unwrap_or_else(|error| panic!("{error}"));
        let texts: Vec<&str> = svg.lines().filter(|line| line.starts_with("<text")).collect();
        insta::assert_snapshot!(texts.join("\n"), @r##"
        <text x="14" y="27" textLength="16">a </text>
        <text x="30" y="27" textLength="24" fill="#ff7b72" font-weight="bold">b&lt;c</text>
        <text x="14" y="45" textLength="8" opacity="0.6">d</text>
        "##);
    }

    #[test]
    fn a_sequence_that_is_no_colour_is_an_error() {
        for screen in ["\u{1b}[2J", "\u{1b}[38;5;1mx", "\u{1b}[9mx"] {
            assert!(svg(screen).is_err(), "{screen:?}");
        }
    }
}
