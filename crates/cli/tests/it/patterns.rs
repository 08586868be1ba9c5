//! The scenarios of `examples/scenarios` that are pipelines, or that wait for people: each file is run as people run it, and
//! does what its first lines say.

use serde_json::{Value, json};

use crate::test_folder::{Ended, TestFolder};

fn file(name: &str) -> String {
    format!("{}/../../examples/scenarios/{name}.yaml", env!("CARGO_MANIFEST_DIR"))
}

/// Runs a scenario to its end.
fn run(stage: &TestFolder, name: &str, code: i32) -> Ended {
    let ended = stage.spinney(&["run", &file(name), "--json"]);
    assert_eq!(ended.code, Some(code), "{} {}", ended.out, ended.err);
    ended
}

fn of_type<'a>(events: &'a [Value], kind: &str) -> Vec<&'a Value> {
    events.iter().filter(|event| event["type"] == json!(kind)).collect()
}

/// The values of a key in the events of a type, in order.
fn all(ended: &Ended, kind: &str, key: &str) -> Vec<Value> {
    of_type(&ended.json(), kind).iter().map(|event| event[key].clone()).collect()
}

/// What agents that work at the same time spawned, or did, in a fixed order.
fn sorted(mut values: Vec<Value>) -> Vec<Value> {
    values.sort_by_key(Value::to_string);
    values
}

/// The number of the first event of this type about an agent.
fn place(ended: &Ended, kind: &str, agent: &str) -> u64 {
    let is = |event: &&Value| event["type"] == json!(kind) && event["agent"] == json!(agent);
    ended.json().iter().find(is).unwrap_or_else(|| panic!("no {kind} of {agent}"))["seq"].as_u64().unwrap()
}

/// The messages that an agent read, as text.
fn read(stage: &TestFolder, agent: &str) -> String {
    let shown = stage.spinney(&["show", "last", agent, "--json"]).json();
    shown.iter().map(|message| format!("{}\n", message["text"].as_str().unwrap_or_default())).collect()
}

/// What the result says must be what the costs of its agents add up to.
fn assert_costs_add_up(stage: &TestFolder, ended: &Ended) {
    let costs = stage.spinney(&["costs", "last", "--json"]).result();
    let agents = costs["agents"].as_array().unwrap();
    let of_agents: u64 = agents.iter().map(|row| row["spent"]["cost_nanos"].as_u64().unwrap()).sum();
    let total = &ended.result()["spent"]["cost_nanos"];
    assert_eq!((total, &costs["total"]["spent"]["cost_nanos"]), (&json!(of_agents), total));
    assert_ne!(of_agents, 0);
}

/// S1: three steps in sequence; each reads the output of the one before it, and an input gives another result.
#[test]
fn s1_each_step_of_a_sequence_starts_from_the_output_before_it() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s01-sequence", 0);
    let plan = "Saturday, dig the trench. Sunday, plant and water. All the material comes on Friday.";
    assert_eq!(ended.result()["output"], json!(plan));
    assert_eq!(ended.result()["succeeded"], json!(["choose", "measure", "plan"]));
    let goals = all(&ended, "agent_spawned", "goal");
    assert_eq!(goals[2], json!("What does a hedge of ten metres of hornbeam need?"));
    assert!(read(&stage, "plan").contains("40 plants of hornbeam"), "{}", read(&stage, "plan"));
    for (before, after) in [("choose", "measure"), ("measure", "plan")] {
        assert!(place(&ended, "agent_ended", before) < place(&ended, "agent_spawned", after));
    }
    assert_costs_add_up(&stage, &ended);
    let dry =
        stage.spinney(&["run", &file("s01-sequence"), "--set", "soil=light and dry", "--json"]).result();
    assert_eq!(dry["outputs"]["species"], json!("field maple"));
}

/// S6: the answer of one step decides which agent works next; an answer without a case goes to `else`.
#[test]
fn s6_the_next_agent_is_chosen_by_a_result() {
    let stage = TestFolder::new();
    for (ticket, kind, step, rest) in [
        ("I was charged twice.", "billing", "refund", ["diagnose", "reply"]),
        ("The app crashes.", "bug", "diagnose", ["refund", "reply"]),
        ("Do you ship to Crete?", "other", "reply", ["refund", "diagnose"]),
    ] {
        let ticket = format!("ticket={ticket}");
        let ended = stage.spinney(&["run", &file("s06-choose"), "--set", &ticket, "--json"]);
        let result = ended.result();
        assert_eq!(
            (ended.code, &result["outputs"]["sorted"]),
            (Some(0), &json!({ "kind": kind })),
            "{}",
            ended.err
        );
        assert_eq!((&result["succeeded"], &result["skipped"]), (&json!(["sort", step]), &json!(rest)));
        assert_eq!(
            all(&ended, "agent_spawned", "agent"),
            ["pipeline", "sort", step],
            "nobody else was started"
        );
        assert_eq!(result["output"], result["outputs"]["answer"]);
    }
}

