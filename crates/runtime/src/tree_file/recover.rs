//! Reads the keys of a file although some are wrong, so all errors are reported at once. What is wrong is taken
//! away and the rest is read again; an error that only follows from what was taken away is not reported. What has a name that
//! cannot be used is read under another one.

use std::collections::{BTreeMap, BTreeSet};
use std::iter;

use serde::Deserialize;
use spinney_kernel::primitives::RESERVED_IDS;

use super::error::TextPosition;
use super::keys::TreeKeys;
use super::model::refused_params;
use super::node::{Key, Kind, Node, OwnedStep};
use super::value_error::ValueError;
use super::{ERRORS_MAX, ModelCatalog};

/// Most values that are read again to find further errors: a large file is read less often.
const READ_VALUES_MAX: usize = 5_000_000;

/// Stands for a name that has no letter or digit.
const UNNAMED: &str = "unnamed";
/// Longest part of a wrong name that is kept, so every kind of name has room for it and a number.
const NAME_CHARS_MAX: usize = 32;

/// What was taken away because it is wrong, by its path.
#[derive(Debug, Default)]
pub(super) struct Lost(BTreeSet<Vec<OwnedStep>>);

impl Lost {
    /// Whether the value of these keys was taken away.
    pub(super) fn has(&self, keys: &[&str]) -> bool {
        self.0.iter().any(|path| {
            path.len() == keys.len()
                && path
                    .iter()
                    .zip(keys)
                    .all(|(step, key)| matches!(step, OwnedStep::Key(step) if step == key))
        })
    }

    /// Whether something was taken away from the map of this key, or all of it.
    pub(super) fn has_in(&self, key: &str) -> bool {
        self.0
            .iter()
            .any(|path| path.len() <= 2 && matches!(path.first(), Some(OwnedStep::Key(step)) if step == key))
    }
}

/// What could be read of a file.
pub(super) struct Recovered {
    /// `None` if nothing could.
    pub(super) keys: Option<TreeKeys>,
    pub(super) lost: Lost,
    /// In the order in which they were found.
    pub(super) wrong: Vec<ValueError>,
    /// Names that cannot be used, by their places, and those under which their values were read instead.
    pub(super) renamed: BTreeMap<TextPosition, String>,
}

pub(super) fn read(root: &Node, catalog: &dyn ModelCatalog) -> Recovered {
    let mut all = Recovered {
        keys: None,
        lost: Lost::default(),
        wrong: refused_params(root, catalog),
        renamed: BTreeMap::new(),
    };
    if all.wrong.is_empty() {
        match TreeKeys::deserialize(root) {
            Ok(keys) => all.keys = Some(keys),
            Err(wrong) => all.go_on_without(&mut root.clone(), wrong),
        }
        return all;
    }
    let mut left = root.clone();
    for wrong in &all.wrong {
        left.remove(&wrong.path());
    }
    match TreeKeys::deserialize(&left) {
        Ok(keys) => all.keys = Some(keys),
        Err(wrong) => all.go_on_without(&mut left, wrong),
    }
    all
}

impl Recovered {
    fn go_on_without(&mut self, left: &mut Node, first: ValueError) {
        let mut next = Some(first);
        // Keys without a usable value, by the place of their map: list items move.
        let mut gone: BTreeSet<(TextPosition, String)> = BTreeSet::new();
        // Keys that were given a value so that the rest of their map can be read.
        let mut filled: BTreeSet<(TextPosition, String)> = BTreeSet::new();
        let rounds = (READ_VALUES_MAX / left.count()).min(4 * ERRORS_MAX);
        for _ in 0..rounds {
            let Some(wrong) = next.take() else { return };
            let mut path = wrong.path();
            if wrong.is_of_name() && !self.renamed.contains_key(&wrong.place()) {
                let name = left.free_name(&path);
                left.rename(wrong.place(), &name);
                self.renamed.insert(wrong.place(), name);
                self.wrong.push(wrong);
                next = self.read_again(left);
                continue;
            }
            match wrong.missing() {
                Some(key) => {
                    let place = (wrong.place(), key.to_owned());
                    if gone.insert(place.clone()) {
                        self.wrong.push(wrong);
                    }
                    filled.insert(place);
                    left.fill(&path, key);
                    path.push(OwnedStep::Key(key.to_owned()));
                }
                // No text can stand here, so the whole map is left out.
                None if left.key_at(&path).is_some_and(|key| filled.contains(&key)) => {
                    path.pop();
                    gone.extend(left.remove(&path));
                }
                None => {
                    self.wrong.push(wrong);
                    // The file is not a map.
                    if path.is_empty() {
                        return;
                    }
                    gone.extend(left.remove(&path));
                }
            }
            self.lost.0.insert(path);
            next = self.read_again(left);
        }
    }

