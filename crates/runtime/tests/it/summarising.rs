//! Windows that an agent's own model summarizes, in whole trees: paid like every call, and through a crash.

use spinney::Tree;
use spinney::tree::verify;
use spinney_journal::Blocking;
use spinney_kernel::budget::{Amounts, Resource};
use spinney_kernel::port::model::Purpose;
use spinney_kernel::primitives::Running;
use spinney_kernel::record::{Event, Exit, ExitKind, NoSummary, Summary, Work};
use spinney_kernel::rules::request;
use spinney_kernel::world::TreeState;
use spinney_testkit::{TestHome, definition, recorded, settled};

/// An agent that looks twelve times, then answers, and summarizes what leaves its window; `summary` is that rule.
fn script(summary: &str) -> String {
    let words = "word ".repeat(80);
    format!(
        "rules:\n  - {{ when: {{ summary: true }}, {summary} }}\n  - {{ when: {{ turn: 12 }}, say: done }}\n  - {{ say: Looking., call: [{{ tool: look }}] }}\ntools: {{ look: {{ say: {words} }} }}"
    )
}

/// How each cut of a tree is described.
async fn cuts(tree: &Tree) -> Vec<Summary> {
    let cut = |event: &Event| if let Event::ContextCut { summary, .. } = event { *summary } else { None };
    recorded(tree).await.iter().filter_map(|recorded| cut(&recorded.event)).collect()
}

/// The summary calls of a tree.
async fn asked(tree: &Tree) -> usize {
    let is_it = |event: &Event| matches!(event, Event::CallAsked { work: Work::Model(model), .. } if model.summary.is_some());
    recorded(tree).await.iter().filter(|recorded| is_it(&recorded.event)).count()
}

#[tokio::test(start_paused = true)]
async fn a_tree_continues_from_its_own_summaries_and_replays() {
    let stage = TestHome::new(&script("say: \"Looked before {{ turn }}.\""));
    let tree = stage.home().start(definition("root $9.00 turns=20 tools=look summed=1300")).await.unwrap();
    assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
    assert_eq!(tree.snapshot().await.unwrap().end.unwrap().shown.text, "done");
    let cuts = cuts(&tree).await;
    assert!(cuts.len() > 1 && cuts.iter().all(|cut| matches!(cut, Summary::By(_))), "{cuts:?}");
    let attempts = stage.model().attempts();
    let summaries = attempts.iter().filter(|attempt| attempt.purpose == Purpose::Summary);
    assert_eq!(summaries.clone().count(), cuts.len());
    assert!(
        summaries.clone().all(|attempt| attempt.packet.tools.is_empty() && attempt.packet.tokens <= 1_300)
    );
    // The turn after each summary reads it, and so does the next summary.
    for (place, attempt) in
        attempts.iter().enumerate().filter(|(_, attempt)| attempt.purpose == Purpose::Summary)
    {
        let recorded = attempts[place + 1].packet.messages[1].text().into_owned();
        assert!(
            recorded
                .starts_with(&format!("Earlier steps, summed up by you:\nLooked before {}.", attempt.turn)),
            "{recorded}"
        );
        assert_eq!(attempts[place + 1].purpose, Purpose::Turn);
    }
    let turns: Vec<u32> = attempts
        .iter()
        .filter(|attempt| attempt.purpose == Purpose::Turn)
        .map(|attempt| attempt.turn)
        .collect();
    assert_eq!(turns, (1..=12).collect::<Vec<_>>());
    assert!(verify(stage.journal().as_ref(), tree.id(), None).wait().unwrap().decided);
}

/// Summaries are spent by the agent and all its ancestors, without steps, and the ceiling holds.
#[tokio::test(start_paused = true)]
async fn summaries_are_paid_by_their_agent_and_no_ceiling_is_passed() {
    let free = TestHome::new(&script("say: Looked."));
    let tree = free.home().start(definition("root $9.00 turns=20 tools=look summed=1300")).await.unwrap();
    tree.ended().await;
    let spent = tree.snapshot().await.unwrap().end.unwrap().spent;
    let booked = |event: &Event| {
        if let Event::CallEnded { spent, .. } | Event::AttemptFailed { spent, .. } = event {
            *spent
        } else {
            Amounts::ZERO
        }
    };
    let sum =
        recorded(&tree).await.iter().fold(Amounts::ZERO, |sum, recorded| sum.plus(&booked(&recorded.event)));
    assert_eq!((spent, spent.get(Resource::Steps)), (sum, 12));
    for limit in 20..110 {
        let stage = TestHome::new(&script("say: Looked."));
        let tokens = limit * 120;
        let tree = stage
            .home()
            .start(definition(&format!("root $9.00 turns=20 tools=look summed=1300 tokens={tokens}")))
            .await
            .unwrap();
        let snapshot = settled(&tree).await;
        let spent = snapshot.agents[0].spent.get(Resource::Tokens);
        assert!(spent <= tokens, "{spent} of {tokens}");
    }
}

