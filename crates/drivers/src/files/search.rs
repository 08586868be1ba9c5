//! `search_files`: the lines that a regular expression matches in the files below a folder, or the files that a glob
//! matches.

use std::fmt::Write;
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use globset::{GlobBuilder, GlobMatcher};
use memchr::memchr;
use regex::bytes::Regex;
use serde::Deserialize;

use super::advice::Refused;
use super::handle;
use super::matching::{self, Case, Line};
use super::path::Top;
use super::place::{Place, Reach};
use super::walk::{self, Folder, Visit, Walked};

pub(super) const DESCRIPTION: &str = "search the text files of your own folder {pattern?, glob?, path?, ignore_case?}: shows each line that the regular expression `pattern` matches, with its file and number, or without `pattern` the names of the files that `glob` matches; everything in `outputs/` if no path is given; hidden files and what `.gitignore` and `.ignore` name are left out";
pub(super) const SCHEMA: &str = r#"{"type":"object","properties":{"pattern":{"type":"string","description":"a regular expression as ripgrep has them; it matches within one line"},"glob":{"type":"string","description":"which files: *.md by name at any depth, or notes/**/*.md by the path below the folder"},"path":{"type":"string","description":"a folder or a file: outputs, history, offload, or one below"},"ignore_case":{"type":"boolean","description":"false if left out"}},"additionalProperties":false}"#;

/// How long one search may take.
pub(super) const MS_MAX: u64 = 10_000;
/// So much is shown whole.
pub(super) const SHOWN_BYTES: u32 = 16_384;
/// The most lines, or names, of one answer, and their bytes.
const MATCHES_MAX: usize = 200;
const BYTES_MAX: usize = 15_000;
/// After so many a search ends. Up to then the first ones in the order of their files are shown.
const FOUND_MAX: usize = 5_000;
/// Where a text shows that it is none.
const PROBED_BYTES: usize = 8 * 1_024;
const PATTERN_BYTES_MAX: usize = 1_024;
const GLOB_BYTES_MAX: usize = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Args {
    pattern: Option<String>,
    glob: Option<String>,
    path: Option<String>,
    #[serde(default)]
    ignore_case: bool,
}

pub(super) fn act(args: &Args, reach: &Reach<'_>, stop: &AtomicBool) -> Result<String, Refused> {
    let path = reach.place(args.path.as_deref().unwrap_or(Top::Outputs.as_str()))?;
    let finding = Finding::new(args)?;
    let (folder, file) = match opened(&path, reach)? {
        Some(opened) => opened,
        None => return Ok(format!("nothing is in {path}/")),
    };
    let walked = walk::walk(folder, file.as_deref(), &finding, stop);
    Ok(finding.shown(&path, file.as_deref(), walked))
}

/// The folder to search, and the file in it if the path names one. `None` if nothing was ever kept there.
fn opened(path: &Place, reach: &Reach<'_>) -> Result<Option<(Folder, Option<String>)>, Refused> {
    let refused = |error: std::io::Error| handle::linked(path, &error);
    let top = match reach.top(path) {
        Err(error) if error.kind() == ErrorKind::NotFound && path.is_top() => return Ok(None),
        top => top.map_err(refused)?,
    };
    let mut folder = Folder::top(&top, reach.hidden_ids(path)).map_err(refused)?;
    let (last, above) = match path.names().split_last() {
        Some((last, above)) => (Some(last), above),
        None => (None, &[][..]),
    };
    for name in above {
        folder = folder.below(name).map_err(refused)?;
    }
    let Some(last) = last else { return Ok(Some((folder, None))) };
    match folder.below(last) {
        Ok(below) => Ok(Some((below, None))),
        Err(_) if folder.has_file(last) => Ok(Some((folder, Some(last.to_owned())))),
        // A link in its place looks like a file here.
        Err(error) if error.kind() == ErrorKind::NotADirectory => Err(Refused::not_plain(path)),
        Err(error) => Err(refused(error)),
    }
}

/// What is looked for, and what was found.
struct Finding {
    regex: Option<Regex>,
    glob: Option<Glob>,
    count: AtomicUsize,
    found: Mutex<Vec<Found>>,
}

struct Glob {
    matcher: GlobMatcher,
    /// Whether it is about whole paths, and not about names.
    has_folders: bool,
}

/// A file with something in it, or one whose name was asked for.
struct Found {
    path: String,
    lines: Vec<Line>,
}

