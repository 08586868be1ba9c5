//! Programs as agents of a tree: scripts that call their models through the gateway, below a lead on a scripted model. A
//! token of output costs a tenth of a cent.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::exec::{CALLS, lives, nap, nap_seconds, until_gone, used};
use crate::test_folder::{Ended, Playing, TestFolder};
use crate::upstream::Upstream;

const USER_KEY: &str = "sk-the-users-own-key-0123456789";

/// A tree with a lead and programs, each a script that has its task in `$1`.
pub(crate) struct Team {
    pub(crate) stage: TestFolder,
    pub(crate) upstream: Upstream,
    pub(crate) file: String,
    allowed: Vec<String>,
}

impl Team {
    /// `rules` is the script of the lead.
    pub(crate) fn new(rules: &str, budget: &Value, programs: &[(&str, &str, Value)]) -> Self {
        let stage = TestFolder::new();
        let prices = "[prices.m]\ninput_per_mtok_usd = 0\noutput_per_mtok_usd = 1000\n";
        fs::create_dir_all(stage.folder().join("user/config/spinney")).unwrap();
        fs::write(stage.folder().join("user/config/spinney/config.toml"), prices).unwrap();
        stage.file("script.yaml", rules);
        let scripts = stage.folder().join("scripts");
        fs::create_dir_all(&scripts).unwrap();
        let lead = json!({ "model": "fast", "tools": ["spawn_agent", "wait_agent", "followup_task"] });
        let mut agents = serde_json::Map::from_iter([("lead".to_owned(), lead)]);
        let folder = scripts.to_str().unwrap().to_owned();
        let mut allowed = vec!["--read".to_owned(), folder.clone()];
        for (name, script, keys) in programs {
            let script = format!("{CALLS}\n{}", script.replace("NAP", &nap_seconds()));
            stage.file(&format!("scripts/{name}.sh"), &script);
            let mut agent = keys.clone();
            agent["program"] = json!(["bash", format!("./scripts/{name}.sh"), "{{ goal }}"]);
            agents.insert((*name).to_owned(), agent);
            allowed.extend([
                "--allow-box".to_owned(),
                format!("program:bash {folder}/{name}.sh {{{{ goal }}}}"),
            ]);
        }
        let price = json!({ "input_per_mtok_usd": 0, "output_per_mtok_usd": 0 });
        let tree = json!({
            "name": "team", "goal": "Build it.", "budget": budget, "read": ["scripts"], "entry": "lead",
            "models": { "fast": { "provider": "scripted", "script": "script.yaml", "context": 100_000, "price": price } },
            "agents": agents,
        });
        let file = stage.file("tree.json", &tree.to_string());
        Self { stage, upstream: Upstream::new(vec![used(100)]), file, allowed }
    }

    fn starts(&self, more: &[&str]) -> Playing {
        self.plays(&[&["--json"], more].concat())
    }

    fn plays(&self, options: &[&str]) -> Playing {
        let mut args = vec!["run", self.file.as_str()];
        args.extend(self.allowed.iter().map(String::as_str));
        args.extend(options);
        let address = self.upstream.url.strip_suffix("/v1").unwrap();
        self.stage.play_in(&args, &[("ANTHROPIC_API_KEY", USER_KEY), ("ANTHROPIC_BASE_URL", address)])
    }

    pub(crate) fn runs(&self) -> Ended {
        self.starts(&[]).end()
    }

    /// Resumes its tree, with what it was allowed.
    fn resumes(&self) -> Ended {
        let mut args = vec!["resume", "last", "--json"];
        args.extend(self.allowed.iter().map(String::as_str));
        let address = self.upstream.url.strip_suffix("/v1").unwrap();
        let environment = [("ANTHROPIC_API_KEY", USER_KEY), ("ANTHROPIC_BASE_URL", address)];
        self.stage.play_in(&args, &environment).end()
    }