/// S7 (the example): a person watches, leaves and comes back, and has every line once. The tree does not wait for them.
#[test]
fn s7_the_example_continues_while_its_watcher_is_away() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &file("s07-leave-and-return"), "--json"]);
    running.until("scan_boxes");
    let mut watcher = stage.play(&["events", "last", "--follow"]);
    watcher.until("calls scan_boxes");
    let seen = watcher.said();
    watcher.kill();
    let from =
        seen.lines().filter_map(|line| line.split_whitespace().next()?.parse::<u64>().ok()).max().unwrap();
    let back = stage.play(&["events", "last", "--follow", "--from", &(from + 1).to_string()]).end();
    let ended = running.end();
    let wanted = "Four decades of letters, plans and council minutes, most of them from the 1970s.";
    assert_eq!((ended.code, &ended.result()["output"]), (Some(0), &json!(wanted)));
    assert_eq!(ended.result()["outputs"]["entries"][2], json!("1970s: 31 boxes"));
    assert_eq!(seen + &back.out, stage.spinney(&["events", "last"]).out);
}

/// S10: a reader whose turns are used up answers with what it has, marked as partial; the next one gets that, and reads
/// nothing twice.
#[test]
fn s10_the_next_agent_continues_from_partial_output() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s10-partial", 0);
    assert_eq!(
        ended.result()["output"],
        json!("All three are counted. School 312, library 198, town hall 405.")
    );
    let first = stage.results("lead")[0]["text"].as_str().unwrap().to_owned();
    assert_eq!(
        first,
        "first failed (max_steps: no answer after 3 turns, the most allowed: raise `limits.max_steps`, or ask for less); \
         partial result:\nSchool 312, library 198. The town hall is still to be read."
    );
    assert_eq!(all(&ended, "agent_spawned", "goal")[2], json!(format!("Read what is missing here: {first}")));
    let stations: Vec<String> = ["first", "second"]
        .iter()
        .flat_map(|agent| stage.results(agent))
        .map(|result| result["text"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(stations, ["school: 312 votes", "library: 198 votes", "town hall: 405 votes"]);
    assert_costs_add_up(&stage, &ended);
}

/// S11: a question from two levels down reaches the top with its path; a wrong number is refused; after the answer only
/// what comes next is done, and nothing is counted again.
#[test]
fn s11_a_person_is_asked_from_deep_in_a_chain() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s11-ask-from-below", 5);
    let questions = ended.result()["questions"].clone();
    assert_eq!(ended.result()["state"], json!("waiting"));
    assert_eq!(questions[0]["path"], json!("host/office/buyer"));
    assert_eq!(questions[0]["text"], json!("Benches or folding chairs, for 80 guests?"));
    let number = questions[0]["question"].to_string();
    assert_eq!(stage.spinney(&["answer", "last", "77", "Benches"]).code, Some(2));
    assert_eq!(stage.spinney(&["answer", "last", &number, "Benches"]).code, Some(0));
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!(resumed.result()["output"], json!("80 seats, as you wish: Benches"), "{}", resumed.err);
    assert_eq!(resumed.result()["spent"]["tool_calls"], json!(1), "the guests were counted once");
    assert_eq!(resumed.result()["agents"], json!(3));
    assert_eq!(stage.spinney(&["answer", "last", &number, "Chairs"]).code, Some(2), "it has been answered");
}