impl Finding {
    fn new(args: &Args) -> Result<Self, Refused> {
        let Args { pattern, glob, ignore_case, .. } = args;
        if pattern.is_none() && glob.is_none() {
            return Err(Refused::new("nothing to search for: give a `pattern`, a `glob` or both"));
        }
        let within = |what: &str, text: &str, most: usize| {
            let bytes = text.len();
            let long = || Refused::new(format!("`{what}` has {bytes} bytes: use at most {most}"));
            if bytes > most { Err(long()) } else { Ok(()) }
        };
        let case = if *ignore_case { Case::Ignored } else { Case::Sensitive };
        let regex = pattern.as_ref().map(|pattern| {
            within("pattern", pattern, PATTERN_BYTES_MAX)?;
            matching::compiled(pattern, case).map_err(|error| {
                Refused::new(format!("`pattern` is not a regular expression that can be used: {error}"))
            })
        });
        let glob = glob.as_ref().map(|glob| {
            within("glob", glob, GLOB_BYTES_MAX)?;
            let built = GlobBuilder::new(glob).literal_separator(true).build();
            let built = built
                .map_err(|error| Refused::new(format!("`glob` is not a glob that can be used: {error}")))?;
            Ok::<_, Refused>(Glob { matcher: built.compile_matcher(), has_folders: glob.contains('/') })
        });
        Ok(Self {
            regex: regex.transpose()?,
            glob: glob.transpose()?,
            count: AtomicUsize::new(0),
            found: Mutex::default(),
        })
    }

    /// What a model reads: the lines in the order of their files, then what was searched.
    fn shown(self, path: &Place, file: Option<&str>, walked: Walked) -> String {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by(|one, other| one.path.cmp(&other.path));
        let name = |below: &str| if file.is_some() { path.to_string() } else { format!("{path}/{below}") };
        let (mut text, mut shown, mut is_cut) = (String::new(), 0, false);
        'files: for Found { path, lines } in &found {
            let all: Vec<String> = if lines.is_empty() {
                vec![name(path)]
            } else {
                lines.iter().map(|line| format!("{}:{}: {}", name(path), line.number, line.text)).collect()
            };
            for line in all {
                if shown == MATCHES_MAX || text.len() + line.len() > BYTES_MAX {
                    is_cut = true;
                    break 'files;
                }
                let _ = writeln!(text, "{line}");
                shown += 1;
            }
        }
        is_cut |= self.count.load(Ordering::Relaxed) > shown;
        let counted = |count: u64, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let _ = match self.regex {
            Some(_) => {
                let lines = counted(shown as u64, "matching line");
                write!(text, "[{lines}; {} searched", counted(walked.files, "file"))
            }
            None => write!(text, "[{}", counted(shown as u64, "matching file")),
        };
        if walked.large > 0 {
            let _ = write!(text, "; {} too large to search", counted(walked.large, "file"));
        }
        if is_cut {
            text += "; there are more: search for less, or in one folder";
        } else if !walked.is_whole {
            text += "; not everything was searched, because there is too much: search in one folder";
        }
        text + "]"
    }
}

impl Visit for Finding {
    /// Each thread has its own copy: they do not share what it keeps while it searches.
    type Local = Option<Regex>;

    fn local(&self) -> Option<Regex> {
        self.regex.clone()
    }

    fn is_wanted(&self, path: &str) -> bool {
        self.glob.as_ref().is_none_or(|glob| {
            let name = path.rsplit_once('/').map_or(path, |(_, name)| name);
            glob.matcher.is_match(if glob.has_folders { path } else { name })
        })
    }

    fn reads(&self) -> bool {
        self.regex.is_some()
    }

    fn visit(&self, local: &mut Option<Regex>, path: String, bytes: &[u8]) -> ControlFlow<()> {
        let lines = match local {
            Some(_) if memchr(0, &bytes[..bytes.len().min(PROBED_BYTES)]).is_some() => Vec::new(),
            Some(regex) => matching::lines(regex, bytes, MATCHES_MAX + 1),
            None => Vec::new(),
        };
        let count = lines.len().max(usize::from(local.is_none()));
        if count == 0 {
            return ControlFlow::Continue(());
        }
        self.found.lock().unwrap_or_else(PoisonError::into_inner).push(Found { path, lines });
        let all = self.count.fetch_add(count, Ordering::Relaxed) + count;
        if all < FOUND_MAX { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    }
}