    /// All events of one type.
    pub(crate) fn events(&self, kind: &str) -> Vec<Value> {
        let events = self.stage.spinney(&["events", "last", "--json"]);
        assert_eq!(events.code, Some(0), "{}", events.err);
        events.json().into_iter().filter(|event| event["type"] == kind).collect()
    }

    /// How an agent whose name begins so ended, and what it and everything below it spent.
    pub(crate) fn end(&self, agent: &str) -> (String, u64) {
        let ended = self.events("agent_ended");
        let is_it = |event: &&Value| event["agent"].as_str().is_some_and(|name| name.starts_with(agent));
        let event = ended.iter().find(is_it).unwrap_or_else(|| panic!("{agent}: {ended:?}"));
        let spent = event["spent"]["cost_nanos"].as_u64().unwrap_or_default();
        (event["exit"]["state"].as_str().unwrap().to_owned(), spent)
    }
}

/// A team whose coder is this script in the place of Claude Code.
pub(crate) struct Claude {
    pub(crate) team: Team,
    path: String,
}

impl Claude {
    pub(crate) fn new(team: Team, script: &str) -> Self {
        let script = format!("#!/bin/bash\nANTHROPIC_API_KEY=$ANTHROPIC_AUTH_TOKEN\n{CALLS}\n{script}");
        let bin = team.stage.folder().join("bin");
        fs::create_dir(&bin).unwrap();
        team.stage.file("bin/claude", &script);
        fs::set_permissions(bin.join("claude"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut tree: Value = serde_json::from_str(&fs::read_to_string(&team.file).unwrap()).unwrap();
        tree["agents"]["coder"]["program"] = json!("claude");
        team.stage.file("tree.json", &tree.to_string());
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", bin.display());
        Self { team, path }
    }

    /// Runs or resumes the tree, with what its user allows.
    pub(crate) fn plays(&self, words: &[&str]) -> Playing {
        let team = &self.team;
        let address = team.upstream.url.strip_suffix("/v1").unwrap();
        let environment =
            [("ANTHROPIC_API_KEY", USER_KEY), ("ANTHROPIC_BASE_URL", address), ("PATH", self.path.as_str())];
        let allowed = team.allowed.iter().map(String::as_str);
        let more = ["--json", "--allow-box", "program:claude"];
        let all: Vec<&str> = words.iter().copied().chain(allowed).chain(more).collect();
        team.stage.play_in(&all, &environment)
    }
}

fn spawn(agent: &str, goal: &str) -> String {
    format!("{{ tool: spawn_agent, args: {{ agent: {agent}, goal: {goal} }} }}")
}

/// Starts these at once, and says what came of the last.
fn rules(spawns: &[String]) -> String {
    format!(
        "rules:\n  - {{ when: {{ agent: lead, turn: 1 }}, call: [{}] }}\n  - {{ say: '{{{{ last }}}}' }}\n",
        spawns.join(", ")
    )
}

/// G29: a lead spawns a program. It runs in a box with the gateway and a key of its own, its model call is booked at it and
/// at the lead, and what it prints is its answer.
#[test]
fn g29_a_program_is_an_agent_that_a_lead_spawns() {
    let script = r#"
call 100 hello > /dev/null
echo "did: $1; key ${#ANTHROPIC_API_KEY}; home $(ls -A ~ | wc -l)"
cat /proc/self/environ | tr '\0' '\n' | grep -c sk-the-users
"#;
    let team = Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 1.2 }),
        &[("coder", script, json!({ "budget": { "cost_usd": 0.5 }, "prompt": "You write code." }))],
    );
    let ended = team.runs();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let result = ended.result();
    let output = result["output"].as_str().unwrap();
    assert!(output.contains("did: You write code.\n\nWrite it"), "{output}");
    assert_eq!(result["spent"]["cost_nanos"], json!(100_000_000), "{result}");
    let asked = team.upstream.asked();
    assert_eq!(asked.len(), 1);
    assert!(asked[0].head.contains(&format!("x-api-key: {USER_KEY}")), "{}", asked[0].head);
    assert_eq!(team.stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    let events = team.stage.said(&["events", "last"]);
    assert!(!events.contains(USER_KEY), "{events}");
}

