//! The worked example of `docs/context.md`: its numbers are from here.

use std::fmt::Write;

use spinney_kernel::context::Message;
use spinney_kernel::definition::WindowSpec;
use spinney_kernel::primitives::RoleName;
use spinney_testkit::{TestHome, definition};

use crate::observed::name;

const DOCS: &str = include_str!("../../../../docs/context.md");

#[tokio::test(start_paused = true)]
async fn the_worked_example_is_what_happens() {
    let words = "word ".repeat(80);
    let script = format!(
        "rules:\n  - {{ when: {{ turn: 12 }}, say: done }}\n  - {{ say: Looking., call: [{{ tool: look }}] }}\ntools: {{ look: {{ say: {words} }} }}"
    );
    let stage = TestHome::new(&script);
    let mut plan = definition("root $9.00 turns=20");
    let turns = plan.roles.get_mut(&name::<RoleName>("root")).and_then(|role| role.turns.as_mut());
    turns.unwrap().window = Some(WindowSpec { size: Some(1_000), ..WindowSpec::default() });
    let tree = stage.home().start(plan).await.unwrap();
    tree.ended().await;
    let mut recorded = String::new();
    for attempt in stage.model().attempts() {
        let packet = &attempt.packet;
        let short = packet.messages.iter().find_map(|message| {
            if let Message::Folded(folded) = message.as_ref() { Some(folded.steps()) } else { None }
        });
        let short = short.map_or_else(String::new, |steps| format!(", {steps} steps in short"));
        let (turn, tokens, messages) = (attempt.turn, packet.tokens, packet.messages.len());
        let _ = writeln!(recorded, "turn {turn:>2}: {tokens:>4} tokens in {messages:>2} messages{short}");
    }
    assert!(DOCS.contains(&recorded), "docs/context.md has another example than this:\n{recorded}");
}
