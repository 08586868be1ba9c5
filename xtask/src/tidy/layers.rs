//! The kernel's folders are layers, as a table: none imports from one above it.

use super::Finding;
use crate::workspace::{Source, Workspace};

const FOLDER: &str = "crates/kernel/src/";

/// From the bottom to the top.
const LAYERS: [&str; 9] =
    ["words", "budget", "definition", "record", "window", "context", "world", "port", "rules"];

pub(super) fn check(workspace: &Workspace) -> Vec<Finding> {
    workspace.sources.iter().flat_map(check_source).collect()
}

fn check_source(source: &Source) -> Vec<Finding> {
    let Some(place) = source.path.strip_prefix(FOLDER) else { return Vec::new() };
    let Some((folder, _)) = place.split_once('/') else {
        return if place == "lib.rs" { Vec::new() } else { vec![without_layer(source, place)] };
    };
    let Some(own) = rank(folder) else { return vec![without_layer(source, folder)] };
    let mentions = source.scan.mentions.iter();
    let upwards = mentions.filter_map(|mention| {
        let layer = mention.path.strip_prefix("crate::")?.split("::").next()?;
        (rank(layer)? > own).then(|| Finding {
            path: source.path.clone(),
            line: mention.line,
            rule: "layers",
            item: mention.path.clone(),
            what: format!("`{folder}` imports `{}` from `{layer}`, which is above it", mention.path),
            remedy: "move what both need to the lower layer, or pass it in from above",
        })
    });
    upwards.collect()
}

fn rank(layer: &str) -> Option<usize> {
    LAYERS.iter().position(|name| *name == layer)
}

fn without_layer(source: &Source, item: &str) -> Finding {
    Finding {
        path: source.path.clone(),
        line: 1,
        rule: "layers",
        item: item.to_owned(),
        what: format!("`{item}` is in no layer of the kernel"),
        remedy: "move it into one, or add the layer to LAYERS in xtask/src/tidy/layers.rs and to ARCHITECTURE.md",
    }
}