/// G12: the key of its gateway, which a program prints, is in no answer and in no journal.
#[test]
fn g12_the_key_of_a_gateway_is_not_in_what_its_program_prints() {
    let script = "echo \"key: $ANTHROPIC_API_KEY\"; echo \"key: $ANTHROPIC_API_KEY\" >&2";
    let team = Team::new(
        &rules(&[spawn("coder", "Print")]),
        &json!({ "cost_usd": 1 }),
        &[("coder", script, json!({}))],
    );
    let ended = team.runs();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let shown = format!("{}{}", ended.out, team.stage.said(&["events", "last", "--json"]));
    assert!(shown.contains("key: [key]") && !shown.contains("sk-spinney-"), "{shown}");
}

/// A program is named by a step like any agent, gets its inputs, and its answer is the step's output.
#[test]
fn g29_a_step_of_a_pipeline_names_a_program() {
    let script = "call 100 hello > /dev/null\necho \"${1//$'\\n'/ }\"\n";
    let team =
        Team::new("rules:\n  - { say: parks }\n", &json!({ "cost_usd": 1 }), &[("coder", script, json!({}))]);
    let mut tree: Value = serde_json::from_str(&fs::read_to_string(&team.file).unwrap()).unwrap();
    let keys = tree.as_object_mut().unwrap();
    keys.remove("entry");
    keys.insert(
        "pipeline".to_owned(),
        json!({ "mode": "sequential", "steps": [
            { "id": "topic", "agent_id": "lead", "task_description": "Choose.", "output_to": "topic" },
            { "id": "code", "agent_id": "coder", "task_description": "Write it.", "input_from": ["topic"], "output_to": "code" },
        ] }),
    );
    team.stage.file("tree.json", &tree.to_string());
    let ended = team.runs();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let output = ended.result()["outputs"]["code"].to_string();
    assert!(output.contains("parks") && output.contains("Write it."), "{output}");
}

/// G10 (programs inside a tree): a sub-agent that a program names is an agent below it, and the sums are exact.
#[test]
fn g10_the_sub_agents_of_a_program_are_agents_below_it() {
    let script = "call 100 hello > /dev/null\nas_agent 100 sub > /dev/null\necho done\n";
    let team = Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 1.2 }),
        &[("coder", script, json!({ "budget": { "cost_usd": 0.5 } }))],
    );
    let ended = team.runs();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let spawned = team.events("agent_spawned");
    let coder = spawned.iter().find(|event| event["role"] == "coder" && event["parent"] == "lead").unwrap();
    let below = spawned.iter().find(|event| event["parent"] == coder["agent"]).unwrap();
    assert_eq!(below["role"], json!("coder"));
    let (coder, below) = (coder["agent"].as_str().unwrap(), below["agent"].as_str().unwrap());
    assert_eq!((team.end(coder).1, team.end(below).1), (200_000_000, 100_000_000));
    assert_eq!(team.end("lead").1, 200_000_000);
}

/// G11: a program at its own ceiling waits while another one finishes, and a raise lets it finish.
#[test]
fn g11_one_program_waits_at_its_ceiling_while_another_finishes() {
    let budget = json!({ "cost_usd": 0.5, "on_low": "halt" });
    let big = "call 600 hello > /dev/null\necho big is done\n";
    let small = "call 100 hello > /dev/null\necho small is done\n";
    let both = [spawn("big", "Write it"), spawn("small", "Read it")];
    let keys = json!({ "budget": budget });
    let team = Team::new(
        &rules(&both),
        &json!({ "cost_usd": 1.2 }),
        &[("big", big, keys.clone()), ("small", small, keys)],
    );
    let mut playing = team.starts(&[]);
    playing.until("\"why\":\"ceiling\"");
    playing.until("small is done");
    let big = team.events("agent_spawned").into_iter().find(|event| event["role"] == "big").unwrap();
    let raised = team.stage.spinney(&["budget", "last", big["agent"].as_str().unwrap(), "--add-usd", "0.2"]);
    assert_eq!(raised.code, Some(0), "{}{}", raised.out, raised.err);
    let ended = playing.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(
        (team.end("big"), team.end("small")),
        (("completed".to_owned(), 100_000_000), ("completed".to_owned(), 100_000_000))
    );
    assert!(team.events("tree_halted").is_empty());
}

