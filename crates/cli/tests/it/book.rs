//! The book in `docs/`: each page is played in a separate folder. Blocks with a file name are written, the commands of
//! `console` blocks are run in a shell, and their output must be what the page shows. A line `…` stands for any lines.
//!
//! `SPINNEY_BOOK=write cargo nextest run -p spinney-cli -E 'test(book)'` writes new output into the pages.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::test_folder::{TestFolder, steady};

const DOCS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");

/// A fenced block of a page.
struct Block<'page> {
    /// What stands behind the fence.
    info: &'page str,
    /// Its first line in the page, counted from 0.
    at: usize,
    lines: Vec<&'page str>,
}

/// A command of a `console` block with the output that the page shows.
struct Shown<'page> {
    command: &'page str,
    output: Vec<&'page str>,
}

fn blocks(page: &str) -> Vec<Block<'_>> {
    let mut found = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for (at, line) in page.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (Some(block), None) => block.lines.push(line),
            (Some(_), Some(_)) => found.extend(open.take()),
            (None, Some(info)) => open = Some(Block { info, at: at + 1, lines: Vec::new() }),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block has no end");
    found
}

fn shown<'page>(block: &Block<'page>) -> Vec<Shown<'page>> {
    let mut all: Vec<Shown<'page>> = Vec::new();
    for line in &block.lines {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => all.push(Shown { command, output: Vec::new() }),
            (None, Some(last)) => last.output.push(line),
            (None, None) => panic!("line {} of the page: output before the first command", block.at + 1),
        }
    }
    all
}

/// Whether the output has the lines of the page, where `…` stands for any.
fn fits(output: &[&str], page: &[&str]) -> bool {
    match page {
        [] => output.is_empty(),
        ["…", rest @ ..] => (0..=output.len()).any(|from| fits(&output[from..], rest)),
        [line, rest @ ..] => output.first() == Some(line) && fits(&output[1..], rest),
    }
}

/// Plays a page, and returns the commands that printed something else than it shows.
fn play(path: &Path) -> String {
    let page = std::fs::read_to_string(path).unwrap();
    let stage = TestFolder::stranger();
    let mut wrong = String::new();
    let mut rewritten: Vec<(usize, usize, String)> = Vec::new();
    for block in blocks(&page) {
        if let Some((_, file)) = block.info.split_once(' ') {
            std::fs::create_dir_all(stage.folder().join(file).parent().unwrap()).unwrap();
            stage.file(file, &(block.lines.join("\n") + "\n"));
        }
        if block.info != "console" {
            continue;
        }
        let mut text = String::new();
        for shown in shown(&block) {
            let ended = stage.shell(&format!("{{ {}; }} 2>&1", shown.command));
            let (output, expected) = (steady(&ended.out), steady(&shown.output.join("\n")));
            let fits = fits(&lines(&output), &lines(&expected));
            let kept = if fits { shown.output.join("\n") } else { ended.out.trim_end().to_owned() };
            writeln!(text, "$ {}", shown.command).unwrap();
            if !kept.is_empty() {
                writeln!(text, "{kept}").unwrap();
            }
            if !fits {
                writeln!(wrong, "\n{}\n$ {}\n{}", path.display(), shown.command, ended.out).unwrap();
            }
        }
        rewritten.push((block.at, block.at + block.lines.len(), text));
    }
    if !wrong.is_empty() && rewrites() {
        rewrite(path, &page, &rewritten);
    }
    wrong
}

#[expect(clippy::disallowed_methods, reason = "a person who runs the tests asks for it")]
fn rewrites() -> bool {
    std::env::var_os("SPINNEY_BOOK").is_some_and(|mode| mode == "write")
}

fn lines(text: &str) -> Vec<&str> {
    text.trim_end().lines().map(str::trim_end).collect()
}

fn rewrite(path: &Path, page: &str, blocks: &[(usize, usize, String)]) {
    let old: Vec<&str> = page.lines().collect();
    let mut new = String::new();
    let mut next = 0;
    for (from, to, text) in blocks {
        for line in &old[next..*from] {
            writeln!(new, "{line}").unwrap();
        }
        new.push_str(text);
        next = *to;
    }
    for line in &old[next..] {
        writeln!(new, "{line}").unwrap();
    }
    std::fs::write(path, new).unwrap();
}

