//! The tree from the wire: each agent that a program names has its own account.

use std::sync::Arc;
use std::time::Duration;

use reqwest::StatusCode;
use spinney::{Journal, MemoryJournal, Shutdown};
use spinney_kernel::budget::Resource;
use spinney_kernel::primitives::{Actor, Seq};
use spinney_kernel::record::{Event, Work};
use spinney_kernel::rules::InputKind;
use spinney_server::gateway::wire::TOLD_LINE_TOKENS_MAX;
use spinney_server::gateway::{GatewaySettings, Notice};
use tokio::time::sleep;

use crate::provider::{Format, Provider};
use crate::run::{TOKEN, TestRun, budget, settings};

/// A call of Claude Code.
async fn claude(run: &TestRun, agent: Option<&str>, parent: Option<&str>, tokens: u64) -> StatusCode {
    let format = Format::Messages;
    let mut post = run
        .post(format, &format.request(tokens, "work", false))
        .header("user-agent", "claude-cli/2.1")
        .header("x-claude-code-session-id", "s-1");
    if let Some(agent) = agent {
        post = post.header("x-claude-code-agent-id", agent);
    }
    if let Some(parent) = parent {
        post = post.header("x-claude-code-parent-agent-id", parent);
    }
    post.send().await.unwrap().status()
}

/// A call of Codex.
async fn codex(run: &TestRun, thread: &str, parent: Option<&str>, tokens: u64) -> StatusCode {
    let format = Format::Responses;
    let mut post = run
        .post(format, &format.request(tokens, "work", true))
        .header("originator", "codex_exec")
        .header("thread-id", thread);
    if let Some(parent) = parent {
        post = post.header("x-codex-parent-thread-id", parent).header("x-openai-subagent", "review");
    }
    let response = post.send().await.unwrap();
    let status = response.status();
    response.text().await.unwrap();
    status
}

/// A call of opencode or Kilo.
async fn opencode(run: &TestRun, session: &str, parent: Option<&str>, tokens: u64) -> StatusCode {
    let format = Format::Chat;
    let mut post = run
        .post(format, &format.request(tokens, "work", false))
        .header("user-agent", "opencode/1.1.49")
        .header("x-session-id", session);
    if let Some(parent) = parent {
        post = post.header("x-parent-session-id", parent);
    }
    post.send().await.unwrap().status()
}

/// G10 (sessions): the sub-agents of opencode and Kilo are sessions, each with an account below that of its parent.
#[tokio::test(flavor = "multi_thread")]
async fn g10_sessions_below_a_session_are_agents_with_their_own_accounts() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    for (session, parent, tokens) in [
        ("ses_a", None, 100),
        ("ses_b", Some("ses_a"), 20),
        ("ses_c", Some("ses_b"), 3),
        ("ses_b", Some("ses_a"), 20),
    ] {
        assert_eq!(opencode(&run, session, parent, tokens).await, StatusCode::OK);
    }
    // The last call is settled only now.
    run.gateway.close(sleep(Duration::from_secs(10))).await;
    let snapshot = run.tree.snapshot().await.unwrap();
    let spent = |depth: u32| {
        let at = snapshot.agents.iter().filter(|agent| agent.depth == depth);
        at.map(|agent| agent.spent.get(Resource::Cost) / TOKEN).collect::<Vec<u64>>()
    };
    // What is below counts above as well.
    assert_eq!((spent(0), spent(1), spent(2)), (vec![143], vec![43], vec![3]));
}

/// G10 (the tree of it): sub-agents are nested agents with their own accounts, and the sum over agents is the total.
#[tokio::test(flavor = "multi_thread")]
async fn g10_agents_from_the_wire_are_nested_and_their_sum_is_the_total() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    for (agent, parent, tokens) in [
        (None, None, 100),
        (Some("a"), None, 20),
        (Some("b"), Some("a"), 3),
        (Some("a"), None, 20),
        (Some("c"), Some("nobody-knows"), 7),
        (None, None, 100),
    ] {
        assert_eq!(claude(&run, agent, parent, tokens).await, StatusCode::OK);
    }
    assert_eq!(codex(&run, "t-1", None, 1_000).await, StatusCode::OK);
    assert_eq!(codex(&run, "t-2", Some("t-1"), 500).await, StatusCode::OK);
    run.gateway.close(sleep(Duration::from_secs(10))).await;
    let snapshot = run.tree.snapshot().await.unwrap();
    let spent = |at: usize| snapshot.agents[at].spent.get(Resource::Cost) / TOKEN;
    let parents: Vec<Option<&str>> =
        snapshot.agents.iter().map(|agent| agent.parent.as_ref().map(|parent| parent.as_str())).collect();
    let (main, a) = (snapshot.agents[0].agent.as_str(), snapshot.agents[1].agent.as_str());
    assert_eq!(parents, [None, Some(main), Some(a), Some(main), Some(main)]);
    assert_eq!([0, 1, 2, 3, 4].map(spent), [1_750, 43, 3, 7, 500]);
    assert!(snapshot.agents[4].agent.as_str().starts_with("review-"));
}