/// G11: after its `halt_wait` the program reads our text, and what it says then is its partial result.
#[test]
fn g11_after_the_halt_wait_a_program_reads_our_text_and_its_result_is_partial() {
    let script = "call 600 hello | grep -o 'cost ceiling of[^\"]*'\necho this far\n";
    let budget = json!({ "cost_usd": 0.5, "on_low": "halt", "halt_wait": "50ms" });
    let team = Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 1.2 }),
        &[("coder", script, json!({ "budget": budget }))],
    );
    let ended = team.runs();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(team.end("coder"), ("exhausted".to_owned(), 0));
    let output = ended.result()["output"].as_str().unwrap().to_owned();
    assert!(output.contains("limit $0.50") && output.contains("this far"), "{output}");
    assert!(team.upstream.asked().is_empty());
}

/// G11: at the root's ceiling the tree is halted, and the process that runs it stays for as long as a program waits: a raise
/// from another terminal lets it finish.
#[test]
fn g11_a_halted_tree_stays_while_a_program_waits() {
    let team = halted_team("call 100 hello > /dev/null\ncall 600 hello > /dev/null\necho done\n", "1h");
    let mut playing = team.starts(&[]);
    playing.until("tree_halted");
    let told = playing.until_noted("continue with");
    assert!(told.contains("budget") && told.contains("--add-usd 0.05"), "{told}");
    let raised = team.stage.spinney(&["budget", "last", "--add-usd", "0.05"]);
    assert_eq!(raised.code, Some(0), "{}{}", raised.out, raised.err);
    let ended = playing.end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(team.end("coder"), ("completed".to_owned(), 200_000_000));
}

/// G11: a program that gives up at the root's ceiling has said what it has.
#[test]
fn g11_a_program_that_gives_up_at_the_roots_ceiling_is_exhausted() {
    let script =
        "call 100 hello > /dev/null\ncall 600 hello | grep -o 'cost ceiling of[^\"]*'\necho this far\n";
    let team = halted_team(script, "50ms");
    let ended = team.runs();
    // What the lead still does costs nothing, so the tree can end.
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(team.end("coder"), ("exhausted".to_owned(), 100_000_000));
    assert_eq!((team.events("tree_halted").len(), team.events("tree_unhalted").len()), (1, 1));
    assert_eq!(team.upstream.asked().len(), 1);
}

/// A tree whose root's ceiling halts it: after a call of $0.10 one of $0.60 needs $0.05 more.
fn halted_team(script: &str, halt_wait: &str) -> Team {
    let budget = json!({ "on_low": "halt", "halt_wait": halt_wait });
    Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 0.65, "answer_reserve": "0%" }),
        &[("coder", script, json!({ "budget": budget }))],
    )
}

/// O15: cancelling a tree ends everything that its programs started.
#[test]
fn o15_a_cancelled_tree_leaves_nothing_of_its_programs() {
    let script = "sleep NAP &\ncall 100 hello > /dev/null\nsetsid sleep NAP\n";
    let team = Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 1.2 }),
        &[("coder", script, json!({}))],
    );
    let playing = team.starts(&[]);
    team.upstream.was_asked(1);
    while !lives(&nap()) {
        std::thread::yield_now();
    }
    assert_eq!(team.stage.spinney(&["cancel", "last"]).code, Some(0));
    assert_eq!(playing.end().code, Some(4));
    until_gone(&nap());
    assert_eq!(team.end("coder").0, "cancelled");
}

