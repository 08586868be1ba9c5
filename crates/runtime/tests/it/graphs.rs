//! Graphs on the real runtime with scripted models: order, inputs, policies, groups, budgets and results. The tree file
//! is parsed as people write it.

use serde_json::Value;
use spinney::tree_file::TreeFile;
use spinney_kernel::definition::Definition;
use spinney_kernel::primitives::{Actor, Body};
use spinney_kernel::record::{Event, Exit, NodeEnd};
use spinney_testkit::{TestHome, recorded};

const TREE: &str = r"
name: test
goal: Do it.
budget: { cost_usd: 9 }
models:
  m: { provider: scripted, script: s.yaml, price: { input_per_mtok_usd: 0, output_per_mtok_usd: 1 } }
agents:
  worker: { model: m }
  writer: { model: m }
  critic: { model: m }
  lister:
    model: m
    output_schema: { type: array, items: { type: string } }
";

/// What a tree did.
pub(crate) struct Played {
    pub(crate) events: Vec<Event>,
    pub(crate) stage: TestHome,
    /// From the first event to the last.
    pub(crate) took_ms: u64,
}

pub(crate) fn definition(pipeline: &str) -> Definition {
    let text = format!("{TREE}{pipeline}");
    TreeFile::parse("tree.yaml", &text).unwrap_or_else(|error| panic!("{error}")).definition
}

pub(crate) async fn play(script: &str, pipeline: &str) -> Played {
    play_tree(script, definition(pipeline)).await
}

pub(crate) async fn play_tree(script: &str, definition: Definition) -> Played {
    let stage = TestHome::new(script);
    let home = stage.home();
    let tree = home.start(definition).await.unwrap();
    tree.ended().await;
    Played::from_tree(&tree, stage).await
}

impl Played {
    /// What a tree did that has ended.
    pub(crate) async fn from_tree(tree: &spinney::Tree, stage: TestHome) -> Self {
        let recorded = recorded(tree).await;
        let at = |of: Option<&spinney::bus::RecordedEvent>| of.map_or(0, |recorded| recorded.at.0);
        let took_ms = at(recorded.last()) - at(recorded.first());
        Self { events: recorded.into_iter().map(|recorded| recorded.event).collect(), stage, took_ms }
    }

    /// Each step or group that ended, as `name state`, in that order.
    pub(crate) fn ends(&self) -> Vec<String> {
        let end = |event: &Event| match event {
            Event::NodeEnded { name, end, .. } => Some(format!("{name} {}", end.as_str())),
            _ => None,
        };
        self.events.iter().filter_map(end).collect()
    }

    pub(crate) fn exit(&self) -> (Exit, Body) {
        let end = self.events.iter().rev().find_map(|event| match event {
            Event::AgentEnded { exit, result, .. } => {
                Some((exit.clone(), result.clone().unwrap_or_default()))
            }
            _ => None,
        });
        end.unwrap()
    }

    pub(crate) fn code(&self) -> String {
        match self.exit().0 {
            Exit::Failed { error } => error.code.to_string(),
            exit => exit.as_str().to_owned(),
        }
    }

    /// The named values, as they were written last.
    pub(crate) fn value(&self, wanted: &str) -> Value {
        let value = self.events.iter().rev().find_map(|event| match event {
            Event::ValueWritten { name, value, .. } if name.as_str() == wanted => Some(value.text.clone()),
            _ => None,
        });
        value.map_or(Value::Null, |text| serde_json::from_str(&text).unwrap())
    }

    pub(crate) fn place(&self, is: impl Fn(&Event) -> bool) -> usize {
        self.events.iter().position(is).unwrap()
    }

    pub(crate) fn spawned(&self, agent: &str) -> usize {
        self.place(|event| matches!(event, Event::AgentSpawned(spawned) if spawned.agent.as_str() == agent))
    }

    pub(crate) fn ended(&self, agent: &str) -> usize {
        self.place(|event| matches!(event, Event::AgentEnded { agent: ended, .. } if ended.as_str() == agent))
    }

    /// The agents that were ever spawned.
    pub(crate) fn agents(&self) -> Vec<String> {
        let id = |event: &Event| match event {
            Event::AgentSpawned(spawned) => Some(spawned.agent.to_string()),
            _ => None,
        };
        self.events.iter().filter_map(id).collect()
    }

