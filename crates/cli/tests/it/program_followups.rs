//! Follow-ups of agents that are programs: the program continues in its session where its files are, and begins anew with what
//! was said where they are not.

use serde_json::{Value, json};

use crate::exec::{lives, nap, nap_seconds, until_gone};
use crate::programs::{Claude, Team};

/// Spawns the coder, and gives it follow-ups.
const RULES: &str = "rules:
  - { when: { agent: lead, turn: 1 }, call: [{ tool: spawn_agent, args: { agent: coder, goal: Write it., id: first } }] }
  - { when: { agent: lead, turn: 2 }, call: [{ tool: followup_task, args: { agent: first, task: Test it. } }] }
  - { when: { agent: lead, turn: 3 }, call: [{ tool: followup_task, args: { agent: first-2, task: Ship it. } }] }
  - { say: '{{ last }}' }
";

/// Keeps its session where Claude Code does: by the name of the folder in which it begins.
const SESSION: &str = r#"
project=~/.claude/projects/$(pwd -P | sed 's/[^A-Za-z0-9]/-/g')
session=$project/s-1.jsonl
mkdir -p "$project"
for last; do :; done
if [[ " $* " == *" --resume "* ]]; then
    [[ -f $session ]] || { echo "No conversation found" >&2; exit 1; }
elif [[ -e $session ]]; then
    exit 2
fi
echo '{"type":"system","subtype":"init","session_id":"s-1"}'
call 100 hello > /dev/null
printf '%s|' "${last//$'\n'/ }" >> "$session"
"#;
const ANSWER: &str =
    r#"echo "{\"type\":\"result\",\"is_error\":false,\"result\":\"told $(cat "$session")\"}""#;

fn team(script: &str) -> Team {
    team_of(RULES, script)
}

fn team_of(rules: &str, script: &str) -> Team {
    let keys = json!({ "budget": { "cost_usd": 0.5 }, "prompt": "You write code." });
    Team::new(rules, &json!({ "cost_usd": 1.2 }), &[("coder", script, keys)])
}

/// How the follow-ups began.
fn starts(team: &Team) -> Vec<(Value, Value)> {
    let started = team.events("followup_started").into_iter();
    started.map(|event| (event["of"].clone(), event["start"].clone())).collect()
}

/// G29: a program with a follow-up, and with another one, knows what was said in its session. It is told the new task alone.
#[test]
fn g29_a_followup_of_a_program_continues_in_its_session() {
    let claude = Claude::new(team(""), &format!("{SESSION}{ANSWER}"));
    let ended = claude.plays(&["run", &claude.team.file]).end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let output = ended.result()["output"].as_str().unwrap().to_owned();
    assert!(output.contains("told You write code.  Write it.|Test it.|Ship it.|"), "{output}");
    let session = json!({ "session": "s-1" });
    assert_eq!(starts(&claude.team), [(json!("first"), session.clone()), (json!("first-2"), session)]);
    assert_eq!(claude.team.end("lead").1, 300_000_000, "each is booked once");
    let events = claude.team.stage.said(&["events", "last"]);
    assert!(events.contains("it continues in the session s-1 of first"), "{events}");
    assert_eq!(claude.team.stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
}

/// G29: a program that was killed with a follow-up continues in the same session, is told that it was interrupted and its last
/// task, which the session may not have, and everything is booked once.
#[test]
fn g29_a_killed_followup_continues_in_its_session() {
    let hang = format!(
        "if [[ \" $* \" == *\" --resume \"* && ! -e ~/hung ]]; then touch ~/hung; sleep {}; fi\n",
        nap_seconds()
    );
    let rules = RULES.replace("turn: 3", "turn: 99");
    let claude = Claude::new(team_of(&rules, ""), &format!("{SESSION}{hang}{ANSWER}"));
    let mut playing = claude.plays(&["run", &claude.team.file]);
    playing.until("followup_started");
    claude.team.upstream.was_asked(2);
    while !lives(&nap()) {
        std::thread::yield_now();
    }
    playing.kill();
    until_gone(&nap());
    let ended = claude.plays(&["resume", "last"]).end();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let output = ended.result()["output"].as_str().unwrap().to_owned();
    let said = ["Write it.|Test it.|You were interrupted.", "Your last task was:", "Test it.|"];
    let places = said.map(|text| output.rfind(text).unwrap_or_else(|| panic!("{text}: {output}")));
    assert!(places.is_sorted(), "{output}");
    assert_eq!((starts(&claude.team).len(), claude.team.upstream.asked().len()), (1, 3));
    assert_eq!(claude.team.end("lead").1, 300_000_000);
}

/// G29: without the files of its session, or with a link in their place, it begins anew, is told what was said, and the journal
/// says why.
#[test]
fn g29_a_followup_without_the_files_of_its_session_begins_anew() {
    for gone in ["rm -r ~/.claude", r#"cp "$session" ~/kept; ln -sf ~/kept "$session""#] {
        let claude = Claude::new(team(""), &format!("{SESSION}{ANSWER}\n{gone}\n"));
        let ended = claude.plays(&["run", &claude.team.file]).end();
        assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
        let output = ended.result()["output"].as_str().unwrap().to_owned();
        let said = ["You continue earlier work", "Write it.", "Test it.", "Your new task:", "Ship it."];
        let places = said.map(|text| output.find(text).unwrap_or_else(|| panic!("{text}: {output}")));
        assert!(places.is_sorted(), "{output}");
        let anew = json!({ "anew": "gone" });
        assert_eq!(starts(&claude.team), [(json!("first"), anew.clone()), (json!("first-2"), anew)]);
        let events = claude.team.stage.said(&["events", "last"]);
        let line = "it begins anew and is told what first was told and answered, because the files of its session are gone";
        assert!(events.contains(line), "{events}");
    }
}

/// G29: a program of one's own has no sessions, so it is always told what was said.
#[test]
fn g29_a_followup_of_ones_own_program_is_told_what_was_said() {
    let team = team("call 100 hello > /dev/null\necho \"told ${1//$'\\n'/ }\"\n");
    let ended = team.runs();
    assert_eq!(ended.code, Some(0), "{}{}", ended.out, ended.err);
    let output = ended.result()["output"].as_str().unwrap().to_owned();
    let said = ["You write code.", "Write it.", "You answered:", "Test it.", "Your new task:", "Ship it."];
    let places = said.map(|text| output.find(text).unwrap_or_else(|| panic!("{text}: {output}")));
    assert!(places.is_sorted(), "{output}");
    let anew = json!({ "anew": "unsupported" });
    assert_eq!(starts(&team), [(json!("first"), anew.clone()), (json!("first-2"), anew)]);
}