/// A deadline of its agent ends a program.
#[test]
fn o15_the_timeout_of_an_agent_ends_its_program() {
    let team = Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 1.2 }),
        &[("coder", "sleep NAP\n", json!({ "budget": { "timeout": "300ms" } }))],
    );
    let ended = team.runs();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    until_gone(&nap());
    assert_eq!(team.end("coder").0, "failed");
}

/// G29: after kill -9 and resume everything is booked once, and nothing is started twice.
#[test]
fn g29_a_killed_process_leaves_no_program_and_starts_none_twice() {
    let script = "echo started >> outputs/starts\ncall 100 hello > /dev/null\nsleep NAP\n";
    let team = Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 1.2 }),
        &[("coder", script, json!({ "budget": { "cost_usd": 0.5 } }))],
    );
    let mut playing = team.starts(&[]);
    // The turn of the lead, and the call of the program.
    playing.until("call_ended");
    playing.until("call_ended");
    while !lives(&nap()) {
        std::thread::yield_now();
    }
    playing.kill();
    until_gone(&nap());
    let ended = team.resumes();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    assert_eq!(team.end("coder"), ("failed".to_owned(), 100_000_000));
    assert_eq!((team.upstream.asked().len(), team.end("lead").1), (1, 100_000_000));
    assert!(!lives(&nap()));
    let lost = team.events("agent_ended");
    assert!(lost.iter().any(|event| event["exit"]["error"]["code"] == "program_lost"), "{lost:?}");
}

