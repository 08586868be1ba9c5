//! The scripted model: which rule answers, what it says, how long it takes, what it uses.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use spinney_drivers::scripted::{Mentioned, RENDERED_BYTES_MAX, Script};
use spinney_kernel::budget::{Ceilings, Resource, Used};
use spinney_kernel::context::Origin;
use spinney_kernel::definition::OnLost;
use spinney_kernel::port::model::{AttemptError, Model, ModelAnswer, Purpose};
use spinney_kernel::primitives::{Fault, FaultKind, TokenCount};
use spinney_kernel::record::{StopReason, ToolAsk};
use tokio::time::timeout;

use crate::scene::{answer, attempt, heard, missed, model, origin, packet, play, result, said, used, with};

#[tokio::test]
async fn first_rule_that_matches_answers() {
    let script = "rules:
  - { when: { turn: 2 }, say: second }
  - { when: { agent: lead }, say: lead }
  - { when: { agent: lead, turn: 1 }, say: too late }
  - say: anyone";
    assert_eq!(answer(script, attempt()).await.text, "lead");
    assert_eq!(answer(script, with(attempt(), |it| it.turn = 2)).await.text, "second");
    let other = Origin { role: "writer".parse().unwrap(), ..origin() };
    assert_eq!(answer(script, with(attempt(), |it| it.origin = other.into())).await.text, "anyone");
}

#[tokio::test]
async fn every_condition_of_a_rule_must_hold() {
    let messages = vec![
        result("an old result"),
        said("let me look"),
        result("one hit"),
        result("no hit"),
        heard("hurry up"),
    ];
    let attempt = with(attempt(), |it| {
        it.turn = 3;
        it.packet = packet(messages);
    });
    let table = [
        ("agent: lead", true),
        ("agent: writer", false),
        ("turn: 3", true),
        ("turn: 1", false),
        ("goal_contains: PyTorch", true),
        ("goal_contains: TensorFlow", false),
        ("last_contains: hurry", true),
        ("last_contains: hit", false),
        ("tool_result_contains: one hit", true),
        ("tool_result_contains: old", false),
        ("tool_result_contains: hurry", false),
        ("depth: 1", true),
        ("depth: 0", false),
        ("agent: lead, turn: 3, depth: 1", true),
        ("agent: lead, turn: 3, depth: 2", false),
        ("", true),
    ];
    for (when, expected) in table {
        let script = format!("rules: [{{ when: {{ {when} }}, say: 'yes' }}, {{ say: 'no' }}]");
        let text = answer(&script, attempt.clone()).await.text;
        assert_eq!(text, if expected { "yes" } else { "no" }, "when: {when}");
    }
}

/// A rule for turns never answers where a summary is asked for, nor the other way round.
#[tokio::test]
async fn a_summary_is_answered_by_rules_for_summaries_only() {
    let script = "rules:
  - { when: { summary: true, turn: 2 }, say: the second }
  - { when: { summary: true }, say: a summary }
  - say: a turn";
    let summary = || with(attempt(), |it| it.purpose = Purpose::Summary);
    assert_eq!(answer(script, attempt()).await.text, "a turn");
    assert_eq!(answer(script, summary()).await.text, "a summary");
    assert_eq!(answer(script, with(summary(), |it| it.turn = 2)).await.text, "the second");
    let fault = missed("rules: [{ say: a turn }]", summary()).await.fault;
    let message = "x.script.yaml: no rule for a summary of agent `lead` at turn 1: add one with `when: { summary: true }`";
    assert_eq!(fault, Fault { message: message.to_owned(), ..Fault::new(FaultKind::Invalid) });
}

#[tokio::test]
async fn an_attempt_without_a_rule_is_invalid() {
    let missed =
        missed("rules: [{ when: { agent: writer }, say: hi }]", with(attempt(), |it| it.turn = 4)).await;
    let message = "x.script.yaml: no rule for agent `lead` at turn 4: add one that matches, or a last one \
                   without `when`";
    let fault = Fault { message: message.to_owned(), ..Fault::new(FaultKind::Invalid) };
    assert_eq!(missed, AttemptError { fault, used: used(0, 0) });
}