    /// The next thing that is wrong, unless there are enough.
    fn read_again(&mut self, left: &Node) -> Option<ValueError> {
        if self.wrong.len() >= ERRORS_MAX {
            return None;
        }
        match TreeKeys::deserialize(left) {
            Ok(keys) => {
                self.keys = Some(keys);
                None
            }
            Err(wrong) => Some(wrong),
        }
    }
}

impl Node {
    /// How many values it has, itself included.
    fn count(&self) -> usize {
        1 + match &self.kind {
            Kind::List(items) => items.iter().map(Self::count).sum(),
            Kind::Map(entries) => entries.iter().map(|(_, value)| value.count()).sum(),
            Kind::Empty | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => 0,
        }
    }

    /// The last key of a path, and the place of its map.
    fn key_at(&mut self, path: &[OwnedStep]) -> Option<(TextPosition, String)> {
        let (OwnedStep::Key(key), above) = path.split_last()? else { return None };
        Some((self.inner_mut(above)?.place, key.clone()))
    }

    /// Gives the key at a place another text.
    pub(super) fn rename(&mut self, place: TextPosition, name: &str) {
        match &mut self.kind {
            Kind::List(items) => items.iter_mut().for_each(|item| item.rename(place, name)),
            Kind::Map(entries) => {
                for (key, value) in entries {
                    if key.place == place {
                        name.clone_into(&mut key.text);
                    }
                    value.rename(place, name);
                }
            }
            Kind::Empty | Kind::Bool(_) | Kind::Number(_) | Kind::Text(_) => {}
        }
    }

    /// A name like the last one of a path that can be used and that its map does not have yet.
    fn free_name(&mut self, path: &[OwnedStep]) -> String {
        let Some((OwnedStep::Key(written), above)) = path.split_last() else { return UNNAMED.to_owned() };
        let taken: Vec<&str> = match self.inner_mut(above).map(|map| &map.kind) {
            Some(Kind::Map(entries)) => entries.iter().map(|(key, _)| key.text.as_str()).collect(),
            _ => Vec::new(),
        };
        let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
        let plain: String = written.chars().take(NAME_CHARS_MAX).map(letter).collect();
        let plain = Some(plain.trim_matches('-')).filter(|plain| !plain.is_empty()).unwrap_or(UNNAMED);
        let is_free =
            |name: &String| !taken.contains(&name.as_str()) && !RESERVED_IDS.contains(&name.as_str());
        let numbered = (2..=taken.len() + RESERVED_IDS.len() + 2).map(|number| format!("{plain}-{number}"));
        iter::once(plain.to_owned()).chain(numbered).find(is_free).unwrap_or_else(|| UNNAMED.to_owned())
    }

    /// Gives a map the key that it lacks.
    fn fill(&mut self, path: &[OwnedStep], key: &str) {
        let Some(map) = self.inner_mut(path) else { return };
        let place = map.place;
        let Kind::Map(entries) = &mut map.kind else { return };
        let kind = match key {
            "models" | "agents" if path.is_empty() => Kind::Map(Vec::new()),
            _ => Kind::Text("missing".to_owned()),
        };
        entries.push((Key { place, text: key.to_owned() }, Self { place, kind }));
    }
}
