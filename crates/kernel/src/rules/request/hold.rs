//! Hold for an effect: an agent wants a model or a tool call. Its worst case is held up the whole chain before
//! anything starts; it may have to wait, and it may be refused.

use serde::{Deserialize, Serialize};

use super::{Verb, acting, room_for_call};
use crate::budget::{Amounts, CacheWrites};
use crate::record::{ModelCall, OutsideCall, ToolCall, Work};
use crate::rules::call;
use crate::rules::call::{Admitted, admit};
use crate::world::AgentIx;

use crate::definition::{Network, OnLost, Refusal, check_said, check_text};
use crate::primitives::{Actor, AgentId, Body, CallId, ModelName, TokenCount, ToolName, limit};
use crate::record::{Event, WaitReason};
use crate::rules::{Draft, clock, turn};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub agent: AgentId,
    pub effect: HoldFor,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum HoldFor {
    Model {
        /// Overrides the agent's own model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        model: Option<ModelName>,
        /// Upper bound on the input.
        input_tokens: u64,
        /// Has a default.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        output_cap: Option<u64>,
    },
    /// A model call that a program outside the tree makes. If it can never fit, the tree is halted, whichever account
    /// blocks it, until that is raised or the call is withdrawn.
    Outside {
        model: ModelName,
        /// Upper bound on the input.
        input_tokens: u64,
        output_cap: u64,
        /// The smallest output cap that the provider accepts with this request.
        #[serde(default, skip_serializing_if = "is_zero")]
        output_cap_min: u64,
        /// The most expensive cache write that the request can cause.
        #[serde(default, skip_serializing_if = "CacheWrites::is_hour")]
        writes: CacheWrites,
        /// What the program sends, as files; empty if only counts are kept.
        #[serde(default, skip_serializing_if = "Body::is_empty")]
        request: Body,
    },
    /// A model call that a running tool call of the agent asks for, with the agent's model. It is refused if it cannot fit
    /// together with a short answer of the agent, and withdrawn when the tool call ends before it has started.
    OfTool {
        call: CallId,
        /// The message that the model reads.
        request: Body,
        output_cap: u64,
    },
    Tool {
        tool: ToolName,
        /// A JSON object, as text.
        #[serde(default, skip_serializing_if = "String::is_empty")]
        args: String,
        #[serde(default)]
        cost_nanos_max: u64,
        /// How to treat it if the process dies.
        #[serde(default)]
        lost: OnLost,
    },
}

impl HoldFor {
    /// A call of an outside program that may cause any cache write and accepts any output cap. Its request is not kept.
    #[must_use]
    pub fn outside(model: ModelName, input_tokens: u64, output_cap: u64) -> Self {
        let (output_cap_min, writes, request) = (0, CacheWrites::Hour, Body::default());
        Self::Outside { model, input_tokens, output_cap, output_cap_min, writes, request }
    }
}

const fn is_zero(tokens: &u64) -> bool {
    *tokens == 0
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum HoldReply {
    Started {
        call: CallId,
    },
    Waiting {
        call: CallId,
        why: WaitReason,
    },
    /// It was recorded, but will not start.
    Refused {
        call: CallId,
        refusal: Refusal,
    },
}

impl Verb for Hold {
    type Reply = HoldReply;

    fn bodies_with_parts(&mut self) -> Vec<&mut Body> {
        match &mut self.effect {
            HoldFor::Outside { request, .. } => vec![request],
            HoldFor::Model { .. } | HoldFor::OfTool { .. } | HoldFor::Tool { .. } => Vec::new(),
        }
    }

    fn count(&mut self, tokens: &dyn Fn(&str) -> TokenCount) {
        if let HoldFor::OfTool { request, .. } = &mut self.effect {
            request.count(tokens);
        }
    }
}

impl Hold {
    pub(in crate::rules) fn decide(&self, draft: &mut Draft<'_>, by: &Actor) -> Result<HoldReply, Refusal> {
        let ix = acting(draft, by, &self.agent)?;
        clock::check_deadline(draft, ix)?;
        if turn::takes_turns(draft, ix) && !matches!(self.effect, HoldFor::OfTool { .. }) {
            return Err(Refusal::TakesTurns { agent: self.agent.clone() });
        }
        room_for_call(draft, ix)?;
        let work = self.work(draft, ix)?;
        let call = draft.calls().next_id();
        draft.record(Event::CallAsked { call, agent: self.agent.clone(), work });
        Ok(match admit(draft, call, None) {
            Admitted::Started => HoldReply::Started { call },
            Admitted::Waiting(why) => HoldReply::Waiting { call, why },
            Admitted::Refused(refusal) => HoldReply::Refused { call, refusal },
        })
    }

    fn work(&self, draft: &Draft<'_>, ix: AgentIx) -> Result<Work, Refusal> {
        match &self.effect {
            HoldFor::Model { model, input_tokens, output_cap } => {
                let model = model.as_ref().unwrap_or(&draft.agent(ix).terms.model);
                let output_cap = match output_cap {
                    Some(output_cap) => *output_cap,
                    None if draft.rules() < 5 => limit::OUTPUT_TOKENS_RULES_4,
                    None => draft.definition().model(model)?.output_cap(),
                };
                call::model_work(draft, ix, model, *input_tokens, output_cap).map(Work::Model)
            }
            HoldFor::Outside { model, input_tokens, output_cap, output_cap_min, writes, request } => {
                request.checked_with_parts("request")?;
                let work = call::model_work(draft, ix, model, *input_tokens, *output_cap)?;
                let (request, writes, output_cap_min) = (request.clone(), *writes, *output_cap_min);
                let of_tool = None;
                let outside = Some(Box::new(OutsideCall { request, writes, output_cap_min, of_tool }));
                Ok(Work::Model(ModelCall { outside, ..work }))
            }
            HoldFor::OfTool { call, request, output_cap } => {
                check_said("request", &request.text, limit::TEXT_BYTES_MAX)?;
                if !draft.call(*call).is_some_and(|call| call.is_live_tool_of(ix)) {
                    return Err(Refusal::NotRunning { call: *call });
                }
                let input = request.counted().plus(limit::MESSAGE_TOKENS);
                let work =
                    call::model_work(draft, ix, &draft.agent(ix).terms.model, input.bound(), *output_cap)?;
                let (mut plain, of_tool) = (Body::text(request.text.clone()), Some(*call));
                plain.tokens = request.tokens;
                let request = plain;
                let outside = Some(Box::new(OutsideCall { request, of_tool, ..OutsideCall::default() }));
                let estimate = Some(input.estimate()).filter(|estimate| *estimate != input.bound());
                Ok(Work::Model(ModelCall { outside, estimate, ..work }))
            }
            HoldFor::Tool { tool, args, cost_nanos_max, lost } => {
                draft.agent(ix).terms.caps.check_tool(tool)?;
                Amounts::cost(*cost_nanos_max).checked()?;
                check_text("arguments", args, limit::ARGS_BYTES_MAX)?;
                let (cost_nanos_max, lost) = (*cost_nanos_max, *lost);
                let (tool, args) = (tool.clone(), args.clone());
                let network = Network::Denied;
                let is_program = false;
                let call = ToolCall { tool, ask: None, args, cost_nanos_max, lost, network, is_program };
                Ok(Work::Tool(Box::new(call)))
            }
        }
    }
}
