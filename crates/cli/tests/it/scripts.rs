//! Scripts that several tests use.

pub(crate) const SAYS: &str = "rules: [ { say: done } ]";
pub(crate) const HANGS: &str = "rules: [ { hang: true } ]";
/// Asks a person, and repeats the answer.
pub(crate) const ASKS: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: Which colour? } } ]
  - say: 'You said {{ last }}'
";
/// Asks a person while a tool hangs.
pub(crate) const BUSY: &str = "
rules:
  - when: { turn: 1 }
    call: [ { tool: ask_human, args: { question: Which colour? } }, { tool: hang } ]
  - say: done
tools: { hang: { hang: true } }
";
/// Uses 900 tokens in its first turn.
pub(crate) const SPENDS: &str = "
rules:
  - when: { turn: 1 }
    usage: { input: 100, output: 800 }
    call: [ { tool: look } ]
  - say: done
tools: { look: { description: looks, say: seen } }
";
