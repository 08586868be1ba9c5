//! Upper bound on the steps to check a value, computed in advance. Parts of a schema may refer to each other so that
//! each doubles the cost of the next; patterns and lists of allowed values cost by their length. The count follows
//! every part that might be visited, and stops at its limit.

use serde_json::{Map, Value};
use spinney_kernel::primitives::limit;

use super::plan::{Part, Plan, Which, nodes};

/// A step count that has not reached its limit.
pub(super) struct Cost<'p> {
    plan: &'p Plan,
    left: u64,
}

impl Cost<'_> {
    /// Refuses a value that takes too many steps.
    ///
    /// # Errors
    /// What was expected instead.
    pub(super) fn check(plan: &Plan, value: &Value) -> Result<(), String> {
        Cost { plan, left: limit::CHECK_STEPS_MAX }.part(0, value, 0)
    }

    fn spend(&mut self, steps: usize) -> Result<(), String> {
        let left = self.left.checked_sub(steps as u64);
        self.left = left.ok_or_else(|| {
            let steps = limit::CHECK_STEPS_MAX;
            format!("expected an answer that takes at most {steps} steps to check: make it shorter")
        })?;
        Ok(())
    }

    fn part(&mut self, at: usize, value: &Value, depth: usize) -> Result<(), String> {
        let plan = self.plan;
        let Some(part) = plan.0.get(at) else { return Ok(()) };
        if depth >= limit::CHECK_DEPTH_MAX {
            return Err(format!("expected an answer that parts of the schema follow at most {depth} deep"));
        }
        self.spend(1 + part.compares)?;
        for to in &part.same {
            self.part(*to, value, depth + 1)?;
        }
        for to in &part.one_of {
            self.spend(nodes(value))?;
            self.part(*to, value, depth + 1)?;
        }
        match value {
            Value::Array(items) => self.items(part, items, depth + 1),
            Value::Object(members) => self.members(part, members, depth + 1),
            Value::String(text) => self.text(part, text),
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
        }
    }

    fn items(&mut self, part: &Part, items: &[Value], depth: usize) -> Result<(), String> {
        if part.unique {
            self.spend(4 * items.iter().map(nodes).sum::<usize>())?;
        }
        for (at, to) in &part.items {
            let (from, until) = at.map_or((0, items.len()), |at| (at, at.saturating_add(1).min(items.len())));
            for item in items.get(from..until).unwrap_or_default() {
                self.part(*to, item, depth)?;
            }
        }
        Ok(())
    }

    fn members(&mut self, part: &Part, members: &Map<String, Value>, depth: usize) -> Result<(), String> {
        for (which, to) in &part.members {
            match which {
                Which::Named(name) => match members.get(name) {
                    Some(member) => self.part(*to, member, depth)?,
                    None => self.spend(1)?,
                },
                Which::All => members.values().try_for_each(|member| self.part(*to, member, depth))?,
                Which::Found(bytes) => {
                    for (name, member) in members {
                        self.spend(looking(*bytes, name))?;
                        self.part(*to, member, depth)?;
                    }
                }
            }
        }
        for to in &part.keys {
            members.keys().try_for_each(|name| self.part(*to, &Value::String(name.clone()), depth))?;
        }
        Ok(())
    }

    fn text(&mut self, part: &Part, text: &str) -> Result<(), String> {
        self.spend(text.len() / 64 + part.pattern.map_or(0, |bytes| looking(bytes, text)))
    }
}

/// The cost of searching a text for a pattern: proportional to both.
const fn looking(pattern: usize, text: &str) -> usize {
    text.len().saturating_mul(8 + pattern) / 8
}
