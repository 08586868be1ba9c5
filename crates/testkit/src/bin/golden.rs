//! `make golden`: runs every scene and writes its journal into a folder, for later versions to read.
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program for people")]

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use spinney_testkit::golden::{SCENES, check, write};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [verb, folder] = words.as_slice() else {
        eprintln!("golden: expected `write FOLDER`");
        return ExitCode::from(2);
    };
    if verb != "write" {
        eprintln!("golden: `{verb}` is no command; expected `write FOLDER`");
        return ExitCode::from(2);
    }
    match write_all(Path::new(folder)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("golden: {error}");
            ExitCode::FAILURE
        }
    }
}

fn write_all(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| error.to_string())?;
    for scene in &SCENES {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let golden = runtime.block_on(write(scene))?;
        let ending = check(&golden.lines, &golden.ending).map_err(|unlike| unlike.to_string())?;
        for (text, kind) in [(&golden.lines, "jsonl"), (&golden.ending, "json")] {
            let path = folder.join(format!("{}.{kind}", scene.name));
            fs::write(path, text).map_err(|error| error.to_string())?;
        }
        println!("{}: {} events, {}", scene.name, ending.events, ending.state);
    }
    Ok(())
}