#[tokio::test]
async fn the_same_attempt_gets_the_same_answer() {
    let model = model(
        "rules:
  - when: { turn: 1 }
    fail: { kind: server, times: 1 }
    say: '{{ agent }} at {{ turn }}'
    call: [{ tool: look, args: { where: '{{ path }}' } }]
  - say: later",
    );
    for (turn, number) in [(1, 1), (1, 2), (2, 1), (1, 1), (1, 2), (2, 7)] {
        let attempt = with(attempt(), |it| {
            it.turn = turn;
            it.attempt = number;
        });
        let first = play(&model, attempt.clone()).await;
        assert_eq!(play(&model, attempt).await, first);
        assert_eq!(first.0.is_err(), (turn, number) == (1, 1));
    }
    assert_eq!(model.calls(), 12);
}

#[tokio::test]
async fn templates_see_the_attempt() {
    let script = r#"rules: [{ say: "{{ agent }}|{{ goal }}|{{ turn }}|{{ path }}|{{ last }}|{{ remaining.cost_nanos }}|{{ remaining.tokens }}" }]"#;
    let attempt = with(attempt(), |it| {
        it.packet = packet(vec![heard("<b> & co")]);
        it.remaining = Ceilings::NONE.with(Resource::Cost, 250);
    });
    let text = answer(script, attempt).await.text;
    assert_eq!(text, "lead|Compare PyTorch and JAX.|1|root/a|<b> & co|250|None");
}

#[tokio::test]
async fn a_text_is_said_to_its_last_newline() {
    let script = "rules:\n  - say: |\n      one\n      two {{ turn }}\n";
    assert_eq!(answer(script, attempt()).await.text, "one\ntwo 1\n");
}