/// S5, O23: three peers without a master write to each other and agree. All are below one root with one trace and one
/// budget; when every one waits, nobody is left who could write, and they end.
#[test]
fn s5_peers_agree_without_a_master() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s05-peers", 0);
    assert_eq!(
        ended.result()["outputs"],
        json!({ "ann": "Thursday.", "bob": "Thursday.", "eve": "Thursday." })
    );
    let paths = sorted(all(&ended, "agent_spawned", "path"));
    assert_eq!(paths, ["pipeline", "pipeline/ann", "pipeline/bob", "pipeline/eve"]);
    assert_eq!(all(&ended, "message_sent", "to").len(), 6);
    let ends = all(&ended, "call_ended", "outcome");
    let count = |end: &str| ends.iter().filter(|outcome| outcome["end"] == json!(end)).count();
    assert_eq!(count("nobody_left"), 3, "each was told once: {ends:?}");
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    // Killed while they talk, they agree as well, and no message is sent twice.
    let mut running = stage.play(&["run", &file("s05-peers")]);
    running.until("bob");
    running.kill();
    let resumed = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!(resumed.code, Some(0), "{}", resumed.err);
    assert_eq!(resumed.result()["outputs"]["eve"], json!("Thursday."));
    let events = stage.spinney(&["events", "last", "--json"]).json();
    assert_eq!(of_type(&events, "message_sent").len(), 6);
}

/// S12: two agents ask at once, and the third one ends meanwhile. The answers come in the other order; each reaches the one
/// that asked, and only that one continues.
#[test]
fn s12_several_agents_wait_for_a_person_at_once() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s12-several-questions", 5);
    assert_eq!(ended.result()["succeeded"], json!(["insurance"]));
    let questions = stage.spinney(&["questions", "--json"]).json();
    let paths: Vec<&Value> = questions.iter().map(|question| &question["path"]).collect();
    assert_eq!(paths, ["pipeline/flight", "pipeline/hotel"]);
    let [flight, hotel] = [0, 1].map(|at: usize| questions[at]["question"].to_string());
    assert_eq!(stage.spinney(&["answer", "last", &hotel, "near the river"]).code, Some(0));
    let half = stage.spinney(&["resume", "last", "--json"]);
    assert_eq!((half.code, &half.result()["questions"][0]["path"]), (Some(5), &json!("pipeline/flight")));
    assert_eq!(half.result()["outputs"]["hotel"], json!("Hotel: near the river."));
    assert_eq!(stage.spinney(&["answer", "last", &flight, "in the evening"]).code, Some(0));
    let whole = stage.spinney(&["resume", "last", "--json"]).result();
    assert_eq!(whole["output"], json!("Flight: in the evening. Hotel: near the river. The usual insurance."));
    assert_eq!(whole["agents"], json!(5), "nobody was started twice");
}

/// S13, O18: a person redirects the lead in the middle of its chain. The surveyor that works stops, what the first one
/// found stays, the third one is never sent, and nothing is done twice.
#[test]
fn s13_a_person_redirects_in_the_middle_of_a_chain() {
    let stage = TestFolder::new();
    let mut running = stage.play(&["run", &file("s13-redirect"), "--plain"]);
    running.until("second calls visit");
    let told = stage.spinney(&["redirect", "Two houses are enough: compare those.", "--now"]);
    assert_eq!(told.code, Some(0), "{}", told.err);
    let ended = running.end();
    assert_eq!(ended.code, Some(0), "{} {}", ended.out, ended.err);
    assert!(ended.out.contains("Two compared, as you wish."), "{}", ended.out);
    let states = stage.spinney(&["tree", "--json"]).json();
    let states: Vec<_> =
        states.iter().map(|agent| (agent["agent"].clone(), agent["state"].clone())).collect();
    let wanted = [("lead", "completed"), ("first", "completed"), ("second", "cancelled")];
    assert_eq!(states, wanted.map(|(agent, state)| (json!(agent), json!(state))));
    assert!(stage.said(&["show", "first"]).contains("mill: a heat pump"));
    assert_eq!(stage.spinney(&["replay", "last", "--verify"]).code, Some(0));
    // Without a person the same tree visits all three.
    let whole = run(&stage, "s13-redirect", 0).result();
    assert_eq!(whole["output"], json!("All three compared; the last one: barn: none"));
}

/// S14: a question without an answer ends with its default in time, while others work, and the journal says that it was
/// the default.
#[test]
fn s14_no_answer_in_time_is_the_default() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s14-answer-timeout", 0);
    let result = ended.result();
    assert_eq!(
        (&result["output"], &result["outputs"]["decision"]),
        (&json!("Sent to 412 readers."), &json!("send"))
    );
    assert_eq!(sorted(result["succeeded"].as_array().unwrap().clone()), ["ask", "draft", "links", "send"]);
    let events = stage.said(&["events", "last"]);
    assert!(events.contains("got no answer from a person in time and uses the default: send"), "{events}");
    assert_eq!(stage.spinney(&["questions", "--json"]).out, "", "nothing is open");
}