/// `--child-budget-usd` is the ceiling of each sub-agent; the notice names the account to raise.
#[tokio::test(flavor = "multi_thread")]
async fn the_ceiling_of_a_sub_agent_halts_the_run_until_that_agent_is_raised() {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.child_cost_nanos = Some(50 * TOKEN);
    let mut run = TestRun::start_with(settings, &budget(10_000)).await;
    let format = Format::Messages;
    let post = run
        .post(format, &format.request(80, "work", false))
        .header("x-claude-code-session-id", "s-1")
        .header("x-claude-code-agent-id", "a");
    let call = tokio::spawn(post.send());
    run.heard(|notice| matches!(notice, Notice::Halted { account, .. } if account.as_str() != "main")).await;
    let snapshot = run.snapshot().await;
    let child = snapshot.halted.unwrap().account;
    run.raise(child.as_str(), 100).await;
    assert_eq!(call.await.unwrap().unwrap().status(), StatusCode::OK);
}

/// G10 (most agents): the first call of one agent too many is refused with a text that its program shows; nothing is
/// spawned or sent for it, and the others continue. A resumed run counts the agents that ended as well.
#[tokio::test(flavor = "multi_thread")]
async fn g10_the_first_call_of_one_agent_too_many_is_refused_with_a_text() {
    let provider = Provider::spending_all().await;
    let journal: Arc<dyn Journal> = Arc::new(MemoryJournal::new());
    let limited = || GatewaySettings { agents_max: Some(3), ..settings(&provider) };
    let run = TestRun::start_in(Arc::clone(&journal), limited(), &budget(10_000)).await;
    for agent in [None, Some("a"), Some("b"), Some("a")] {
        assert_eq!(claude(&run, agent, None, 1).await, StatusCode::OK);
    }
    let format = Format::Messages;
    let post = |run: &TestRun, agent: &str| {
        let post = run.post(format, &format.request(1, "work", false)).header("user-agent", "claude-cli/2.1");
        post.header("x-claude-code-session-id", "s-1").header("x-claude-code-agent-id", agent)
    };
    let sent = provider.got.lock().unwrap().len();
    for refused in ["c", "d", "c"] {
        let response = post(&run, refused).send().await.unwrap();
        assert_eq!(response.status(), StatusCode::BAD_REQUEST);
        let body: serde_json::Value = serde_json::from_str(&response.text().await.unwrap()).unwrap();
        let text = body["error"]["message"].as_str().unwrap();
        assert_eq!(
            text,
            format!(
                "spinney: this run may have 3 agents, and agent {refused} would be one more: continue without it"
            )
        );
    }
    assert_eq!(provider.got.lock().unwrap().len(), sent, "nothing was sent");
    assert_eq!(run.snapshot().await.agents.len(), 3);
    assert_eq!(claude(&run, Some("b"), None, 1).await, StatusCode::OK);
    run.gateway.close(sleep(Duration::from_secs(10))).await;
    run.home.shutdown(Shutdown::Stop).await;
    let resumed = TestRun::resume_in(journal, limited()).await;
    assert_eq!(claude(&resumed, Some("a"), None, 1).await, StatusCode::OK);
    assert_eq!(claude(&resumed, Some("e"), None, 1).await, StatusCode::BAD_REQUEST);
}

/// `--tell-remaining`: each call has a line at the end of its system prompt, for the scarcest ceiling above its agent. Its
/// tokens are held.
#[tokio::test(flavor = "multi_thread")]
async fn an_agent_is_told_what_is_left_of_its_own_ceiling() {
    let provider = Provider::spending_all().await;
    let settings =
        GatewaySettings { tells_remaining: true, child_cost_nanos: Some(100 * TOKEN), ..settings(&provider) };
    let run = TestRun::start_with(settings, &budget(10_000)).await;
    for _ in 0..2 {
        let seen = run.snapshot().await.seq;
        assert_eq!(claude(&run, Some("a"), None, 45).await, StatusCode::OK);
        // It is booked when the response has ended here, which may be after it has ended there.
        run.saw_after(seen, |event| matches!(event, Event::CallEnded { .. })).await;
    }
    assert_eq!(claude(&run, Some("a"), None, 1).await, StatusCode::OK);
    let got = provider.got.lock().unwrap().clone();
    let told: Vec<String> =
        got.iter().map(|got| got.json()["system"].as_str().unwrap_or_default().to_owned()).collect();
    assert_eq!(
        told,
        [
            "Budget: more than 75 % of $0.10 is left.",
            "Budget: more than 50 % of $0.10 is left.",
            "Budget: less than 10 % of $0.10 is left. Finish now with what you have.",
        ]
    );
    let held = run.events().await.into_iter().find_map(|event| match event {
        Event::CallAsked { work: Work::Model(work), .. } => Some(work.input_tokens),
        _ => None,
    });
    assert!(held.is_some_and(|tokens| tokens >= TOLD_LINE_TOKENS_MAX), "{held:?}");
}

