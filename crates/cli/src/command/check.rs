//! `spinney check`: everything that is wrong with a tree file, what the tree looks like, and the most it can spend.
//! Starts nothing and needs no home.

use std::path::Path;

use anyhow::Result;
use spinney::clock::{Clock, SystemClock};
use spinney_host::OwnDrivers;
use spinney_host::check::{CheckError, CheckWords, CheckedFile};
use spinney_host::defaults::Sourced;
use spinney_host::prepared::PrepareError;
use spinney_host::project::new_files::schema_text;
use spinney_kernel::primitives::Time;
use spinney_terminal::{Terminal, out};

use super::run::start_request;
use crate::args;
use crate::error_text::{in_words_of, of_input};
use crate::exit::Exit;
use crate::hint;
use crate::permission::box_option;

const WORDS: CheckWords = CheckWords {
    no_goal: "`goal` is missing, so `run` needs --goal",
    allow_host: |host| format!("run it with --allow-host {host}"),
    allow_box: |what| format!("run it with {}", box_option(what)),
    input: of_input,
    install: |file| format!("install it with `{}`", hint::install(file)),
};

pub(super) fn check(home: &Sourced<&Path>, args: &args::Check, terminal: Terminal) -> Result<Exit> {
    let Some(file) = args.file.as_deref().filter(|_| !args.schema) else {
        out::verbatim(schema_text()?.trim_end())?;
        return Ok(Exit::Completed);
    };
    if args.explain {
        return super::run::explain(home, file, &args.given, args.json, terminal);
    }
    let request = start_request(file, &args.given);
    let now = Time(SystemClock::new().now_ms());
    let checked = CheckedFile::read(home.value, &request, WORDS, &OwnDrivers::default(), now);
    let checked = match checked {
        // With `--json` there is always a line, also for a file that cannot be read.
        Err(CheckError::Prepare(PrepareError::Source(error))) if args.json => {
            let unread = CheckedFile::unread(file, in_words_of(&error));
            out::json(&serde_json::to_string(&unread)?)?;
            return Err(error.into());
        }
        checked => checked?,
    };
    if args.json {
        out::json(&serde_json::to_string(&checked)?)?;
    } else {
        for problem in &checked.problems {
            out::line(&format!("{problem}\n"))?;
        }
        out::line(&format!("{}: {}", checked.file, checked.counts()))?;
        if let Some(outline) = &checked.outline {
            out::line(&format!("\n{}", outline.text()))?;
        }
    }
    Ok(if checked.ok { Exit::Completed } else { Exit::Usage })
}