/// S15: the author and the critic take turns until the critic accepts; each draft starts from the one before it.
#[test]
fn s15_the_critic_has_the_author_repeat_until_it_accepts() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s15-critic-loop", 0);
    let result = ended.result();
    let notice = "The pool is closed from 1 to 14 June. The river bath is open every day.";
    assert_eq!((&result["output"], &result["outputs"]["notice"]), (&json!(notice), &json!(notice)));
    let wanted = ["write", "review", "write#2", "review#2", "write#3", "review#3", "post"];
    assert_eq!(result["succeeded"], json!(wanted));
    assert!(read(&stage, "write").contains(r#"<input name="notice" missing="true"/>"#));
    let third = read(&stage, "write-r3");
    assert!(
        third.contains(r#"<input name="notice">"The pool is closed from 1 to 14 June."</input>"#),
        "{third}"
    );
    assert!(third.contains("what to do instead"), "{third}");
    assert_costs_add_up(&stage, &ended);
}

/// S16: three agents vote at the same time, the majority wins, and the next step reads its reason.
#[test]
fn s16_the_answer_of_the_majority_is_the_decision() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s16-vote", 0);
    let result = ended.result();
    assert_eq!(result["output"], json!("Decided: the street is closed on Saturdays."));
    assert_eq!(result["outputs"]["decision"], json!({ "vote": "for", "reason": "children can play there" }));
    let voters = ["resident", "trader", "driver"];
    let first_end = voters.map(|voter| place(&ended, "agent_ended", voter)).into_iter().min().unwrap();
    for voter in voters {
        assert!(place(&ended, "call_started", voter) < first_end, "{voter} voted with the others");
    }
    assert_eq!(
        all(&ended, "agent_spawned", "goal")[4],
        json!("The majority is for it: children can play there")
    );
}

/// S17: the first success wins, although another way failed before it; the one that would take a minute is cancelled.
#[test]
fn s17_the_first_success_wins_and_the_rest_is_cancelled() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s17-race", 0);
    let result = ended.result();
    assert_eq!(result["output"], json!("The last train to Ghent leaves at 23:12."));
    assert_eq!(
        (&result["succeeded"], &result["failed"], &result["cancelled"]),
        (&json!(["website"]), &json!(["timetable"]), &json!(["call"]))
    );
    assert!(result["elapsed_ms"].as_u64().unwrap() < 30_000, "the call takes a minute: {result}");
    assert_costs_add_up(&stage, &ended);
}

/// S18: one agent for each item of a list, at most two at a time, and one result of all, in the order of the items.
#[test]
fn s18_a_list_is_mapped_and_reduced() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s18-map-reduce", 0);
    let result = ended.result();
    let complaints: Vec<&Value> = result["outputs"]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| &found["complaints"][0])
        .collect();
    assert_eq!(complaints, ["waiting", "noise", "waiting", "noise"]);
    assert_eq!(result["output"], result["outputs"]["summary"]);
    let (mut live, mut most) = (0, 0);
    for event in ended.json() {
        let is_reader = event["agent"].as_str().is_some_and(|agent| agent.starts_with("read-"));
        match event["type"].as_str().filter(|_| is_reader) {
            Some("agent_spawned") => live += 1,
            Some("agent_ended") => live -= 1,
            _ => {}
        }
        most = most.max(live);
    }
    assert_eq!(most, 2);
    assert_costs_add_up(&stage, &ended);
    let own = r#"reviews=["Too loud.", "Good soup.", "Nice."]"#;
    let own = stage.spinney(&["run", &file("s18-map-reduce"), "--set", own, "--json"]).result();
    assert_eq!((own["agents"].clone(), own["outputs"]["findings"].as_array().unwrap().len()), (json!(5), 3));
}

/// S21: the third step fails, so the second and the first are undone, in that order and once each; the fourth never starts.
#[test]
fn s21_a_failure_undoes_what_was_done_in_reverse_order() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s21-undo", 1);
    let result = ended.result();
    assert_eq!((&result["state"], &result["error"]["code"]), (&json!("failed"), &json!("timeout")));
    assert_eq!(
        (&result["succeeded"], &result["failed"], &result["skipped"]),
        (&json!(["train", "hut"]), &json!(["guide"]), &json!(["pack"]))
    );
    let wanted = ["pipeline", "train", "hut", "guide", "hut-undo", "train-undo"];
    assert_eq!(all(&ended, "agent_spawned", "agent"), wanted);
    let cancelled = ["hut-undo", "train-undo"].map(|agent| stage.results(agent)[0]["text"].clone());
    assert_eq!(cancelled, ["H-4 is cancelled", "T-17 is cancelled"]);
    assert_costs_add_up(&stage, &ended);
}

