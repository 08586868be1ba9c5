//! Descriptions and argument schemas of the built-in tools, as models read them. A change here changes what every
//! agent reads, and a snapshot pins it.

use super::Builtin;

impl Builtin {
    /// What it does and when to use it, for the model.
    #[must_use]
    pub const fn description(self) -> &'static str {
        match self {
            Self::SpawnAgent => {
                "give one self-contained task to a new agent, which knows nothing but its goal, and get its answer back here; for tasks that can be done at the same time, call it several times in one answer; with `detach` you go on meanwhile and collect the answer with wait_agent"
            }
            Self::WaitAgent => {
                "get the answers of agents that you detached, in the order in which you spawned them: of all, of any, of the first few that complete, or as soon as most of them agree; whoever was not detached answers by itself"
            }
            Self::SendMessage => {
                "tell an agent something while it runs, without waiting; it reads it before its next turn; one that has completed takes a followup_task instead"
            }
            Self::WaitMessage => {
                "wait until an agent writes to you, and read it; ends at once if every agent waits, because no message can come then"
            }
            Self::FollowupTask => {
                "ask an agent of yours that has completed for one more thing, and get the answer back here; it still knows what it did; for anything that has nothing to do with that use spawn_agent"
            }
            Self::DelegateToAgent => {
                "hand the conversation with the person over to a new agent, which knows what was said and talks to the person itself, until it hands back; you get its last words here; for a task without the person use spawn_agent"
            }
            Self::HandBack => {
                "end your part of the conversation: the agent that handed it to you continues, and reads your message"
            }
            Self::ListAgents => "see every agent of this tree: its id, role, parent, depth and state",
            Self::CancelAgent => {
                "stop an agent below you and everything below it, if its answer is no longer needed; what it used stays spent"
            }
            Self::AskHuman => {
                "ask a person and wait for the answer, where neither you nor another agent can decide; nobody else waits"
            }
            Self::ReadContext => {
                "read a value that agents of this tree share, with its version and author; for what an agent needs to know from the start give it a goal instead"
            }
            Self::WriteContext => {
                "store a JSON value under a key, for all agents of this tree; it replaces the value that was there; pass `expect_version` with the version that you read, so that nobody's change is lost"
            }
            Self::ListContext => "see which values agents of this tree share: key, version, size and author",
            Self::RunPipeline => {
                "run several steps in order or at the same time, where outputs of some are inputs of others, and get {succeeded, failed, outputs, trace_id} back here; for one task use spawn_agent, for one more question to an agent that has completed followup_task"
            }
        }
    }

    /// The JSON Schema of its arguments, as text.
    #[must_use]
    pub const fn schema(self) -> &'static str {
        match self {
            Self::SpawnAgent => SPAWN,
            Self::WaitAgent => WAIT,
            Self::SendMessage => SEND,
            Self::WaitMessage => WAIT_MESSAGE,
            Self::FollowupTask => FOLLOWUP,
            Self::DelegateToAgent => DELEGATE,
            Self::HandBack => HAND_BACK,
            Self::ListAgents => LIST,
            Self::CancelAgent => CANCEL,
            Self::AskHuman => ASK,
            Self::ReadContext => READ_CONTEXT,
            Self::WriteContext => WRITE_CONTEXT,
            Self::ListContext => LIST_CONTEXT,
            Self::RunPipeline => RUN_PIPELINE,
        }
    }

    /// The schema that agents of a tree under these rules see: without fields that those rules refuse.
    #[must_use]
    pub(crate) const fn schema_under(self, rules: u32) -> &'static str {
        match self {
            Self::AskHuman if rules < 3 => ASK_RULES_2,
            Self::AskHuman if rules < 8 => ASK_RULES_7,
            Self::SpawnAgent if rules < 8 => SPAWN_RULES_7,
            _ => self.schema(),
        }
    }
}