    /// Everything that an agent's first request showed its model.
    pub(crate) fn packet(&self, agent: &str) -> String {
        let attempts = self.stage.model().attempts();
        let attempt = attempts.iter().find(|attempt| attempt.origin.agent().as_str() == agent).unwrap();
        let texts: Vec<String> =
            attempt.packet.messages.iter().map(|message| message.text().into_owned()).collect();
        texts.join("\n")
    }

    /// The most step agents that lived at the same time.
    pub(crate) fn most_alive(&self) -> usize {
        let (mut alive, mut most) = (0_usize, 0);
        for event in &self.events {
            match event {
                Event::AgentSpawned(_) => alive += 1,
                Event::AgentEnded { .. } => alive -= 1,
                _ => {}
            }
            most = most.max(alive);
        }
        // The graph's own agent is not a step.
        most - 1
    }
}

const ECHO: &str = r#"
rules:
  - say: "{{ agent }} did: {{ goal }}"
"#;

/// O5, S1, S3
#[tokio::test(start_paused = true)]
async fn o5_steps_run_one_after_the_other_and_read_only_their_inputs() {
    let played = play(
        ECHO,
        r"
pipeline:
  steps:
    - { id: first, agent_id: worker, task_description: Say one., output_to: one }
    - { id: second, agent_id: worker, task_description: Say two., output_to: two }
    - { id: third, agent_id: writer, task_description: 'Join {{ one }}.', input_from: [two], output_to: three }
",
    )
    .await;
    assert_eq!(
        played.ends(),
        ["first succeeded", "second succeeded", "third succeeded", "pipeline succeeded"]
    );
    assert!(
        played.ended("first") < played.spawned("second") && played.ended("second") < played.spawned("third")
    );
    let packet = played.packet("third");
    assert!(packet.contains(r#"<input name="two">"worker did: Say two."</input>"#), "{packet}");
    assert!(!packet.contains("<input name=\"one\""), "{packet}");
    assert!(!played.packet("second").contains("<input"));
    let (exit, result) = played.exit();
    assert_eq!(exit, Exit::Completed);
    assert_eq!(result.text, "writer did: Join worker did: Say one..");
    assert_eq!(played.value("three"), Value::from("writer did: Join worker did: Say one.."));
}

/// O6, S2
#[tokio::test(start_paused = true)]
async fn o6_at_most_as_many_members_run_at_once_as_max_parallel_says() {
    let steps: String = (0..10)
        .map(|at| format!("      - {{ id: s{at}, agent_id: worker, task_description: Do {at}. }}\n"))
        .collect();
    let script = "rules:\n  - { think_ms: 1000, say: done }\n";
    let played =
        play(script, &format!("pipeline:\n  steps:\n    - max_parallel: 4\n      parallel:\n{steps}")).await;
    assert_eq!(played.exit().0, Exit::Completed);
    assert_eq!(played.most_alive(), 4);
    assert!(played.took_ms < 4_000, "{}", played.took_ms);
}

/// S3: a member of a parallel group that reads what another one writes runs after it.
#[tokio::test(start_paused = true)]
async fn parallel_steps_wait_for_the_outputs_that_they_read() {
    let played = play(
        ECHO,
        r"
pipeline:
  mode: parallel
  steps:
    - { id: reduce, agent_id: writer, task_description: Join., input_from: [a, b] }
    - { id: a, agent_id: worker, task_description: A., output_to: a }
    - { id: b, agent_id: worker, task_description: B., output_to: b }
",
    )
    .await;
    assert_eq!(played.exit().0, Exit::Completed);
    assert!(played.spawned("reduce") > played.ended("a") && played.spawned("reduce") > played.ended("b"));
}

/// Ten steps of which those with an odd number fail, and a step that reads one of the failed outputs.
fn seven_of_ten(policy: &str) -> String {
    let steps: String = (0..10)
        .map(|at| {
            let word = if [2, 5, 8].contains(&at) { "Fail" } else { "Do" };
            format!("      - {{ id: s{at}, agent_id: worker, task_description: {word} {at}., output_to: o{at} }}\n")
        })
        .collect();
    format!(
        "pipeline:\n  on_partial_success: {policy}\n  max_parallel: 1\n  steps:\n    - parallel:\n{steps}    \
         - {{ id: needs, agent_id: writer, task_description: x, input_from: [o2] }}\n    \
         - {{ id: last, agent_id: writer, task_description: x, input_from: [o0] }}\n"
    )
}

const SOME_FAIL: &str = r"
rules:
  - { when: { goal_contains: Fail }, fail: { kind: auth, times: 100 }, say: x }
  - { say: fine }
";

/// O7
#[tokio::test(start_paused = true)]
async fn o7_fail_stops_the_graph_at_the_first_failure() {
    let played = play(SOME_FAIL, &seven_of_ten("fail")).await;
    assert_eq!(
        played.ends(),
        ["s0 succeeded", "s1 succeeded", "s2 failed", "parallel failed", "pipeline failed"]
    );
    assert_eq!(played.code(), "model_auth");
}

/// O7
#[tokio::test(start_paused = true)]
async fn o7_continue_runs_everything_that_can_run_and_fails() {
    let played = play(SOME_FAIL, &seven_of_ten("continue")).await;
    let ends = played.ends();
    assert_eq!(ends.iter().filter(|end| end.starts_with('s') && end.ends_with("succeeded")).count(), 7);
    assert_eq!(ends[10..], ["parallel failed", "needs skipped", "last succeeded", "pipeline failed"]);
    assert_eq!(played.code(), "model_auth");
}

/// O7
#[tokio::test(start_paused = true)]
async fn o7_best_effort_completes_if_anything_succeeded() {
    let played = play(SOME_FAIL, &seven_of_ten("best_effort")).await;
    assert_eq!(
        played.ends()[10..],
        ["parallel failed", "needs skipped", "last succeeded", "pipeline failed"]
    );
    assert_eq!(played.code(), "completed");
    let nothing = r"
pipeline:
  on_partial_success: best_effort
  steps: [{ id: a, agent_id: worker, task_description: Fail. }]
";
    assert_eq!(play(SOME_FAIL, nothing).await.code(), "model_auth");
}

/// O7
#[tokio::test(start_paused = true)]
async fn o7_a_step_that_is_not_required_never_fails_the_graph() {
    let pipeline = r"
pipeline:
  steps:
    - parallel:
        - { id: a, agent_id: worker, task_description: Fail., required: false, output_to: a }
        - { id: b, agent_id: worker, task_description: Do., output_to: b }
    - { id: c, agent_id: writer, task_description: Join., input_from: [a?, b] }
";
    let played = play(SOME_FAIL, pipeline).await;
    assert_eq!(played.code(), "completed");
    let packet = played.packet("c");
    assert!(packet.contains(r#"<input name="a" missing="true"/>"#) && packet.contains("<input name=\"b\">"));
    // A step that needs the output fails before its agent is called.
    let played = play(SOME_FAIL, &pipeline.replace("a?", "a")).await;
    assert_eq!(played.code(), "missing_input");
    assert!(!played.agents().contains(&"c".to_owned()));
}

/// O9
#[tokio::test(start_paused = true)]
async fn o9_an_answer_of_another_shape_fails_the_step_before_anything_reads_it() {
    let played = play(
        "rules:\n  - { when: { agent: lister }, say: 'no list' }\n  - { say: fine }\n",
        r"
pipeline:
  steps:
    - { id: list, agent_id: lister, task_description: List., output_to: list }
    - { id: next, agent_id: writer, task_description: Use., input_from: [list] }
",
    )
    .await;
    assert_eq!(played.code(), "output_mismatch");
    assert_eq!(played.ends(), ["list failed", "pipeline failed"]);
    assert!(!played.agents().contains(&"next".to_owned()));
}

/// O10, S21
#[tokio::test(start_paused = true)]
async fn o10_what_succeeded_is_undone_in_reverse_order_once_each() {
    let played = play(
        SOME_FAIL,
        r"
pipeline:
  steps:
    - { id: a, agent_id: worker, task_description: Do a., output_to: a, undo: 'Take back {{ a }}.' }
    - { id: b, agent_id: worker, task_description: Do b., undo: { agent_id: critic, task_description: Take back b. } }
    - { id: c, agent_id: worker, task_description: Do c. }
    - { id: d, agent_id: worker, task_description: Fail d., undo: Never. }
",
    )
    .await;
    assert_eq!(played.code(), "model_auth");
    assert_eq!(
        played.ends(),
        [
            "a succeeded",
            "b succeeded",
            "c succeeded",
            "d failed",
            "pipeline failed",
            "b succeeded",
            "a succeeded"
        ]
    );
    assert_eq!(played.agents()[5..], ["b-undo", "a-undo"]);
    assert!(played.packet("a-undo").contains("Take back fine."));
    let roles: Vec<String> = played
        .events
        .iter()
        .filter_map(|event| match event {
            Event::AgentSpawned(spawned) => Some(spawned.role.to_string()),
            _ => None,
        })
        .collect();
    assert_eq!(roles[5..], ["critic", "worker"]);
}

/// O12
#[tokio::test(start_paused = true)]
async fn o12_a_step_that_a_person_cancels_is_no_success() {
    let stage = TestHome::new("rules:\n  - { think_ms: 60000, say: late }\n");
    let home = stage.home();
    let pipeline = "pipeline:\n  steps: [{ id: a, agent_id: worker, task_description: Do., retry: 3 }]\n";
    let tree = home.start(definition(pipeline)).await.unwrap();
    let cancel =
        spinney_kernel::rules::request::Cancel { agent: "a".parse().unwrap(), reason: "enough".to_owned() };
    tree.request(Actor::PERSON, cancel).await.unwrap();
    tree.ended().await;
    let played = Played::from_tree(&tree, stage).await;
    assert_eq!(played.ends(), ["a failed", "pipeline failed"]);
    assert_eq!(played.code(), "cancelled");
}

/// O8: map
#[tokio::test(start_paused = true)]
async fn o8_a_map_runs_its_steps_for_each_item_and_collects_the_results_in_order() {
    let script = r#"
rules:
  - { when: { agent: lister }, say: '["ash", "oak", "elm"]' }
  - { when: { agent: worker, goal_contains: oak }, think_ms: 500, say: "{{ goal }}" }
  - { when: { agent: worker }, think_ms: 10, say: "{{ goal }}" }
  - { say: "joined" }
"#;
    let played = play(
        script,
        r"
pipeline:
  steps:
    - { id: list, agent_id: lister, task_description: List., output_to: trees }
    - map:
        - { id: plant, agent_id: worker, task_description: 'Plant {{ tree }} as {{ index }}.', output_to: planted }
        - { id: water, agent_id: worker, task_description: 'Water: {{ planted }}' }
      over: trees
      as: tree
      max_parallel: 2
      output_to: all
    - { id: join, agent_id: writer, task_description: Join., input_from: [all] }
",
    )
    .await;
    assert_eq!(played.code(), "completed");
    let all =
        serde_json::json!(["Water: Plant ash as 0.", "Water: Plant oak as 1.", "Water: Plant elm as 2."]);
    assert_eq!(played.value("all"), all);
    assert!(played.packet("join").contains(&format!("<input name=\"all\">{all}</input>")));
    assert!(played.spawned("plant-2") < played.ended("water-1"), "elm did not wait for oak");
    assert_eq!(played.value("planted"), Value::Null, "what an item writes is its own");
}

/// O8: race
#[tokio::test(start_paused = true)]
async fn o8_the_first_success_wins_a_race_and_the_losers_are_cancelled_and_joined() {
    let script = r#"
rules:
  - { when: { goal_contains: Fail }, fail: { kind: auth, times: 100 }, say: x }
  - { when: { goal_contains: quick }, think_ms: 100, say: quick }
  - { think_ms: 90000, say: slow }
"#;
    let played = play(
        script,
        r"
pipeline:
  steps:
    - race:
        - { id: none, agent_id: worker, task_description: Fail. }
        - { id: slow, agent_id: worker, task_description: Be slow. }
        - sequence:
            - { id: quick, agent_id: worker, task_description: Be quick. }
            - { id: quicker, agent_id: worker, task_description: Be quick again. }
        - { id: slower, agent_id: worker, task_description: Be slow. }
      output_to: won
",
    )
    .await;
    assert_eq!(played.code(), "completed");
    assert_eq!(played.value("won"), Value::from("quick"));
    let ends = played.ends();
    assert_eq!(ends[0], "none failed");
    for loser in ["slow cancelled", "slower cancelled"] {
        assert!(ends.contains(&loser.to_owned()), "{ends:?}");
    }
    assert_eq!(ends[ends.len() - 2..], ["race succeeded", "pipeline succeeded"], "losers are joined first");
}

/// O8, S6: condition and choice
#[tokio::test(start_paused = true)]
async fn o8_conditions_and_choices_follow_a_value() {
    let pipeline = r"
pipeline:
  steps:
    - { id: triage, agent_id: worker, task_description: Sort., output_to: kind }
    - choose:
        bug: [{ id: fix, agent_id: worker, task_description: Fix., output_to: done }]
        question: { id: reply, agent_id: worker, task_description: Reply., output_to: done }
      on: kind
      else: [{ id: shrug, agent_id: worker, task_description: Shrug., output_to: done }]
    - { id: tell, agent_id: writer, task_description: Tell., input_from: [done], when: kind == 'bug' }
";
    for (kind, ends) in [
        ("bug", ["fix succeeded", "case succeeded", "choose succeeded", "tell succeeded"]),
        ("question", ["reply succeeded", "choose succeeded", "tell skipped", "pipeline succeeded"]),
        ("praise", ["shrug succeeded", "case-2 succeeded", "choose succeeded", "tell skipped"]),
    ] {
        let script =
            format!("rules:\n  - {{ when: {{ goal_contains: Sort }}, say: {kind} }}\n  - {{ say: done }}\n");
        let played = play(&script, pipeline).await;
        assert_eq!(played.code(), "completed");
        assert_eq!(played.ends()[1..5], ends, "{kind}");
    }
}

/// O8, S15: critic loop
#[tokio::test(start_paused = true)]
async fn o8_a_loop_runs_until_its_condition_holds_or_its_rounds_are_over() {
    let pipeline = r"
pipeline:
  steps:
    - loop:
        - { id: draft, agent_id: writer, task_description: 'Draft {{ round }}.', input_from: [review?], output_to: text }
        - { id: review, agent_id: critic, task_description: 'Review {{ text }}', output_to: review }
      until: review == 'good'
      max_rounds: 4
      output_to: last
";
    let script = r#"
rules:
  - { when: { agent: critic, goal_contains: "Draft 3" }, say: good }
  - { when: { agent: critic }, say: bad }
  - { say: "{{ goal }}" }
"#;
    let played = play(script, pipeline).await;
    assert_eq!(played.code(), "completed");
    assert_eq!(played.value("text"), Value::from("Draft 3."));
    assert_eq!(played.ends().len(), 3 * 2 + 2);
    assert!(played.packet("draft-r2").contains("<input name=\"review\">\"bad\"</input>"));
    let never = script.replace("Draft 3", "Draft 9");
    assert_eq!(play(&never, pipeline).await.code(), "max_rounds");
    let go_on = pipeline.replace("max_rounds: 4", "max_rounds: 2\n      on_max_rounds: continue");
    let played = play(&never, &go_on).await;
    assert_eq!((played.code().as_str(), played.value("text")), ("completed", Value::from("Draft 2.")));
}

/// O23 (votes), S16
#[tokio::test(start_paused = true)]
async fn o23_votes_are_counted_by_the_declared_rule() {
    let pipeline = |rule: &str| {
        format!(
            r"
pipeline:
  steps:
    - vote:
        - {{ id: v1, agent_id: worker, task_description: Vote 1. }}
        - {{ id: v2, agent_id: worker, task_description: Vote 2. }}
        - {{ id: v3, agent_id: worker, task_description: Vote 3. }}
        - {{ id: v4, agent_id: worker, task_description: Vote 4. }}
      output_to: verdict
      {rule}
"
        )
    };
    let script = |votes: [&str; 4]| {
        let rules: String = votes
            .iter()
            .enumerate()
            .map(|(at, vote)| {
                let vote = if vote.is_empty() {
                    "fail: { kind: auth, times: 100 }, say: x".to_owned()
                } else {
                    format!("say: '{vote}'")
                };
                format!("  - {{ when: {{ goal_contains: Vote {}. }}, {vote} }}\n", at + 1)
            })
            .collect();
        format!("rules:\n{rules}")
    };
    for (rule, votes, code) in [
        ("majority: half", ["yes", "yes ", "yes", "no"], "completed"),
        ("majority: half", ["yes", "yes", "no", "no"], "no_majority"),
        ("majority: half", ["yes", "yes", "no", ""], "no_majority"),
        ("{ majority: half, missing: ignored }", ["yes", "yes", "no", ""], "completed"),
        ("majority: two_thirds", ["yes", "yes", "yes", "no"], "completed"),
        ("majority: all", ["yes", "yes", "yes", "no"], "no_majority"),
        ("majority: most", ["yes", "yes", "no", "oak"], "completed"),
        ("majority: most", ["yes", "yes", "no", "no"], "tie"),
        ("{ majority: most, on_tie: first }", ["yes", "no", "no", "yes"], "completed"),
        ("majority: most", ["", "", "", ""], "no_votes"),
    ] {
        let rule = rule.trim_matches(['{', '}', ' ']).replace(", ", "\n      ");
        let played = play(&script(votes), &pipeline(&rule)).await;
        assert_eq!(played.code(), code, "{rule} {votes:?}");
        if code == "completed" {
            assert_eq!(played.value("verdict"), Value::from("yes"), "{rule}");
        }
    }
}

/// O23 (votes): one step votes several times.
#[tokio::test(start_paused = true)]
async fn one_step_can_vote_several_times_by_one_key_of_its_answer() {
    let played = play(
        r#"rules: [{ say: '{"verdict": "ship", "why": "{{ path }}"}' }]"#,
        r"
pipeline:
  steps:
    - vote:
        { id: judge, agent_id: critic, task_description: Judge., output_schema: { type: object } }
      voters: 3
      by: verdict
      output_to: verdict
",
    )
    .await;
    assert_eq!(played.code(), "completed");
    assert_eq!(played.value("verdict")["verdict"], Value::from("ship"));
    assert_eq!(played.agents(), ["pipeline", "judge-0", "judge-1", "judge-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_failed_step_is_tried_again_under_another_id() {
    let script = "rules: [{ fail: { kind: auth, times: 100 }, say: x }]";
    let pipeline = "pipeline:\n  steps: [{ id: a, agent_id: worker, task_description: Do., retry: 2 }]\n";
    let played = play(script, pipeline).await;
    assert_eq!(played.agents(), ["pipeline", "a", "a-t2", "a-t3"]);
    assert_eq!(played.ends()[..3], ["a failed", "a failed", "a failed"]);
    let retried = played
        .events
        .iter()
        .filter(|event| matches!(event, Event::NodeEnded { end: NodeEnd::Failed { retried: true, .. }, .. }));
    assert_eq!(retried.count(), 2);
}

/// Steps read the inputs of the file by name: in tasks, in `input_from` and as the list of a map.
#[tokio::test]
async fn steps_read_the_inputs_of_the_file() {
    let pipeline = r"
inputs:
  topic: {}
  docs: { type: json, default: [one, two] }
pipeline:
  steps:
    - { id: say, agent_id: worker, task_description: 'About {{ topic }}.', input_from: [topic] }
    - map: { id: read, agent_id: worker, task_description: 'Read {{ item }}.' }
      over: docs
";
    let text = format!("{TREE}{pipeline}");
    let file = TreeFile::parse("tree.yaml", &text).unwrap_or_else(|error| panic!("{error}"));
    let file = file.with_inputs(&[("topic".to_owned(), "bees".to_owned())], &|_| None).unwrap();
    let played = play_tree("rules: [ { say: done } ]", file.definition).await;
    assert_eq!(
        played.ends(),
        [
            "say succeeded",
            "read[0] succeeded",
            "map[0] succeeded",
            "read[1] succeeded",
            "map[1] succeeded",
            "map succeeded",
            "pipeline succeeded"
        ]
    );
    let goals: Vec<&str> = played
        .events
        .iter()
        .filter_map(|event| match event {
            Event::AgentSpawned(spawned) => Some(spawned.goal.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(goals, ["Do it.", "About bees.", "Read one.", "Read two."]);
    let unknown = text.replace("{{ topic }}", "{{ tpoic }}");
    let error = TreeFile::parse("tree.yaml", &unknown).unwrap_err().to_string();
    assert!(error.contains("nothing writes `tpoic`: did you mean `topic`?"), "{error}");
    let dotted = text.replace("{{ topic }}", "{{ inputs.topic }}");
    let error = TreeFile::parse("tree.yaml", &dotted).unwrap_err().to_string();
    let remedy = "nothing writes `inputs`: inputs have names of their own, without `inputs.`: docs, topic";
    assert!(error.contains(remedy), "{error}");
}

/// The members of a parallel group end in any order, so it has no value, and what ends with one has its outputs.
#[tokio::test(start_paused = true)]
async fn a_parallel_group_has_no_value() {
    let pipeline = r"
pipeline:
  steps:
    - { id: before, agent_id: worker, task_description: Before. }
    - parallel:
        - { id: a, agent_id: worker, task_description: A., output_to: a }
        - { id: b, agent_id: worker, task_description: B., output_to: b }
";
    let played = play(ECHO, pipeline).await;
    assert_eq!(played.code(), "completed");
    assert_eq!(played.exit().1.text, r#"{"a":"worker did: A.","b":"worker did: B."}"#);
}

/// A long answer is an output like any other: whole among the shared values, and its beginning with its size
/// in the step that reads it.
#[tokio::test(start_paused = true)]
async fn a_long_output_is_whole_in_the_shared_store() {
    let pipeline = r"
pipeline:
  steps:
    - { id: long, agent_id: worker, task_description: Talk., output_to: talk }
    - { id: list, agent_id: lister, task_description: List., output_to: list }
    - { id: next, agent_id: writer, task_description: Use., input_from: [talk] }
";
    let script = r#"
rules:
  - { when: { agent: worker }, say: '{% for i in range(900) %}a sentence that is long enough to be one of nine hundred, namely number {{ i }}. {% endfor %}', usage: { output: 9 } }
  - { when: { agent: lister }, say: '[{% for i in range(900) %}"an item that is long enough to be one of nine hundred, namely number {{ i }}", {% endfor %}"end"]', usage: { output: 9 } }
  - { say: fine }
"#;
    let mut plan = definition(pipeline);
    for (_, role) in &mut plan.roles {
        role.turns.as_mut().unwrap().output_cap = Some(1_000_000);
    }
    let stage = TestHome::new(script);
    let tree = stage.home().start(plan).await.unwrap();
    tree.ended().await;
    let talk = tree.shared_value("talk").await.unwrap().unwrap();
    let talk = talk.as_str().unwrap();
    assert!(talk.len() > 64 * 1024 && talk.ends_with("number 899. "), "{} bytes", talk.len());
    let list = tree.shared_value("list").await.unwrap().unwrap();
    assert_eq!((list.as_array().unwrap().len(), &list[900]), (901, &Value::from("end")));
    let played = Played::from_tree(&tree, stage).await;
    assert_eq!(played.code(), "completed");
    let packet = played.packet("next");
    let tag = format!(r#"<input name="talk" part="1/2" cut="true" bytes="{}">"a sentence "#, talk.len());
    assert!(packet.contains(&tag), "{}", &packet[..400]);
}

/// An answer of two texts is the value once: it was written with its first text twice.
#[tokio::test(start_paused = true)]
async fn a_step_whose_answer_was_cut_and_continued_has_its_two_texts_once() {
    let script = "rules: [{ when: { turn: 1 }, say: one two three four five six seven eight nine ten }, { say: ' and the rest' }]";
    let mut tree = definition(
        "pipeline: { steps: [{ id: a, agent_id: worker, task_description: Count., output_to: a }] }",
    );
    tree.roles[0].turns.as_mut().unwrap().output_cap = Some(4);
    let played = play_tree(script, tree).await;
    let written = played.events.iter().find_map(|event| match event {
        Event::ValueWritten { name, value, .. } if name.as_str() == "a" => Some(value.text.clone()),
        _ => None,
    });
    assert_eq!(written.as_deref(), Some("\"one two three fo and the rest\""));
}