/// G29: a program that named its session continues in it after kill -9: it is not told its task again, finds its home as it
/// left it, and what it used before and after is booked once.
#[test]
fn g29_a_killed_program_continues_in_its_session() {
    let team = Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 1.2 }),
        &[("coder", "", json!({ "budget": { "cost_usd": 0.5 } }))],
    );
    let claude = format!(
        r#"
if [[ " $* " == *" --resume s-1 "* ]]; then
    echo resumed >> ~/log
    call 100 hello > /dev/null
    echo "{{\"type\":\"result\",\"is_error\":false,\"result\":\"home: $(paste -sd' ' ~/log); told: ${{@: -1}}\"}}"
    exit
fi
echo started >> ~/log
echo '{{"type":"system","subtype":"init","session_id":"s-1"}}'
call 100 hello > /dev/null
sleep {}
"#,
        nap_seconds()
    );
    let claude = Claude::new(team, &claude);
    let team = &claude.team;
    let mut playing = claude.plays(&["run", &team.file]);
    playing.until("session_named");
    team.upstream.was_asked(1);
    while !lives(&nap()) {
        std::thread::yield_now();
    }
    playing.kill();
    until_gone(&nap());
    let ended = claude.plays(&["resume", "last"]).end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let output = ended.result()["output"].as_str().unwrap().to_owned();
    assert!(output.starts_with("home: started resumed; told: You were interrupted."), "{output}");
    assert_eq!(team.end("coder"), ("completed".to_owned(), 200_000_000));
    assert_eq!(team.upstream.asked().len(), 2);
    assert_eq!(team.events("session_named").len(), 1);
    assert_eq!(team.stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// G29: ten programs at once leave no process, no descriptor and no port in the process that ran them.
#[test]
fn g29_ten_programs_leave_no_process_descriptor_or_port() {
    let ten: Vec<String> = (0..10).map(|at| spawn("coder", &format!("Write part {at}"))).collect();
    let asks = "{ tool: ask_human, args: { question: Go on? } }";
    let turn = |turn: u32, calls: &str| {
        format!("  - {{ when: {{ agent: lead, turn: {turn} }}, call: [{calls}] }}\n")
    };
    let turns = [turn(1, &ten[0]), turn(2, asks), turn(3, &ten.join(", ")), turn(4, asks)];
    let script = "call 100 hello > /dev/null\nsleep NAP &\necho done\n";
    let team = Team::new(
        &format!("rules:\n{}  - {{ say: Done. }}\n", turns.concat()),
        &json!({ "cost_usd": 9 }),
        &[("coder", script, json!({}))],
    );
    let mut tree: Value = serde_json::from_str(&fs::read_to_string(&team.file).unwrap()).unwrap();
    tree["agents"]["lead"]["tools"] = json!(["spawn_agent", "ask_human"]);
    team.stage.file("tree.json", &tree.to_string());
    let started = team.plays(&["--detach"]).end();
    assert_eq!(started.code, Some(0), "{}{}", started.out, started.err);
    let runs = process_with(&["--detached", &team.file]).unwrap();
    let mut events = team.stage.play(&["events", "last", "--follow", "--json"]);
    events.until("question_asked");
    until_gone(&nap());
    let after_one = fs::read_dir(format!("/proc/{runs}/fd")).unwrap().count();
    assert_eq!(team.stage.spinney(&["answer", "last", "Yes."]).code, Some(0));
    events.until("question_asked");
    until_gone(&nap());
    // Connections of the programs may still be closing.
    while fs::read_dir(format!("/proc/{runs}/fd")).unwrap().count() > after_one {
        std::thread::yield_now();
    }
    assert_eq!(listening_ports(runs), 0);
    assert_eq!(team.stage.spinney(&["answer", "last", "Yes."]).code, Some(0));
    events.until("\"type\":\"agent_ended\",");
    assert_eq!(events.end().code, Some(0));
    assert_eq!(team.end("lead").1, 1_100_000_000);
    assert_eq!(team.upstream.asked().len(), 11);
}

/// The process with these words in its command line.
fn process_with(words: &[&str]) -> Option<u32> {
    let processes = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    let mut ids = processes.filter_map(|process| process.file_name().to_str()?.parse::<u32>().ok());
    ids.find(|id| {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let command = String::from_utf8_lossy(&command).into_owned();
        words.iter().all(|word| command.split('\0').any(|part| part == *word))
    })
}

/// How many TCP ports a process listens on.
fn listening_ports(process: u32) -> usize {
    let sockets = fs::read_dir(format!("/proc/{process}/fd")).unwrap().filter_map(Result::ok);
    let sockets = sockets.filter_map(|socket| fs::read_link(socket.path()).ok());
    let sockets: Vec<String> = sockets.map(|socket| socket.display().to_string()).collect();
    let tcp = fs::read_to_string("/proc/net/tcp").unwrap();
    let listens = tcp.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let listens = listens.filter(|line| line.get(3) == Some(&"0A") && line.len() > 9);
    listens.filter(|line| sockets.contains(&format!("socket:[{}]", line[9]))).count()
}

/// A file alone starts no program: the whole command is shown, and the option that allows it.
#[test]
fn g24_a_program_of_a_file_is_asked_for_first() {
    let team = Team::new(
        &rules(&[spawn("coder", "Write it")]),
        &json!({ "cost_usd": 1.2 }),
        &[("coder", "echo never\n", json!({}))],
    );
    let scripts = team.stage.folder().join("scripts");
    let refused = team.stage.spinney(&["run", &team.file, "--read", scripts.to_str().unwrap()]);
    assert_eq!(refused.code, Some(2), "{}{}", refused.out, refused.err);
    assert!(refused.err.contains("start the program `bash "), "{}", refused.err);
    assert!(refused.err.contains("--allow-box 'program:bash "), "{}", refused.err);
}

/// A tree whose program would get no answer does not start, and says which key is missing.
#[test]
fn a_tree_does_not_start_without_the_keys_of_its_programs() {
    let stage = TestFolder::new();
    let tree = stage.tree("spawn_agent", "rules: [ { say: Done. } ]");
    let text = fs::read_to_string(&tree).unwrap() + "  coder: { program: codex }\nentry: lead\n";
    fs::write(&tree, text).unwrap();
    let ended = stage.spinney(&["run", &tree, "--allow-box", "program:codex"]);
    assert_eq!(ended.code, Some(2), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("no key for codex: set OPENAI_API_KEY"), "{}", ended.err);
    let listed = stage.spinney(&["ps"]);
    assert!(listed.err.contains("has no trees yet"), "{}{}", listed.out, listed.err);
}
