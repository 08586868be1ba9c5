//! Command lines that cannot be read, and commands that need no home.

use super::told;
use crate::test_folder::TestFolder;

#[test]
fn a_command_line_that_cannot_be_read_says_what_to_write() {
    let stage = TestFolder::new();
    let lines = [
        "spinney evnts last",
        "spinney run",
        "spinney run a.yaml b.yaml",
        "spinney run tree.yaml --jsno",
        "spinney run tree.yaml --json --plain",
        "spinney run tree.yaml --budget-usd",
        "spinney run tree.yaml --budget-usd lots",
        "spinney run tree.yaml --budget-usd=-1",
        "spinney run tree.yaml --budget-usd 2000000",
        "spinney run tree.yaml --set topic",
        "spinney --color sometimes ps",
        "spinney --home",
        "spinney check",
        "spinney check --schema tree.yaml",
        "spinney init --provider aws",
        "spinney costs --by dollar",
        "spinney costs --by model --json",
        "spinney tree --dot --json",
        "spinney files cat",
        "spinney files --json cat note.md",
        "spinney events --from first",
        "spinney events --agent 'No One'",
        "spinney events --topic 'A B'",
        "spinney show",
        "spinney shared --set 1",
        "spinney shared last colour --expect-version 1",
        "spinney shared last colour --set 1 --json",
        "spinney cancel last 'No One'",
        "spinney answer",
        "spinney answer 1",
        "spinney send lead",
        "spinney send lead hi --category output",
        "spinney broadcast --from lead",
        "spinney budget",
        "spinney budget --add-tokens many",
        "spinney charge --tokens 18446744073709551615",
        "spinney budget --add-time soon",
        "spinney budget --add-time 400d",
        "spinney checkpoint mk",
        "spinney checkpoint make",
        "spinney checkpoint make lead --name 'No Name'",
        "spinney checkpoint branch one",
        "spinney doctor --no-calls",
        "spinney doctor --timeout soon",
        "spinney completions",
        "spinney completions tcsh",
        "SPINNEY_LOG=loud spinney ps",
        "SPINNEY_LOG=spinney=loud spinney ps",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
}

#[test]
fn a_command_line_of_exec_that_cannot_be_read_says_what_to_write() {
    let stage = TestFolder::new();
    let lines = [
        "spinney exec",
        "spinney exec --budget-usd 1 ./agent.sh",
        "spinney exec --budget-usd 1 --",
        "spinney exec --budget-usd 1,50 -- ./agent.sh",
        "spinney exec --tokens 1.5 -- ./agent.sh",
        "spinney exec --tokens 18446744073709551615 -- ./agent.sh",
        "spinney exec --timeout 5 minutes -- ./agent.sh",
        "spinney exec --max-parallel 0 -- ./agent.sh",
        "spinney exec --on-limit die -- ./agent.sh",
        "spinney exec --on-low downgrade -- ./agent.sh",
        "spinney exec --price m -- ./agent.sh",
        "spinney exec --price m=1,x -- ./agent.sh",
        "spinney exec --price m=1 -- ./agent.sh",
        "spinney exec --halt-wait never -- ./agent.sh",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
    assert!(!stage.home().exists(), "nothing was started");
}

#[test]
fn commands_that_need_no_home_say_why_they_cannot() {
    let stage = TestFolder::new();
    stage.file("there.yaml", "");
    stage.file("file", "");
    let lines = [
        "spinney init there.yaml",
        "spinney init tree.json",
        "spinney init file/below/tree.yaml",
        "spinney doctor nowhere.yaml",
        "spinney doctor there.yaml --timeout 2h",
        "spinney doctor there.yaml",
        "spinney check nowhere.yaml",
        "spinney check .",
    ];
    insta::assert_snapshot!(told(&stage, &lines));
    assert!(!stage.home().exists(), "nothing was started");
}