const SPAWN: &str = r#"{"type":"object","properties":{"agent":{"type":"string","description":"which role it has"},"goal":{"type":"string","description":"everything that it has to know"},"id":{"type":"string","description":"what it is called; drawn if left out"},"budget":{"type":"object","description":"the most that it may use; yours holds in any case","properties":{"cost_usd":{"type":"number"},"tokens":{"type":"integer"},"steps":{"type":"integer"},"tool_calls":{"type":"integer"},"retries":{"type":"integer"},"timeout":{"type":"string"},"lend":{"type":"boolean","description":"set it aside for this agent alone"},"answer_reserve":{"type":"integer","description":"percent that agents below it must leave"},"on_low":{"description":"halt, shrink, or {\"downgrade\": MODEL}"}},"additionalProperties":false},"share":{"description":"what it knows beside its goal: goal (nothing), briefing (what you were told), thread (your context messages, as they come), or {\"fork\": N} (your last N turns)"},"messages":{"type":"array","items":{"type":"string"},"description":"what it is given to read beside its goal"},"window":{"type":"integer","description":"the most tokens that it sees at once; what its model and role allow holds in any case"},"tools":{"type":"array","items":{"type":"string"},"description":"fewer tools than its role has"},"model":{"type":"string"},"timeout":{"type":"string","description":"such as 90s or 5m"},"detach":{"type":"boolean","description":"go on at once and collect later"}},"required":["agent","goal"],"additionalProperties":false}"#;

const WAIT: &str = r#"{"type":"object","properties":{"agents":{"type":"array","items":{"type":"string"},"minItems":1},"need":{"description":"all (if left out), any, {\"first\": K}: K that completed, or majority: the same answer from more than half"},"sources":{"type":"boolean","description":"also list every link that they name once, with who named it"},"timeout":{"type":"string","description":"such as 90s or 5m; then you get what there is, marked as partial"}},"required":["agents"],"additionalProperties":false}"#;

const SEND: &str = r#"{"type":"object","properties":{"to":{"type":"string"},"text":{"type":"string"},"topic":{"type":"string"},"type":{"type":"string","description":"what kind of message it is, in a word"},"correlation":{"type":"string","description":"what a reply will repeat"}},"required":["to","text"],"additionalProperties":false}"#;

const WAIT_MESSAGE: &str = r#"{"type":"object","properties":{"timeout":{"type":"string","description":"such as 90s or 5m"}},"additionalProperties":false}"#;

const FOLLOWUP: &str = r#"{"type":"object","properties":{"agent":{"type":"string","description":"the id of an agent that you spawned and that has completed"},"task":{"type":"string"},"budget":{"type":"object","description":"as for spawn_agent"},"timeout":{"type":"string"},"detach":{"type":"boolean"}},"required":["agent","task"],"additionalProperties":false}"#;

const DELEGATE: &str = r#"{"type":"object","properties":{"agent":{"type":"string","description":"which role it has"},"task":{"type":"string","description":"what it talks about with the person, and when it is done"},"id":{"type":"string","description":"what it is called; drawn if left out"},"turns":{"type":"integer","description":"how many of your last turns it knows; 20 if left out"},"budget":{"type":"object","description":"as for spawn_agent"}},"required":["agent","task"],"additionalProperties":false}"#;

const HAND_BACK: &str = r#"{"type":"object","properties":{"message":{"type":"string","description":"the outcome"}},"required":["message"],"additionalProperties":false}"#;

const LIST: &str = r#"{"type":"object","properties":{},"additionalProperties":false}"#;

const CANCEL: &str = r#"{"type":"object","properties":{"agent":{"type":"string"},"reason":{"type":"string"}},"required":["agent"],"additionalProperties":false}"#;

const ASK: &str = r#"{"type":"object","properties":{"question":{"type":"string"},"timeout":{"type":"string","description":"such as 10m; a day if left out"},"default":{"type":"string","description":"what counts as the answer if nobody answers in time"},"on_timeout":{"enum":["fail","default","cancel"],"description":"what happens if nobody answers in time: fail (you are told and decide), default (needs `default`), or cancel (you end there)"},"choices":{"type":"array","items":{"type":"string"},"description":"the person picks one"},"answer_schema":{"type":"object","description":"for an answer in JSON"}},"required":["question"],"additionalProperties":false}"#;

