//! The recipes of `docs/exec.md` for programs that read no base URL: each is run as the page has it. A stand-in plays the
//! program, and takes the address and the key from where the real one does; `peers/recipes.rs` runs the real ones.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::exec::{CALLS, used};
use crate::exec_refused::last_line;
use crate::test_folder::{Ended, NO_SERVER, TestFolder};
use crate::upstream::{Reply, Upstream};

/// A recipe: the program that it is for, and its command.
pub(crate) struct Recipe {
    pub(crate) program: &'static str,
    pub(crate) command: String,
}

/// Writes the files of the section into a folder, and returns its recipes, on a port that is free.
pub(crate) fn recipes(folder: &Path) -> Vec<Recipe> {
    const PROGRAMS: [&str; 7] = ["aider", "pi", "cn", "cline", "copilot", "gemini", "node"];
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/exec.md");
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let page = fs::read_to_string(page).unwrap().replace("127.0.0.1:4100", &format!("127.0.0.1:{port}"));
    let (_, section) = page.split_once("## Programs that read no base URL").unwrap();
    let section = section.split("\n## ").next().unwrap();
    let mut commands = Vec::new();
    for block in section.split("```").skip(1).step_by(2) {
        let (info, text) = block.split_once('\n').unwrap();
        match info.split_once(' ') {
            Some((_, file)) => {
                fs::create_dir_all(folder.join(file).parent().unwrap()).unwrap();
                fs::write(folder.join(file), text).unwrap();
            }
            None => commands.push(text.trim().to_owned()),
        }
    }
    assert_eq!(commands.len(), PROGRAMS.len(), "{commands:#?}");
    let of = |program: &'static str| {
        let is_its = |command: &&String| {
            command.contains(&format!(" {program} ")) || command.contains(&format!("'{program} "))
        };
        let command =
            commands.iter().find(is_its).unwrap_or_else(|| panic!("no recipe for {program}")).clone();
        Recipe { program, command }
    };
    PROGRAMS.map(of).into()
}