/// Without a summary, for whatever reason, lines describe what was cut, and every run ends normally.
#[tokio::test(start_paused = true)]
async fn without_summaries_every_run_comes_to_its_end() {
    let rules = [
        ("fail: { kind: auth }", NoSummary::Failed),
        ("fail: { kind: server }", NoSummary::Failed),
        ("say: \"  \"", NoSummary::Empty),
        ("say: Let me see., call: [{ tool: look }]", NoSummary::Tools),
    ];
    for (rule, why) in rules {
        let stage = TestHome::new(&script(rule));
        let tree =
            stage.home().start(definition("root $9.00 turns=20 tools=look summed=1300")).await.unwrap();
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed), "{rule}");
        let cuts = cuts(&tree).await;
        assert!(cuts.len() > 1 && cuts.iter().all(|cut| *cut == Summary::Not(why)), "{rule}: {cuts:?}");
        assert_eq!(asked(&tree).await, cuts.len(), "one for each cut");
    }
}

/// The process dies during a summary: a model that bills is called again and paid twice, a repeatable one gets the same
/// key and is paid once. The contexts afterwards are the same.
#[tokio::test(start_paused = true)]
async fn a_summary_that_was_cut_off_by_a_crash_is_written_again() {
    for (lost, attempts) in [("presumed", [1, 2]), ("repeatable", [1, 1])] {
        let rules = format!("lost: {lost}\n{}", script("think_ms: 1000, say: Looked."));
        let stage = TestHome::new(&rules);
        let home = stage.home();
        let tree = home.start(definition("root $9.00 turns=20 tools=look summed=1300")).await.unwrap();
        while !stage.model().attempts().iter().any(|attempt| attempt.purpose == Purpose::Summary) {
            tokio::task::yield_now().await;
        }
        let id = tree.id();
        drop((tree, home));
        let tree = stage.home().resume(id).await.unwrap();
        assert_eq!(tree.ended().await.state, TreeState::Ended(ExitKind::Completed));
        let all = stage.model().attempts();
        let summaries: Vec<_> = all.iter().filter(|attempt| attempt.purpose == Purpose::Summary).collect();
        assert_eq!([summaries[0].attempt, summaries[1].attempt], attempts, "{lost}");
        assert_eq!(summaries[0].packet, summaries[1].packet);
        assert_eq!(summaries[0].key == summaries[1].key, lost == "repeatable");
        assert!(cuts(&tree).await.iter().all(|cut| matches!(cut, Summary::By(_))));
        assert!(verify(stage.journal().as_ref(), id, None).wait().unwrap().decided);
    }
}

/// A redirect that stops running calls also stops a summary: the agent reads the new instruction at once.
#[tokio::test(start_paused = true)]
async fn a_redirect_stops_a_summary_and_the_agent_continues() {
    let stage = TestHome::new(&script("hang: true"));
    let home = stage.home();
    let tree = home.start(definition("root $9.00 turns=20 tools=look summed=1300")).await.unwrap();
    while !stage.model().attempts().iter().any(|attempt| attempt.purpose == Purpose::Summary) {
        tokio::task::yield_now().await;
    }
    let (agent, instruction) = ("root".parse().unwrap(), "Look elsewhere.".to_owned());
    let redirect = request::Redirect { agent, instruction, tokens: None, running: Running::Stops };
    tree.redirect(redirect).await.unwrap();
    let turn = loop {
        let attempts = stage.model().attempts();
        let mut after = attempts.iter().skip_while(|attempt| attempt.purpose == Purpose::Turn).skip(1);
        if let Some(turn) = after.next() {
            break std::sync::Arc::clone(turn);
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(turn.purpose, Purpose::Turn);
    assert_eq!(turn.packet.messages.last().unwrap().text(), "Look elsewhere.");
    tree.cancel("root".parse().unwrap(), "seen").await.unwrap();
    tree.ended().await;
    assert!(matches!(tree.snapshot().await.unwrap().end.unwrap().exit, Exit::Cancelled { .. }));
    assert_eq!(cuts(&tree).await[0], Summary::Not(NoSummary::Failed));
}