const READ_CONTEXT: &str = r#"{"type":"object","properties":{"key":{"type":"string"}},"required":["key"],"additionalProperties":false}"#;

const WRITE_CONTEXT: &str = r#"{"type":"object","properties":{"key":{"type":"string","description":"letters, digits and `_.-`, such as plan or report.draft"},"value":{"description":"any JSON value"},"expect_version":{"type":"integer","description":"write only if the value still has this version; 0 if there must be none"}},"required":["key","value"],"additionalProperties":false}"#;

const LIST_CONTEXT: &str = r#"{"type":"object","properties":{"prefix":{"type":"string","description":"only keys that begin so"}},"additionalProperties":false}"#;

const SPAWN_RULES_7: &str = r#"{"type":"object","properties":{"agent":{"type":"string","description":"which role it has"},"goal":{"type":"string","description":"everything that it has to know"},"id":{"type":"string","description":"what it is called; drawn if left out"},"budget":{"type":"object","description":"the most that it may use; yours holds in any case","properties":{"cost_usd":{"type":"number"},"tokens":{"type":"integer"},"steps":{"type":"integer"},"tool_calls":{"type":"integer"},"retries":{"type":"integer"},"timeout":{"type":"string"},"lend":{"type":"boolean","description":"set it aside for this agent alone"},"answer_reserve":{"type":"integer","description":"percent that agents below it must leave"},"on_low":{"description":"halt, shrink, or {\"downgrade\": MODEL}"}},"additionalProperties":false},"share":{"description":"what it knows beside its goal: goal (nothing), briefing (what you were told), thread (your context messages, as they come), or {\"fork\": N} (your last N turns)"},"tools":{"type":"array","items":{"type":"string"},"description":"fewer tools than its role has"},"model":{"type":"string"},"timeout":{"type":"string","description":"such as 90s or 5m"},"detach":{"type":"boolean","description":"go on at once and collect later"}},"required":["agent","goal"],"additionalProperties":false}"#;

const ASK_RULES_7: &str = r#"{"type":"object","properties":{"question":{"type":"string"},"timeout":{"type":"string","description":"such as 10m; a day if left out"},"default":{"type":"string","description":"what counts as the answer if nobody answers in time"},"on_timeout":{"enum":["fail","default","cancel"],"description":"what happens if nobody answers in time: fail (you are told and decide), default (needs `default`), or cancel (you end there)"}},"required":["question"],"additionalProperties":false}"#;

const ASK_RULES_2: &str = r#"{"type":"object","properties":{"question":{"type":"string"},"timeout":{"type":"string","description":"such as 10m; a day if left out"},"default":{"type":"string","description":"what counts as the answer if nobody answers in time"}},"required":["question"],"additionalProperties":false}"#;

const RUN_PIPELINE: &str = r#"{"type":"object","properties":{"mode":{"enum":["sequential","parallel"]},"steps":{"type":"array","items":{"type":"object","description":"a step, or a group with one of the keys parallel, sequence, race: [steps]; map: [steps] with over, as; loop: [steps] with until, max_rounds; choose: {value: [steps]} with on, else; vote: step with voters; ask: question","properties":{"id":{"type":"string"},"agent_id":{"type":"string","description":"which role it has"},"task_description":{"type":"string","description":"{{ name }} is an output"},"input_from":{"type":"array","items":{"type":"string"}},"output_to":{"type":"string"},"required":{"type":"boolean"},"when":{"type":"string"},"retry":{"type":"integer"},"timeout":{"type":"string"},"output_schema":{"type":"object"},"undo":{"type":"string"},"budget":{"type":"object"}}}},"on_partial_success":{"enum":["fail","continue","best_effort"]},"max_parallel":{"type":"integer"},"budget":{"type":"object"}},"required":["steps"],"additionalProperties":false}"#;