/// Names that are too long or not plain count as missing: such a call belongs to the main agent.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_names_of_agents_make_no_agents() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    let long = "x".repeat(5_000);
    for name in ["../../etc", "a b", "\u{e9}", long.as_str()] {
        assert_eq!(claude(&run, Some(name), None, 1).await, StatusCode::OK);
    }
    assert_eq!(run.snapshot().await.agents.len(), 1);
}

/// Many agents that speak for the first time at once are spawned once each.
#[tokio::test(flavor = "multi_thread")]
async fn agents_that_speak_at_once_are_spawned_once() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    let names: Vec<String> = (0..40).map(|at| format!("agent-{}", at % 8)).collect();
    let calls = names.iter().map(|name| claude(&run, Some(name), None, 1));
    let statuses = futures::future::join_all(calls).await;
    assert!(statuses.iter().all(|status| *status == StatusCode::OK), "{statuses:?}");
    let spawned = run.events().await.iter().filter(|event| matches!(event, Event::AgentSpawned(_))).count();
    assert_eq!(spawned, 9);
}

/// Agents deeper than 16 levels are booked at the deepest one that has an account.
#[tokio::test(flavor = "multi_thread")]
async fn agents_below_the_deepest_level_are_booked_above() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    let names: Vec<String> = (0..20).map(|at| format!("a{at}")).collect();
    for (at, name) in names.iter().enumerate() {
        let parent = at.checked_sub(1).map(|above| names[above].as_str());
        assert_eq!(claude(&run, Some(name), parent, 1).await, StatusCode::OK);
    }
    run.gateway.close(sleep(Duration::from_secs(10))).await;
    let snapshot = run.tree.snapshot().await.unwrap();
    assert_eq!(snapshot.agents.len(), 17);
    assert_eq!(snapshot.agents.iter().map(|agent| agent.depth).max(), Some(16));
    let spent: Vec<u64> =
        snapshot.agents.iter().map(|agent| agent.spent.get(Resource::Cost) / TOKEN).collect();
    assert_eq!((spent[0], spent[16]), (20, 5), "{spent:?}");
}

/// An agent that makes no call for long is ended; if it speaks again, it gets a new account.
#[tokio::test(flavor = "multi_thread")]
async fn silent_agents_are_collected_and_may_come_back() {
    let provider = Provider::spending_all().await;
    let mut settings = settings(&provider);
    settings.waiting.silent = Duration::from_millis(20);
    let run = TestRun::start_with(settings, &budget(10_000)).await;
    assert_eq!(claude(&run, Some("a"), None, 1).await, StatusCode::OK);
    assert_eq!(claude(&run, Some("b"), Some("a"), 1).await, StatusCode::OK);
    let mut ended = 0;
    while ended < 2 {
        let events = run.events().await;
        ended = events.iter().filter(|event| matches!(event, Event::AgentEnded { .. })).count();
        tokio::task::yield_now().await;
    }
    assert_eq!(claude(&run, Some("a"), None, 1).await, StatusCode::OK);
    let snapshot = run.snapshot().await;
    assert_eq!(snapshot.agents.len(), 4);
    assert_ne!(snapshot.agents[1].agent, snapshot.agents[3].agent);
}

/// What the gateway asks of the tree is recorded as the gateway's, and not as a person's: models, agents and calls.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_the_gateway_are_recorded_as_its_own() {
    let provider = Provider::spending_all().await;
    let run = TestRun::start(&provider, 10_000).await;
    assert_eq!(claude(&run, None, None, 100).await, StatusCode::OK);
    assert_eq!(claude(&run, Some("a"), None, 20).await, StatusCode::OK);
    run.gateway.close(sleep(Duration::from_secs(10))).await;
    let entries = run.home.journal().read(run.tree.id(), Seq(0), usize::MAX).await.unwrap();
    let asked: Vec<(Actor, &str)> = entries
        .iter()
        .filter_map(|entry| match &entry.batch.input.what {
            InputKind::Request { by, .. } => Some((by.clone(), entry.batch.events[0].as_str())),
            InputKind::Report(_) => None,
        })
        .collect();
    assert_eq!(asked[0], (Actor::PROGRAM, "tree_started"));
    for word in ["model_added", "agent_spawned", "call_asked"] {
        assert!(asked.contains(&(Actor::GATEWAY, word)), "{word}: {asked:?}");
    }
    assert!(asked[1..].iter().all(|(by, _)| *by == Actor::GATEWAY), "{asked:?}");
}
