//! Attempts to get out of a box, and the helper of the boxes in which they are made.
//!
//! `attempts run TIER WORKSPACE PROGRAM …` runs a program in a box. `attempts table TIER SCENE [STEP [ABI]]` makes every
//! attempt, or every STEP-th one, each in a box, as on a kernel with that version of Landlock; `attempts unboxed SCENE` makes
//! them without one. `attempts try ROW SCENE …` is one attempt from inside. `attempts ways SCENE [STEP]` tries the ways out
//! of a box that is connected to some hosts, and `attempts way WAY …` is one of them. `attempts hold COUNT TIER
//! WORKSPACE` keeps boxes busy until it is killed.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "what was tried is read from the output")]
#![expect(clippy::disallowed_methods, reason = "an attempt looks at the variables that it has")]

mod acts;
mod calls;
mod folder_rows;
mod rows;
mod runner;
mod scene;
mod ways;
mod ways_runner;

use std::ffi::OsString;
use std::process::ExitCode;

use spinney_drivers::sandbox::{BoxTierChoice, guard_a_box};

use crate::scene::Scene;
use crate::ways::WayScene;

fn main() -> ExitCode {
    if let Some(exit) = guard_a_box() {
        return exit;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["run", tier, workspace, command @ ..] => {
            let command: Vec<OsString> = command.iter().map(OsString::from).collect();
            runner::run(choice(tier), workspace.as_ref(), &command)
        }
        ["table", tier, scene] => runner::table(choice(tier), scene.as_ref(), 1, u32::MAX),
        ["table", tier, scene, step] => {
            runner::table(choice(tier), scene.as_ref(), step.parse().unwrap(), u32::MAX)
        }
        ["table", tier, scene, step, abi] => {
            runner::table(choice(tier), scene.as_ref(), step.parse().unwrap(), abi.parse().unwrap())
        }
        ["unboxed", scene] => runner::unboxed(scene.as_ref()),
        ["hold", count, tier, workspace] => {
            runner::hold(count.parse().unwrap(), choice(tier), workspace.as_ref())
        }
        ["try", row, scene @ ..] => rows::attempt(row, &Scene::from_words(scene)),
        ["ways", scene] => ways_runner::table(scene.as_ref(), 1),
        ["ways", scene, step] => ways_runner::table(scene.as_ref(), step.parse().unwrap()),
        ["way", way, root, tcp, abstract_name] => {
            let (tcp, abstract_name) = (tcp.parse().unwrap(), (*abstract_name).to_owned());
            ways::attempt(way, &WayScene { root: root.into(), tcp, abstract_name })
        }
        ["bomb", kind] => rows::bomb(kind),
        _ => ExitCode::from(2),
    }
}

fn choice(tier: &str) -> BoxTierChoice {
    match tier {
        "1" => BoxTierChoice::WithoutNamespaces,
        "2" => BoxTierChoice::Namespaces,
        _ => BoxTierChoice::Best,
    }
}