#[tokio::test]
async fn calls_are_asked_for_with_rendered_arguments() {
    let script = r#"rules:
  - call:
      - { tool: spawn_agent, args: { agent: researcher, goal: "{{ goal }}", budget: { cost_usd: 0.10, steps: 3 }, tags: [a, "{{ turn }}", null, true] } }
      - { tool: nothing }
      - { tool: broken, args: '{"path": {{ path|tojson }}, ', id: mine }
      - { tool: "", args: [1, "{{ agent }}"] }"#;
    let answer = answer(script, attempt()).await;
    let ask = |id: &str, tool: &str, args: &str| {
        let counted = [id, tool, args].map(|text| text.len().div_ceil(4) as u64).iter().sum();
        ToolAsk {
            id: id.to_owned(),
            tool: tool.to_owned(),
            args: args.to_owned(),
            tokens: Some(TokenCount::exact(counted)),
            told_tokens: None,
        }
    };
    let spawn = r#"{"agent":"researcher","goal":"Compare PyTorch and JAX.","budget":{"cost_usd":0.1,"steps":3},"tags":["a","1",null,true]}"#;
    let asks = vec![
        ask("call_1_1", "spawn_agent", spawn),
        ask("call_1_2", "nothing", "{}"),
        ask("mine", "broken", r#"{"path": "root/a", "#),
        ask("call_1_4", "", r#"[1,"lead"]"#),
    ];
    let output = asks.iter().map(|ask| ask.args.len().div_ceil(4) as u64).sum();
    assert_eq!(answer, ModelAnswer::text("").with_asks(asks).with_used(used(100, output)));
}

/// As in tree files, and in YAML 1.2: only `true` and `false` are booleans.
#[tokio::test]
async fn words_that_older_yaml_took_for_booleans_are_texts() {
    let script = "rules: [{ call: [{ tool: t, args: { id: n, list: [y, no, off, Yes, ON], is: true } }] }]";
    let answer = answer(script, attempt()).await;
    assert_eq!(answer.asks[0].args, r#"{"id":"n","list":["y","no","off","Yes","ON"],"is":true}"#);
}

#[tokio::test(start_paused = true)]
async fn thinking_and_streaming_take_their_time() {
    let model = model("rules: [{ think_ms: 40, chunk_ms: 5, say: 'Splitting the work among three.' }]");
    assert!(timeout(Duration::from_millis(44), play(&model, attempt())).await.is_err());
    let (end, chunks) = timeout(Duration::from_millis(46), play(&model, attempt())).await.unwrap();
    assert_eq!(chunks, ["Splitting the wo", "rk among three."]);
    assert_eq!(end.unwrap().text, chunks.concat());
}

#[tokio::test(start_paused = true)]
async fn failures_come_after_the_thinking() {
    let model = model("rules: [{ think_ms: 40, chunk_ms: 5, fail: { kind: timeout }, say: unsaid }]");
    assert!(timeout(Duration::from_millis(39), play(&model, attempt())).await.is_err());
    let (end, chunks) = timeout(Duration::from_millis(41), play(&model, attempt())).await.unwrap();
    assert_eq!((end.unwrap_err().fault.kind, chunks), (FaultKind::Timeout, Vec::new()));
}

#[tokio::test]
async fn chunks_end_where_characters_end() {
    let text = "ääääääääääääää🌲🌲🌲🌲🌲🌲";
    let (end, chunks) = play(&model(&format!("rules: [{{ say: {text} }}]")), attempt()).await;
    assert!(chunks.len() > 3 && chunks.iter().all(|chunk| chunk.len() <= 16), "{chunks:?}");
    assert_eq!(chunks.concat(), text);
    assert_eq!(end.unwrap().text, text);
}

#[tokio::test]
async fn attempts_fail_as_often_as_written() {
    let script = "rules: [{ fail: { kind: rate_limit, times: 2, retry_after_ms: 20 }, say: at last }]";
    for number in [1, 2] {
        let missed = missed(script, with(attempt(), |it| it.attempt = number)).await;
        let message = format!("rule 1 of x.script.yaml: attempt {number} fails as scripted");
        let fault = Fault { kind: FaultKind::RateLimit, message, retry_after_ms: Some(20) };
        assert_eq!(missed, AttemptError { fault, used: used(0, 0) });
    }
    assert_eq!(answer(script, with(attempt(), |it| it.attempt = 3)).await.text, "at last");
}

#[tokio::test]
async fn attempts_without_a_number_of_times_always_fail() {
    let kinds = [
        ("rate_limit", FaultKind::RateLimit, used(0, 0)),
        ("server", FaultKind::Server, used(0, 0)),
        ("auth", FaultKind::Auth, used(0, 0)),
        ("timeout", FaultKind::Timeout, used(100, 0)),
        ("cut", FaultKind::Cut, used(100, 2)),
    ];
    for (name, kind, expected) in kinds {
        for number in [1, 2, 9] {
            let script = format!("rules: [{{ fail: {{ kind: {name} }}, say: unsaid }}]");
            let missed = missed(&script, with(attempt(), |it| it.attempt = number)).await;
            assert_eq!((missed.fault.kind, missed.used, missed.fault.retry_after_ms), (kind, expected, None));
        }
    }
}

#[tokio::test]
async fn a_cut_breaks_the_stream_after_the_text() {
    let script =
        "rules: [{ fail: { kind: cut, times: 1 }, say: 'Half of the answer is', call: [{ tool: t }] }]";
    let (end, chunks) = play(&model(script), attempt()).await;
    assert_eq!(chunks.concat(), "Half of the answer is");
    let message = "rule 1 of x.script.yaml: attempt 1 fails as scripted".to_owned();
    let fault = Fault { message, ..Fault::new(FaultKind::Cut) };
    assert_eq!(end, Err(AttemptError { fault, used: used(100, 6) }));
    assert_eq!(answer(script, with(attempt(), |it| it.attempt = 2)).await.asks.len(), 1);
}

#[tokio::test]
async fn usage_is_counted_unless_it_is_written() {
    let table = [
        ("", used(100, 4)),
        ("usage: { input: 1200, output: 80 }, ", used(1_200, 80)),
        ("usage: { input: 1200 }, ", used(1_200, 4)),
        ("usage: { output: 999999 }, ", used(100, 999_999)),
        ("usage: { input: 0, output: 0 }, ", used(0, 0)),
    ];
    for (usage, expected) in table {
        let script = format!("rules: [{{ {usage}say: thirteen byte }}]");
        assert_eq!(answer(&script, attempt()).await.used, expected, "{usage}");
    }
    let cut = "rules: [{ usage: { output: 7 }, fail: { kind: cut }, say: hi }]";
    assert_eq!(missed(cut, attempt()).await.used, used(100, 7));
}

#[tokio::test]
async fn nothing_is_said_beyond_the_output_cap() {
    let script = "rules: [{ say: 'twelve bytes and more', call: [{ tool: t }] }]";
    let (end, chunks) = play(&model(script), with(attempt(), |it| it.output_cap = 3)).await;
    assert_eq!(chunks, ["twelve bytes"]);
    assert_eq!(
        end,
        Ok(ModelAnswer::text(chunks.concat()).with_used(used(100, 3)).with_stop(StopReason::OutputCap))
    );

    let script = "rules: [{ say: '🌲🌲', call: [{ tool: t, args: { a: long }, id: i }, { tool: u }] }]";
    let whole = r#"{"a":"long"}"#;
    let table = [
        (0, "", vec![]),
        (1, "🌲", vec![]),
        (2, "🌲🌲", vec![]),
        (3, "🌲🌲", vec![r#"{"a""#]),
        (5, "🌲🌲", vec![whole]),
        (6, "🌲🌲", vec![whole, "{}"]),
    ];
    for (output_cap, text, args) in table {
        let answer = answer(script, with(attempt(), |it| it.output_cap = output_cap)).await;
        let asked: Vec<&str> = answer.asks.iter().map(|ask| ask.args.as_str()).collect();
        let expected = (text, args, used(100, output_cap));
        assert_eq!((answer.text.as_str(), asked, answer.used), expected, "cap {output_cap}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rule_that_hangs_never_ends() {
    let stuck = model("rules: [{ hang: true, say: so far }]");
    let hours = Duration::from_secs(100 * 60 * 60);
    let heard = Arc::new(Mutex::new(String::new()));
    let ear = Arc::clone(&heard);
    let deltas = Arc::new(move |_, chunk: &str| ear.lock().unwrap().push_str(chunk));
    assert!(timeout(hours, stuck.call(Arc::new(attempt()), deltas)).await.is_err());
    assert_eq!((heard.lock().unwrap().as_str(), stuck.calls()), ("so far", 1));

    let failing = "rules: [{ fail: { kind: server, times: 1 }, hang: true }]";
    assert_eq!(missed(failing, attempt()).await.fault.kind, FaultKind::Server);
    let second = with(attempt(), |it| it.attempt = 2);
    assert!(timeout(hours, play(&model(failing), second)).await.is_err());
}

#[tokio::test]
async fn a_stopped_attempt_used_what_it_said() {
    let model = model("rules: [{ say: hi }]");
    assert_eq!(model.used_when_stopped(&attempt(), "five!"), used(100, 2));
    assert_eq!(model.lost(), OnLost::Repeatable);
    assert_eq!(["", "a", "four", "five!"].map(|text| model.tokens(text)), [0, 1, 1, 2]);
}

#[tokio::test]
async fn a_billing_provider_can_be_played() {
    let rules = |kind| format!("lost: presumed\nrules: [{{ fail: {{ kind: {kind} }}, say: hi }}]");
    let billing = model(&rules("cut"));
    assert_eq!(billing.lost(), OnLost::Presumed);
    assert_eq!(billing.used_when_stopped(&attempt(), "five!"), Used::Unknown);
    for (kind, expected) in [("cut", Used::Unknown), ("timeout", Used::Unknown), ("server", used(0, 0))] {
        assert_eq!(missed(&rules(kind), attempt()).await.used, expected, "{kind}");
    }
    let recorded = "lost: presumed\nrules: [{ fail: { kind: cut }, say: hi, usage: { output: 9 } }]";
    assert_eq!(missed(recorded, attempt()).await.used, used(100, 9));
    assert_eq!(model("lost: repeatable\nrules: [{ say: hi }]").lost(), OnLost::Repeatable);
}

#[tokio::test]
async fn templates_run_out_of_fuel_or_room_and_never_hang() {
    let endless = "rules: [{ say: '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}' }]";
    let fault = missed(endless, attempt()).await.fault;
    assert_eq!(fault.kind, FaultKind::Invalid);
    assert_eq!(fault.message, "rule 1 of x.script.yaml: `say`: engine ran out of fuel");

    let endless =
        "rules: [{ call: [{ tool: t, args: ['{% for a in range(100000) %}{{ a }}{% endfor %}'] }] }]";
    let fault = missed(endless, attempt()).await.fault;
    assert_eq!(fault.message, "rule 1 of x.script.yaml: `call` 1: engine ran out of fuel");

    let large = "rules: [{ say: '{% for a in range(1000) %}{{ last }}{% endfor %}' }]";
    let long = packet(vec![heard(&"x".repeat(RENDERED_BYTES_MAX / 100))]);
    let fault = missed(large, with(attempt(), |it| it.packet = long)).await.fault;
    assert_eq!(fault.message, "rule 1 of x.script.yaml: `say`: the template writes more than 1048576 bytes");

    let grown = format!("rules: [{{ say: '{{{{ last{} }}}}' }}]", "|replace(\"x\", last)".repeat(8));
    let fault =
        missed(&grown, with(attempt(), |it| it.packet = packet(vec![heard("xxxxxxxxxx")]))).await.fault;
    assert_eq!(
        fault.message,
        "rule 1 of x.script.yaml: `say`: invalid operation: a filter would build more than 1048576 bytes"
    );
    let doubled = format!("rules: [{{ say: '{{{{ last{} }}}}' }}]", "|tojson".repeat(60));
    let fault = missed(&doubled, with(attempt(), |it| it.packet = packet(vec![heard("\"")]))).await.fault;
    assert!(fault.message.ends_with("a filter would build more than 1048576 bytes"), "{}", fault.message);

    for (template, problem) in
        [("{{ remaining.gold }}", "undefined value"), ("{{ remaining.gold|upper }}", "undefined value")]
    {
        let fault = missed(&format!("rules: [{{ say: '{template}' }}]"), attempt()).await.fault;
        assert_eq!(fault.message, format!("rule 1 of x.script.yaml: `say`: {problem}"));
    }
}

/// The whole part of the language that scripts have, at work.
#[tokio::test]
async fn templates_choose_loop_count_and_filter() {
    let table = [
        ("{{ turn + 1 }} {{ 7 // 2 - 1 }} {{ -turn }}", "2 2 -1"),
        ("{% if turn == 1 and 'x' in 'xy' %}yes{% elif turn is odd %}odd{% else %}no{% endif %}", "yes"),
        ("{{ 'a' if agent in ['lead', 'b'] else 'c' }}", "a"),
        ("{% for n in range(3) %}{{ n }}{% if not loop.last %},{% endif %}{% endfor %}", "0,1,2"),
        ("{% for name in ['a', 'b'] %}<{{ name|upper }}>{% endfor %}", "<A><B>"),
        (
            "{{ remaining.gold|default('none') }} {{ ['a', 1]|join('-') }} {{ agent[1:]|length }}",
            "none a-1 3",
        ),
        ("{{ 'a.b'|replace('.', '/')|tojson }}{# unsaid #}", "\"a/b\""),
        ("{% raw %}{{ kept }}{% endraw %}", "{{ kept }}"),
    ];
    for (template, expected) in table {
        let script = format!("rules:\n  - say: |-\n      {template}\n");
        assert_eq!(answer(&script, attempt()).await.text, expected, "{template}");
    }
}

/// A worker is free while a template is rendered: the only one of this runtime turns a second task meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 1)]
async fn templates_are_rendered_off_the_workers() {
    let busy = "{% for a in range(4000) %}{% if 'y' in last %}{% endif %}{% endfor %}done";
    let script = model(&format!("rules: [{{ say: \"{busy}\" }}]"));
    let long = packet(vec![heard(&"x".repeat(RENDERED_BYTES_MAX))]);
    let rendered = tokio::spawn(async move { play(&script, with(attempt(), |it| it.packet = long)).await.0 });
    let other = tokio::spawn(async {});
    other.await.unwrap();
    assert!(!rendered.is_finished());
    assert_eq!(rendered.await.unwrap().unwrap().text, "done");
}

/// What a script names, with the places, so a caller can tell what does not exist.
#[test]
fn a_script_lists_the_roles_and_tools_that_it_names() {
    let script = Script::parse(
        "s.yaml",
        "rules:
  - when: { agent: lead }
    call: [ { tool: look }, { tool: spawn_agent, args: { agent: helper } }, { tool: spawn_agent, args: { agent: '{{ last }}' } } ]
  - { when: { agent: helper, summary: true }, say: done }
",
    )
    .unwrap();
    let named: Vec<(Mentioned, &str, u64, u64)> =
        script.mentions().map(|mention| (mention.what, mention.name, mention.line, mention.column)).collect();
    let expected = [
        (Mentioned::Role, "lead", 2, 20),
        (Mentioned::Tool, "look", 3, 21),
        (Mentioned::Tool, "spawn_agent", 3, 37),
        (Mentioned::Role, "helper", 3, 37),
        (Mentioned::Tool, "spawn_agent", 3, 85),
        (Mentioned::Role, "helper", 4, 22),
    ];
    assert_eq!(named, expected);
    let answers = |role: &str| script.answers(&role.parse().unwrap());
    // A rule for summaries answers no turn.
    assert_eq!([answers("lead"), answers("helper"), answers("other")], [true, false, false]);
}
