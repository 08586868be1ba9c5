//! Rule `verbs`: one verb, one file, in the kernel's two folders.

use super::{NOTHING, found};

const MOD: &str = "crates/kernel/src/rules/request/mod.rs";
const SPAWN: &str = "crates/kernel/src/rules/request/spawn_agent.rs";

#[test]
fn a_verb_that_is_not_declared_is_found() {
    assert_eq!(
        found("verbs", &[(MOD, "mod cancel;"), (SPAWN, "pub(crate) struct SpawnAgent;")]),
        [
            "crates/kernel/src/rules/request/spawn_agent.rs:1: verbs: crates/kernel/src/rules/request/mod.rs does not \
          name `spawn_agent`, so nothing compiles it; declare the module there, with its match arm, or \
          delete the file"
        ]
    );
}

#[test]
fn a_file_of_two_verbs_is_found() {
    let text = "pub struct SpawnAgent;\npub struct CancelAgent;\n";
    assert_eq!(
        found("verbs", &[(MOD, "mod spawn_agent;"), (SPAWN, text)]),
        ["crates/kernel/src/rules/request/spawn_agent.rs:1: verbs: the file must offer one struct \
          `SpawnAgent`, not [\"SpawnAgent\", \"CancelAgent\"]; name file and struct after the one verb, \
          and move others to files of their own"]
    );
}

#[test]
fn one_verb_with_its_private_parts_is_fine() {
    let files = [
        (MOD, "pub(crate) mod spawn_agent;\n#[cfg(test)]\nmod tests;"),
        (SPAWN, "pub struct SpawnAgent { goal: Goal }\nstruct Goal;\npub enum SpawnRefusal {}\n"),
        ("crates/kernel/src/rules/request/tests.rs", ""),
        ("crates/kernel/src/rules/report/mod.rs", "mod model_ended;"),
        ("crates/kernel/src/rules/report/model_ended.rs", "pub struct ModelEnded;"),
        ("crates/runtime/src/request/other.rs", ""),
    ];
    assert_eq!(found("verbs", &files), NOTHING);
}
