//! The descriptions of built-in tools: pinned, because every agent reads them.

use std::collections::BTreeSet;

use insta::assert_snapshot;
use serde_json::{Map, Value, json};
use spinney_kernel::definition::Builtin;
use spinney_testkit::Scenario;

fn properties(schema: &Value) -> &Map<String, Value> {
    schema["properties"].as_object().unwrap()
}

fn schema(builtin: Builtin) -> Value {
    serde_json::from_str(builtin.schema()).unwrap()
}

#[test]
fn names_descriptions_and_schemas_of_the_built_in_tools_are_pinned() {
    let recorded = |builtin: Builtin| {
        let schema = serde_json::to_string_pretty(&schema(builtin)).unwrap();
        format!("{}: {}\n{schema}\n", builtin.as_str(), builtin.description())
    };
    assert_snapshot!(Builtin::ALL.map(recorded).join("\n"));
}

/// Every schema is strict, and so is the parser of the arguments: an object with every property is accepted, and one
/// with an unknown property is not.
#[test]
fn what_a_schema_offers_is_taken_and_nothing_else_is() {
    let budget = json!({ "cost_usd": 0.5, "tokens": 900, "steps": 3, "tool_calls": 2, "retries": 1, "timeout": "5m", "lend": true, "answer_reserve": 10, "on_low": { "downgrade": "m" } });
    let full = |builtin: Builtin| match builtin {
        Builtin::SpawnAgent => {
            json!({ "agent": "helper", "goal": "Help.", "id": "h", "budget": budget, "share": { "fork": 1 }, "tools": ["read"], "model": "m", "timeout": "90s", "detach": true, "messages": ["Read this."], "window": 5000 })
        }
        Builtin::WaitAgent => {
            json!({ "agents": ["done"], "need": { "first": 1 }, "sources": true, "timeout": 1 })
        }
        Builtin::SendMessage => {
            json!({ "to": "root", "text": "hi", "topic": "news", "type": "note", "correlation": "c" })
        }
        Builtin::WaitMessage => json!({ "timeout": "90s" }),
        Builtin::FollowupTask => {
            json!({ "agent": "done", "task": "More.", "budget": { "tokens": 900 }, "timeout": "5m", "detach": true })
        }
        Builtin::DelegateToAgent => {
            json!({ "agent": "done", "task": "Talk.", "id": "d", "turns": 3, "budget": { "tokens": 900 } })
        }
        Builtin::HandBack => json!({ "message": "done" }),
        Builtin::ListAgents => json!({}),
        Builtin::CancelAgent => json!({ "agent": "done", "reason": "enough" }),
        Builtin::AskHuman => {
            json!({ "question": "Which?", "timeout": "10m", "default": "blue", "on_timeout": "default", "choices": ["blue", "red"] })
        }
        Builtin::ReadContext => json!({ "key": "plan" }),
        Builtin::WriteContext => json!({ "key": "plan", "value": null, "expect_version": 0 }),
        Builtin::ListContext => json!({ "prefix": "p" }),
        Builtin::RunPipeline => json!({
            "mode": "parallel", "on_partial_success": "continue", "max_parallel": 2, "budget": { "tokens": 900 },
            "steps": [{ "agent_id": "done", "task_description": "More." }],
        }),
    };
    for builtin in Builtin::ALL {
        let (schema, args) = (schema(builtin), full(builtin));
        assert_eq!(schema["additionalProperties"], json!(false), "{builtin:?}");
        let keys = |map: &Map<String, Value>| map.keys().cloned().collect::<BTreeSet<_>>();
        let args_keys = keys(args.as_object().unwrap());
        let offered = keys(properties(&schema));
        // Schemas of answers have their own tests.
        let has_tests = |key: &String| ["output_schema", "answer_schema"].contains(&key.as_str());
        assert!(offered.difference(&args_keys).all(has_tests), "{builtin:?}: {offered:?}");
        assert_eq!(args_keys.difference(&offered).count(), 0, "{builtin:?}");
        if builtin == Builtin::SpawnAgent {
            let offered = keys(properties(&schema["properties"]["budget"]));
            assert_eq!(keys(budget.as_object().unwrap()), offered);
        }
        assert_eq!(refusal(builtin, &args), None, "{builtin:?}");
        let mut more = args.clone();
        more["surprise"] = json!(1);
        let refused = refusal(builtin, &more).unwrap_or_default();
        assert!(refused.contains("unknown field `surprise`"), "{builtin:?}: {refused}");
        for required in schema["required"].as_array().into_iter().flatten() {
            let mut less = args.clone();
            less.as_object_mut().unwrap().remove(required.as_str().unwrap());
            let refused = refusal(builtin, &less).unwrap_or_default();
            assert!(refused.contains("missing field"), "{builtin:?} without {required}: {refused}");
        }
    }
}

/// The error that the root's model reads after a call with bad arguments.
fn refusal(builtin: Builtin, args: &Value) -> Option<String> {
    let mut play = Scenario::grow("root $90.00 turns=20 / helper later turns=3 / done later turns=3");
    play.run(&format!("said #1 Go. | {} {args}", builtin.as_str()));
    let log = play.log();
    log.lines().find(|line| line.contains("bad arguments")).map(str::to_owned)
}
