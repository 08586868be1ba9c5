//! Values of JSON, and types that are written as JSON.

use std::borrow::Cow;
use std::ops::Range;

use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use super::Redactor;

impl Redactor {
    /// Redacts all texts of a value. Names of fields stay.
    pub fn redact_json(&self, value: &mut Value) {
        self.each(value, &mut || true);
    }

    /// The same for a type. What is not a text stays as it is: ids and names cannot have a mark.
    ///
    /// # Errors
    /// If it cannot be written as JSON or read again.
    pub fn redact_typed<'t, T: Serialize + DeserializeOwned + Clone>(
        &self,
        typed: &'t T,
    ) -> serde_json::Result<Cow<'t, T>> {
        let bytes = serde_json::to_vec(typed)?;
        if !self.may_change_json(&bytes) {
            return Ok(Cow::Borrowed(typed));
        }
        self.redact_as(&serde_json::from_slice(&bytes)?, serde_json::from_value).map(Cow::Owned)
    }

    /// Whether JSON as bytes has anything to redact. A preview always may: half a secret is none that is found.
    #[must_use]
    pub fn may_change_json(&self, bytes: &[u8]) -> bool {
        let has_preview = || str::from_utf8(bytes).is_ok_and(|text| text.contains("\"rest\":"));
        self.first_in(bytes).is_some() || has_preview()
    }

    /// Redacts the texts of a value that is read as something else: those that can change in it.
    ///
    /// # Errors
    /// If it cannot be read even as it is.
    pub fn redact_as<T, E>(&self, value: &Value, read: impl Fn(Value) -> Result<T, E>) -> Result<T, E> {
        let mut count = 0;
        self.each(&mut value.clone(), &mut || {
            count += 1;
            false
        });
        let mut changed = vec![false; count];
        self.change_all(value, &mut changed, 0..count, &|value| read(value).is_ok());
        read(self.with(value, &changed))
    }

    /// Changes the texts of a range. If what comes of it cannot be read, one of them is an id, and each half is tried alone.
    fn change_all(
        &self,
        value: &Value,
        changed: &mut [bool],
        range: Range<usize>,
        can_be_read: &impl Fn(Value) -> bool,
    ) {
        changed[range.clone()].fill(true);
        if can_be_read(self.with(value, changed)) {
            return;
        }
        changed[range.clone()].fill(false);
        if range.len() > 1 {
            let middle = range.start + range.len() / 2;
            self.change_all(value, changed, range.start..middle, can_be_read);
            self.change_all(value, changed, middle..range.end, can_be_read);
        }
    }

    /// The value with these of its texts changed.
    fn with(&self, value: &Value, changed: &[bool]) -> Value {
        let (mut value, mut changed) = (value.clone(), changed.iter());
        self.each(&mut value, &mut || changed.next() == Some(&true));
        value
    }

    /// Redacts each text that has a secret, if that is wanted.
    fn each(&self, value: &mut Value, is_wanted: &mut impl FnMut() -> bool) {
        match value {
            Value::String(text) => {
                if let Cow::Owned(redacted) = self.redact(text)
                    && is_wanted()
                {
                    *text = redacted;
                }
            }
            Value::Array(values) => values.iter_mut().for_each(|value| self.each(value, is_wanted)),
            Value::Object(fields) => {
                let preview = self.preview(fields);
                let is_preview = preview.is_some();
                if let Some((text, gap)) = preview
                    && fields.get("text") != Some(&text)
                    && is_wanted()
                {
                    fields.insert("text".to_owned(), text);
                    gap.map(|gap| fields.insert("gap".to_owned(), gap));
                }
                let others = fields.iter_mut().filter(|(name, _)| !is_preview || *name != "text");
                others.for_each(|(_, value)| self.each(value, is_wanted));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    /// The text of a body that is only a preview, and where its head ends.
    fn preview(&self, fields: &Map<String, Value>) -> Option<(Value, Option<Value>)> {
        let (text, _) = fields.get("text")?.as_str().zip(fields.get("rest"))?;
        let gap = fields.get("gap").and_then(Value::as_u64).and_then(|gap| usize::try_from(gap).ok());
        Some(match gap.and_then(|gap| text.split_at_checked(gap)) {
            Some((head, tail)) => {
                let head = self.redact_before_cut(head);
                let gap = head.len();
                ((head + &self.redact_after_cut(tail)).into(), Some(gap.into()))
            }
            None => (self.redact_before_cut(text).into(), None),
        })
    }
}