/// Runs a recipe in a shell that finds these programs first, and gives its result as JSON.
pub(crate) fn run(
    stage: &TestFolder,
    recipe: &Recipe,
    programs: &Path,
    environment: &[(&str, &str)],
) -> Ended {
    let command = recipe.command.replacen("spinney exec", "spinney exec --json --price '*=0,1'", 1);
    let binary = Path::new(env!("CARGO_BIN_EXE_spinney")).parent().unwrap();
    let mut shell = Command::new("bash");
    shell.args(["-c", r#"PATH="$1:$2:$PATH"; eval "$3""#, "bash"]).arg(programs).arg(binary).arg(command);
    shell.env_remove("SPINNEY_HOME").envs(stage.user_folders()).envs(environment.iter().copied());
    shell.current_dir(stage.folder()).stdin(std::process::Stdio::null());
    Ended::from(shell.output().unwrap())
}

/// What a stand-in does: it sets `at`, the address of its provider without `/v1`, and `key`, and makes one call.
const STAND_INS: [(&str, &str); 7] = [
    ("aider", "at=${2%/v1} key=$4"),
    ("pi", r#"at=$(grep -o 'http://[^"]*' "$PI_CODING_AGENT_DIR/models.json") key=$ANTHROPIC_API_KEY"#),
    ("cn", r#"at=$(sed -n 's/.*apiBase: //p' "$2") at=${at%/v1/} key=$ANTHROPIC_API_KEY"#),
    (
        "cline",
        r#"if [ "$3" = auth ]; then mkdir -p "$2"; echo "$9" > "$2/at"; echo "$7" > "$2/key"; exit; fi
           at=$(cat "$2/at") at=${at%/v1} key=$(cat "$2/key")"#,
    ),
    ("copilot", "at=${COPILOT_PROVIDER_BASE_URL%/v1} key=$COPILOT_PROVIDER_API_KEY"),
    (
        "gemini",
        r#"grep -q '"gemini-api-key"' "$GEMINI_CLI_HOME/.gemini/settings.json" || exit
           at=$GOOGLE_GEMINI_BASE_URL key=$GEMINI_API_KEY"#,
    ),
    ("node", "at=${OPENAI_BASE_URL%/v1} key=$OPENAI_API_KEY"),
];

#[test]
fn each_recipe_of_the_page_leads_its_program_to_the_gateway() {
    let (stage, upstream) = (TestFolder::new(), Upstream::new(vec![used(10)]));
    let programs = stage.folder().join("programs");
    fs::create_dir(&programs).unwrap();
    for (name, finds) in STAND_INS {
        let script = format!(
            "#!/bin/bash\n{CALLS}\n{finds}\nANTHROPIC_BASE_URL=$at ANTHROPIC_API_KEY=$key call 10 hello\n"
        );
        fs::write(programs.join(name), script).unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let keys = [
        ("ANTHROPIC_API_KEY", "sk-1"),
        ("OPENAI_API_KEY", "sk-2"),
        ("ANTHROPIC_BASE_URL", upstream.url.as_str()),
    ];
    for recipe in recipes(stage.folder()) {
        let ended = run(&stage, &recipe, &programs, &keys);
        let (program, result) = (recipe.program, last_line(&ended));
        assert_eq!(
            (ended.code, &result["requests"]),
            (Some(0), &json!(1)),
            "{program}: {} {}",
            ended.out,
            ended.err
        );
        assert!(ended.out.contains("used 10"), "{program}: {}", ended.out);
    }
    assert_eq!(upstream.asked().len(), STAND_INS.len());
}

/// What Copilot finds: the format of a key that there is, or the one that the user chose; never the user's own server.
#[test]
fn copilot_finds_the_gateway_and_no_key_of_the_user() {
    let stage = TestFolder::new();
    let program = stage.file("program.sh", "env | grep ^COPILOT_ | sort\n");
    let own = [
        ("COPILOT_PROVIDER_BASE_URL", "https://own.example"),
        ("COPILOT_PROVIDER_BEARER_TOKEN", "mine"),
        ("COPILOT_PROVIDER_API_KEY_COMMAND", "cat key"),
        ("COPILOT_PROVIDER_WIRE_API", "responses"),
        ("COPILOT_MODEL", "gpt-5-mini"),
    ];
    let seen = |more: &[(&str, &str)]| {
        let environment = [&own[..], more].concat();
        stage.play_in(&["exec", "--budget-usd", "1", "--", "bash", &program], &environment).end().out
    };
    let open_ai = seen(&[("OPENAI_API_KEY", "sk-2"), ("ANTHROPIC_API_KEY", "sk-1")]);
    assert!(open_ai.contains("COPILOT_PROVIDER_TYPE=openai") && open_ai.contains("/v1\n"), "{open_ai}");
    assert!(open_ai.contains("COPILOT_PROVIDER_API_KEY=sk-spinney-"), "{open_ai}");
    for kept in ["COPILOT_PROVIDER_WIRE_API=responses", "COPILOT_MODEL=gpt-5-mini"] {
        assert!(open_ai.contains(kept), "{open_ai}");
    }
    for gone in ["own.example", "mine", "cat key"] {
        assert!(!open_ai.contains(gone), "{open_ai}");
    }
    let anthropic = seen(&[("ANTHROPIC_API_KEY", "sk-1")]);
    assert!(
        anthropic.contains("COPILOT_PROVIDER_TYPE=anthropic") && !anthropic.contains("/v1\n"),
        "{anthropic}"
    );
    let chosen = seen(&[
        ("OPENAI_API_KEY", "sk-2"),
        ("ANTHROPIC_API_KEY", "sk-1"),
        ("COPILOT_PROVIDER_TYPE", "anthropic"),
    ]);
    assert!(chosen.contains("COPILOT_PROVIDER_TYPE=anthropic"), "{chosen}");
}

/// A port that is taken is an error before anything starts; one that is free is kept for the next time.
#[test]
fn a_port_of_the_gateway_is_taken_before_the_run_starts_and_kept() {
    let stage = TestFolder::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let at = taken.local_addr().unwrap().to_string();
    let refused = stage.play_in(&["exec", "--listen", &at, "--", "true"], &NO_SERVER).end();
    assert_eq!((refused.code, refused.out.as_str()), (Some(2), ""), "{}", refused.err);
    assert!(refused.err.contains(&format!("cannot listen on {at}")), "{}", refused.err);
    assert!(!stage.home().exists(), "nothing was started");
    drop(taken);
    let script = "echo $ANTHROPIC_BASE_URL; kill -INT $$";
    let first = stage.play_in(&["exec", "--listen", &at, "--", "bash", "-c", script], &NO_SERVER).end();
    assert_eq!(first.out.trim(), format!("http://{at}"), "{}", first.err);
    let again = stage.play_in(&["exec", "--resume", "last"], &NO_SERVER).end();
    assert_eq!(again.out.trim(), format!("http://{at}"), "{}", again.err);
    // Requests without the key of the run are not served there.
    let upstream = Upstream::new(vec![Reply::error("500", "", "not asked")]);
    let script = stage.file("stranger.sh", &format!("{CALLS}\nANTHROPIC_API_KEY=sk-other call 10 one"));
    let environment = [("ANTHROPIC_API_KEY", "sk-1"), ("ANTHROPIC_BASE_URL", upstream.url.as_str())];
    let stranger = stage.play_in(&["exec", "--listen", &at, "--", "bash", &script], &environment).end();
    assert!(stranger.out.contains("401 Unauthorized"), "{}", stranger.out);
    assert_eq!(upstream.asked().len(), 0);
}
