//! What Claude Code and Codex send to a provider, with no gateway between them. The gateway reads these fields: if a new
//! version of a program changes one, this fails first and says which (decision 0039).

use std::collections::BTreeSet;

use serde_json::json;

use super::outside::{BIRCHES, DONE, KEY, OAKS, Program, ended};
use crate::provider::{Exchange, Pace, Provider, Question};
use crate::test_folder::TestFolder;

/// Both sub-agents are asked for before either is answered, so both are open at once.
fn play(program: Program) -> (Vec<Exchange>, Vec<Question>) {
    let stage = TestFolder::new();
    let provider = Provider::new(move |question| {
        let pace = if question.has(OAKS) || question.has(BIRCHES) { Pace::Late } else { Pace::AtOnce };
        program.answer(question).at(pace)
    });
    let playing = program.play_directly(&stage, &provider);
    provider.until("a request of each sub-agent", |exchanges| {
        let is_part = |exchange: &&Exchange| {
            exchange.answered.as_ref().is_some_and(|(_, answer)| answer.pace == Pace::Late)
        };
        exchanges.iter().filter(is_part).count() == 2
    });
    provider.release();
    let ended = ended(playing);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(ended.out.contains(DONE), "{ended:?}");
    let questions: Vec<_> = provider.answered().into_iter().map(|(question, _)| question).collect();
    let agents: BTreeSet<_> = questions.iter().map(|question| program.agent(question)).collect();
    assert_eq!((agents.len(), program.agent(&questions[0])), (3, None), "{agents:?}");
    (provider.exchanges(), questions)
}

fn values<'q>(questions: &'q [Question], header: &str) -> BTreeSet<Option<&'q str>> {
    questions.iter().map(|question| question.asked.header(header)).collect()
}

#[test]
fn claude_code_names_its_session_and_its_sub_agents_in_headers() {
    let (exchanges, questions) = play(Program::ClaudeCode);
    let [first, parts @ .., last] = questions.as_slice() else { panic!("{} questions", questions.len()) };
    assert_eq!(parts.len(), 2);

    assert_eq!(values(&questions, "x-api-key"), [Some(KEY)].into());
    let sessions = values(&questions, "x-claude-code-session-id");
    assert!(sessions.len() == 1 && !sessions.contains(&None), "{sessions:?}");
    let agents = values(parts, "x-claude-code-agent-id");
    assert!(agents.len() == 2 && !agents.contains(&None), "{agents:?}");
    for question in [first, last] {
        assert_eq!(question.asked.header("x-claude-code-agent-id"), None);
    }
    assert_eq!(values(&questions, "x-claude-code-parent-agent-id"), [None].into(), "only below a sub-agent");

    for question in &questions {
        let body = &question.asked.body;
        assert!(question.is_streamed && question.asked.path().starts_with("/v1/messages"));
        assert_eq!((&question.model, &body["max_tokens"]), (&"claude-sonnet-4-5".to_owned(), &json!(32_000)));
        assert_eq!(body["thinking"]["budget_tokens"], json!(31_999));
    }
    let others: Vec<_> = exchanges.iter().filter(|exchange| exchange.answered.is_none()).collect();
    assert!(
        others.iter().all(|exchange| exchange.asked.method() == "HEAD"),
        "asks for nothing else that counts"
    );
}

#[test]
fn codex_names_its_threads_and_their_parents_in_headers() {
    let (exchanges, questions) = play(Program::Codex);
    assert_eq!(values(&questions, "authorization"), [Some(&*format!("Bearer {KEY}"))].into());
    let root = questions[0].asked.header("thread-id").unwrap();
    assert_eq!(values(&questions, "session-id"), [Some(root)].into());
    let parts: Vec<_> = questions
        .iter()
        .filter(|question| question.asked.header("thread-id") != Some(root))
        .cloned()
        .collect();
    assert_eq!(values(&parts, "thread-id").len(), 2);
    assert_eq!(values(&parts, "x-codex-parent-thread-id"), [Some(root)].into());
    assert_eq!(values(&parts, "x-openai-subagent"), [Some("collab_spawn")].into());

    for question in &questions {
        assert!(question.is_streamed && question.asked.path() == "/v1/responses");
        assert_eq!(question.asked.body.get("max_output_tokens"), None, "Codex sends no cap");
        let metadata = question.asked.header("x-codex-turn-metadata").unwrap();
        let metadata: serde_json::Value = serde_json::from_str(metadata).unwrap();
        let is_root = question.asked.header("thread-id") == Some(root);
        assert_eq!(metadata["agent_name"] == "/root", is_root, "{metadata}");
    }
    // A WebSocket first, once for each thread; 426 sends it to HTTP at once.
    let tries: Vec<_> = exchanges.iter().filter(|exchange| exchange.answered.is_none()).collect();
    assert_eq!(tries.len(), 3);
    assert!(tries.iter().all(|exchange| exchange.asked.header("upgrade") == Some("websocket")));
    assert!(tries.iter().all(|exchange| exchange.status.contains(" 426 ")));
}