/// S22: three answers of another type are never read; a new agent answers as asked, and the payment has its numbers.
#[test]
fn s22_an_answer_of_the_wrong_type_is_never_read() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s22-wrong-type", 0);
    let result = ended.result();
    assert_eq!(result["outputs"]["bill"], json!({ "cents": 124_050, "days": 14 }));
    assert_eq!(result["output"], json!("done: Pay 124050 cents within 14 days."));
    assert_eq!(all(&ended, "agent_spawned", "agent"), ["pipeline", "read", "read-t2", "pay"]);
    let exits = of_type(&ended.json(), "agent_ended")
        .iter()
        .map(|event| event["exit"]["error"]["code"].clone())
        .collect::<Vec<_>>();
    assert_eq!(exits, [json!("output_mismatch"), Value::Null, Value::Null, Value::Null]);
    assert_eq!(
        all(&ended, "value_written", "name"),
        ["invoice", "bill", "receipt"],
        "nothing else was stored"
    );
    assert_costs_add_up(&stage, &ended);
}

/// S23: seven of ten succeed and three fail in three ways; the next step reads seven values and what is missing.
#[test]
fn s23_seven_of_ten_are_enough() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s23-seven-of-ten", 0);
    let result = ended.result();
    assert_eq!(result["outputs"]["depths"], json!([310, 310, 310, null, 310, 310, null, 180, null, 420]));
    let failed = sorted(result["failed"].as_array().unwrap().clone());
    assert_eq!(failed, ["measure[3]", "measure[6]", "measure[8]"]);
    let code = |agent: &str| {
        let events = ended.json();
        let is = |event: &&Value| event["type"] == "agent_ended" && event["agent"] == agent;
        events.iter().find(is).unwrap()["exit"]["error"]["code"].clone()
    };
    assert_eq!(
        ["measure-3", "measure-6", "measure-8"].map(code),
        ["model_invalid", "timeout", "output_mismatch"]
    );
    assert!(read(&stage, "judge").contains("[310,310,310,null,"));
    assert_costs_add_up(&stage, &ended);
}

/// S25: a role may make three calls in a minute, so the fourth one waits, is never sent, and ends at its timeout; the agents
/// of another role are not held up.
#[test]
fn s25_a_role_never_calls_more_often_than_its_rate() {
    let stage = TestFolder::new();
    let ended = run(&stage, "s25-rate-limits", 0);
    let result = ended.result();
    assert_eq!(
        result["outputs"]["signs"].as_array().unwrap().iter().filter(|sign| sign.is_null()).count(),
        1
    );
    assert_eq!((result["failed"].as_array().unwrap().len(), &result["spent"]["steps"]), (1, &json!(4)));
    let waiting = ended.json();
    let waiting: Vec<&Value> = of_type(&waiting, "call_waiting");
    assert_eq!((waiting.len(), &waiting[0]["why"]), (1, &json!("rate")));
    let (events, late) = (ended.json(), &waiting[0]["agent"]);
    let is_late = |event: &&&Value| event["agent"] == *late;
    let ends = of_type(&events, "agent_ended");
    let end = ends.iter().find(is_late).unwrap();
    assert_eq!(end["exit"]["error"]["code"], json!("timeout"));
    assert_eq!(end["spent"]["tokens"].as_u64().unwrap_or_default(), 0, "{late} was never sent: {end}");
    assert_costs_add_up(&stage, &ended);
}

/// S26: what an agent three levels down writes is on the screen piece by piece, before it has ended.
#[test]
fn s26_the_text_of_a_deep_agent_is_read_while_it_is_written() {
    let stage = TestFolder::new();
    let mut terminal = stage.terminal(&["run", &file("s26-streaming")], 110, 24);
    terminal.until_visible("“Two banks that");
    let early = stage.spinney(&["events", "last", "--agent", "poet", "--json"]).json();
    assert!(of_type(&early, "agent_ended").is_empty(), "it had ended: {early:?}");
    let ended = terminal.end();
    assert!(ended.code == Some(0) && ended.out.contains("a bridge, one made of many ones."), "{}", ended.out);
}