fn pages() -> Vec<PathBuf> {
    let files = std::fs::read_dir(DOCS).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|end| end == "md")).collect()
}

#[test]
fn every_command_of_the_book_prints_what_its_page_shows() {
    let pages = pages();
    let wrong: String = std::thread::scope(|scope| {
        let played: Vec<_> = pages.iter().map(|path| scope.spawn(|| play(path))).collect();
        played.into_iter().map(|page| page.join().unwrap()).collect()
    });
    assert!(wrong.is_empty(), "the book shows another output than this:\n{wrong}");
}

/// What the examples that are only a part of a tree file are a part of.
const AROUND: [(&str, &str); 5] = [
    ("name", "name: page"),
    ("goal", "goal: Try it."),
    ("models", "models: { fast: { provider: scripted, script: s.yaml } }"),
    ("agents", "agents: { lead: { model: fast, tools: [read_context] }, critic: { model: fast } }"),
    ("entry", "entry: lead"),
];

/// A tree file that a page shows without a name is also read: as it is, or in a file around it. The scripts of
/// `scripted-model.md` are played by the drivers' tests.
#[test]
fn every_tree_file_of_the_book_is_read() {
    let mut count = 0;
    for path in pages().into_iter().filter(|path| !path.ends_with("scripted-model.md")) {
        let page = std::fs::read_to_string(&path).unwrap();
        for block in blocks(&page).into_iter().filter(|block| block.info == "yaml") {
            let is_there = |key: &str| block.lines.iter().any(|line| line.starts_with(&format!("{key}:")));
            let is_whole = is_there("agents");
            let mut text = block.lines.join("\n") + "\n";
            for (key, line) in AROUND.iter().filter(|(key, _)| !is_whole && !is_there(key)) {
                // The roles of a fragment use `fast`.
                text += if *key == "agents" && is_there("models") {
                    "agents: { lead: { model: own } }"
                } else {
                    line
                };
                text += "\n";
            }
            let stage = TestFolder::stranger();
            for script in ["s.yaml", "compare.script.yaml", "research.script.yaml"] {
                stage.file(script, "rules: [ { say: done } ]");
            }
            let checked = stage.spinney(&["check", &stage.file("page.yaml", &text)]);
            assert_eq!(checked.code, Some(0), "{}\n{text}\n{}{}", path.display(), checked.out, checked.err);
            count += 1;
        }
    }
    assert!(count >= 6, "{count}");
}

/// The commands of `sh` blocks need keys, programs or trees that a test does not have. The parser takes each of them.
#[test]
fn every_command_of_the_book_can_be_typed() {
    let mut count = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        for block in blocks(&page).into_iter().filter(|block| block.info == "sh" || block.info == "text") {
            for line in block.lines.iter().filter(|line| line.starts_with("spinney ")) {
                let line = line.split(" # ").next().unwrap_or_default().trim_end();
                let typed = line.split_once(" -- ").map_or(line, |(before, _)| before);
                let ended = TestFolder::stranger().shell(&format!("{typed} --help"));
                assert_eq!(ended.code, Some(0), "{}: {line}\n{}", path.display(), ended.err);
                count += 1;
            }
        }
    }
    assert!(count >= 8, "{count}");
}

/// Every page of the book is in its table of contents.
#[test]
fn every_page_of_the_book_is_listed() {
    let contents = std::fs::read_to_string(Path::new(DOCS).join("README.md")).unwrap();
    for path in pages() {
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name == "README.md" || contents.contains(&format!("]({name})")), "{name}");
    }
}

#[test]
fn a_page_that_shows_another_output_is_found() {
    assert!(fits(&["a", "b", "c"], &["a", "…", "c"]));
    assert!(fits(&["a"], &["a", "…"]));
    assert!(!fits(&["a", "b"], &["a"]));
    assert!(!fits(&["a", "b"], &["…", "a"]));
}
