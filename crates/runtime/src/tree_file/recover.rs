//! Reads the keys of a file although some are wrong, so that all errors are reported at once. What is wrong is taken
//! away and the rest is read again; an error that only follows from what was taken away is not reported.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::error::Place;
use super::keys::TreeKeys;
use super::model::refused_params;
use super::node::{Key, Kind, Node, OwnedStep};
use super::wrong::Wrong;
use super::{ERRORS_MAX, ModelCatalog};

/// Most values that are read again to find further errors: a large file is read less often.
const READ_VALUES_MAX: usize = 5_000_000;

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
    pub(super) wrong: Vec<Wrong>,
}

pub(super) fn read(root: &Node, catalog: &dyn ModelCatalog) -> Recovered {
    let mut all = Recovered { keys: None, lost: Lost::default(), wrong: refused_params(root, catalog) };
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
    fn go_on_without(&mut self, left: &mut Node, first: Wrong) {
        let mut next = Some(first);
        // Keys without a usable value, by the place of their map: list items move.
        let mut gone: BTreeSet<(Place, String)> = BTreeSet::new();
        // Keys that were given a value so that the rest of their map can be read.
        let mut filled: BTreeSet<(Place, String)> = BTreeSet::new();
        let rounds = (READ_VALUES_MAX / left.count()).min(4 * ERRORS_MAX);
        for _ in 0..rounds {
            let Some(wrong) = next.take() else { return };
            let mut path = wrong.path();
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
                    // The file is no map at all.
                    if path.is_empty() {
                        return;
                    }
                    gone.extend(left.remove(&path));
                }
            }
            self.lost.0.insert(path);
            if self.wrong.len() >= ERRORS_MAX {
                return;
            }
            match TreeKeys::deserialize(&*left) {
                Ok(keys) => self.keys = Some(keys),
                Err(wrong) => next = Some(wrong),
            }
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
    fn key_at(&mut self, path: &[OwnedStep]) -> Option<(Place, String)> {
        let (OwnedStep::Key(key), above) = path.split_last()? else { return None };
        Some((self.inner_mut(above)?.place, key.clone()))
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
