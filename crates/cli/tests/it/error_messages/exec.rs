//! `spinney exec`: programs that cannot start, and settings that would lead them past the gateway.

use super::{told, typed};
use crate::test_folder::TestFolder;

#[test]
fn a_program_that_cannot_start_or_would_pass_the_gateway_is_named() {
    let stage = TestFolder::new();
    stage.file("notes.txt", "not a program");
    stage.file("list.json", "[]");
    stage.file("env.json", "{\"env\": 1}");
    let lines = [
        "spinney exec --budget-usd 1 -- no-such-program",
        "spinney exec --budget-usd 1 -- ./notes.txt",
        "spinney exec -- claude --settings",
        "spinney exec -- claude --settings nowhere.json",
        "spinney exec -- claude --settings list.json",
        "spinney exec -- claude --settings env.json",
        "spinney exec -- claude --settings '{\"env\": '",
        "spinney exec -- codex --oss",
        "spinney exec -- codex -c model_provider=azure",
        "spinney exec -- codex --config=model_providers.spinney.base_url=x",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
}

#[test]
fn a_run_that_cannot_go_on_says_what_can() {
    let stage = TestFolder::new();
    assert_eq!(typed(&stage, "spinney exec -- true").code, Some(0));
    assert_eq!(typed(&stage, "spinney exec -- true").code, Some(0));
    let lines = [
        "spinney exec --resume ffff -- true",
        "spinney exec --resume 01a -- true",
        "spinney exec --resume last -- true",
        "spinney resume ffff",
        "spinney budget --add-usd 1",
        "spinney window main",
        "spinney show nobody",
        "spinney files cat note.md",
        "spinney exec --prices-of nobody -- true",
        "spinney exec --models '' -- true",
        "spinney exec --tokens 99999999999999999 -- true",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
}

/// A run that was interrupted continues with `exec`, not with `resume`.
#[test]
fn a_run_that_was_interrupted_names_the_command_that_goes_on() {
    let stage = TestFolder::new();
    let program = stage.file("program.sh", "while read -r name value; do [ $name = PPid: ] && exec=$value; done < /proc/$PPID/status\nkill -TERM $exec; sleep 60\n");
    let interrupted = typed(&stage, &format!("spinney exec -- sh {program}"));
    assert_eq!(interrupted.code, Some(130), "{}", interrupted.err);
    insta::assert_snapshot!(told(&stage, &["spinney resume", "spinney rm", "spinney unpause"]));
}
