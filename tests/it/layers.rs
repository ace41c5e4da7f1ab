//! Who may name what: the layers of `src/`, read as text.
//!
//! The check is a function over paths and texts, so that it can be shown made-up code that breaks
//! each rule: a check that cannot fail is worth nothing. Comments, strings and the tests at a
//! file's end do not count.

use std::collections::BTreeSet;
use std::path::Path;

/// Most lines of a file before its tests.
const LONGEST_FILE: usize = 450;

/// Words that only some places may name.
struct Reserved {
    words: &'static [&'static str],
    places: &'static [&'static str],
}

#[rustfmt::skip]
const RESERVED: [Reserved; 7] = [
    Reserved { words: &["wgpu", "egui_wgpu"], places: &["render/"] },
    Reserved { words: &["winit", "egui_winit"], places: &["modes/fly/", "overlay/input.rs"] },
    Reserved { words: &["egui", "egui_wgpu", "egui_winit"], places: &["overlay/", "render/painter.rs"] },
    Reserved { words: &["std::fs", "tempfile"], places: &["files.rs", "position.rs", "import/", "modes/"] },
    // A file's next band is decoded while the last one is learnt from and stored.
    Reserved { words: &["std::thread", "crossbeam_channel"], places: &["stream/workers.rs", "scene/patch_ground.rs", "import/ingest.rs"] },
    // Chunks of a file are decoded on all threads.
    Reserved { words: &["rayon"], places: &["compile/", "modes/", "import/chunks.rs"] },
    Reserved { words: &["clap"], places: &["modes/", "settings.rs"] },
];

/// Words that some places may not name.
struct Banned {
    words: &'static [&'static str],
    places: &'static [&'static str],
}

#[rustfmt::skip]
const BANNED: [Banned; 2] = [
    Banned { words: &["std::time", "Instant", "SystemTime"], places: &["terrain/", "world/", "stream/plan.rs"] },
    Banned { words: &["std::io", "std::net", "std::process"], places: &["terrain/"] },
];

/// The other parts of the crate that each may name.
#[rustfmt::skip]
const MAY_NAME: [(&str, &[&str]); 16] = [
    ("world", &[]),
    ("terrain", &["world"]),
    ("error", &[]),
    ("position", &[]),
    ("files", &["error", "position", "world"]),
    ("source", &["error", "terrain::height_map", "world::SourceInfo"]),
    ("import", &["error", "position", "source", "terrain::detail", "terrain::height_map", "world::source", "world::SourceInfo"]),
    ("compile", &["error", "source", "terrain", "world"]),
    ("export", &["terrain", "world"]),
    ("stream", &["settings::StreamStats", "terrain", "world"]),
    ("settings", &["terrain", "world"]),
    ("render", &["error", "settings", "terrain", "world"]),
    ("overlay", &["render::painter", "settings", "terrain", "world"]),
    ("scene", &["error", "files", "render", "settings", "stream", "terrain", "world"]),
    ("modes", &["compile", "error", "export", "files", "import", "overlay", "render", "scene", "settings", "source", "terrain", "world"]),
    ("lib", &["compile", "error", "export", "files", "import", "modes", "overlay", "position", "render", "scene", "settings", "source", "stream", "terrain", "world"]),
];

#[test]
fn the_layers_hold() {
    let files = sources("src", "rs");
    assert!(
        files.len() > 40,
        "only {} files were found in src",
        files.len()
    );
    assert_none(violations(&files));
}

#[test]
fn every_shader_belongs_to_a_file_of_the_renderer() {
    assert_none(shader_violations(
        &sources("shaders", "wgsl"),
        &sources("src", "rs"),
    ));
}

#[test]
fn a_violation_of_every_rule_is_found() {
    #[rustfmt::skip]
    let broken = [
        ("scene/patch_ground.rs", "use wgpu::Device;"),
        ("modes/fly/app.rs", "fn f(d: &wgpu::Device) {}"),
        ("overlay/mod.rs", "egui_wgpu::Renderer::new();"),
        ("overlay/mod.rs", "use winit::window::Window;"),
        ("render/gpu.rs", "use winit::window::Window;"),
        ("overlay/panels.rs", "fn f(s: egui_winit::State) {}"),
        ("modes/fly/mod.rs", "fn f(ui: &mut egui::Ui) {}"),
        ("render/target.rs", "use egui::Color32;"),
        ("world/reader.rs", "use std::fs::File;"),
        ("compile/mod.rs", "use std::{fmt, fs::{self, File}};"),
        ("scene/patch_ground.rs", "let t = tempfile::tempfile();"),
        ("compile/mod.rs", "std::thread::spawn(|| ());"),
        ("stream/plan.rs", "use crossbeam_channel::Sender;"),
        ("terrain/noise.rs", "use rayon::prelude::*;"),
        ("world/meta.rs", "#[derive(clap::Args)]"),
        ("terrain/lod.rs", "let now = std::time::Instant::now();"),
        ("world/bits.rs", "use std::{time::Duration, fmt};"),
        ("stream/plan.rs", "let now = Instant::now();"),
        ("terrain/mesh.rs", "use std::io::Write;"),
        ("world/layout.rs", "use crate::terrain::triangle;"),
        ("world/layout.rs", "use super::super::terrain;"),
        ("terrain/mesh.rs", "use crate::stream::plan::Plan;"),
        ("terrain/mesh.rs", "use crate::{world::Meta, render::Gpu};"),
        ("stream/mod.rs", "use super::render::Gpu;"),
        ("stream/plan.rs", "use crate::scene::Scene;"),
        ("stream/plan.rs", "use crate::settings::Settings;"),
        ("render/ground.rs", "use crate::stream::Streamer;"),
        ("render/ground.rs", "use crate::{\n    scene::Scene,\n};"),
        ("render/ground.rs", "crate::modes::run();"),
        ("compile/mod.rs", "use crate::render::Gpu;"),
        ("compile/mod.rs", "use crate::modes::cli;"),
        ("compile/mod.rs", "use crate::import::load;"),
        ("source.rs", "use crate::import::load;"),
        ("import/mod.rs", "use crate::terrain::{height_map::HeightMap, mesh};"),
        ("import/mod.rs", "use crate::world::Meta;"),
        ("settings.rs", "use crate::stream::StreamStats;"),
        ("overlay/mod.rs", "use crate::scene::Scene;"),
        ("scene/cull.rs", "use crate::modes::start_pose;"),
        ("files.rs", "use crate::terrain::mesh;"),
        ("position.rs", "use crate::error::Result;"),
        ("export/mod.rs", "use crate::files::write_beside;"),
        ("export/ply.rs", "use std::fs::File;"),
        ("unheard_of/mod.rs", "use crate::world::World;"),
    ];
    for (path, text) in broken {
        let files = [(path.to_owned(), format!("//! Something.\n{text}\n"))];
        assert_eq!(violations(&files).len(), 1, "{path}: {text}");
    }
    let without_doc = [("world/a.rs".to_owned(), "fn f() {}\n".to_owned())];
    assert_eq!(violations(&without_doc).len(), 1);
    let long = "//! Long.\n".to_owned() + &"fn f() {}\n".repeat(LONGEST_FILE);
    assert_eq!(violations(&[("world/a.rs".into(), long)]).len(), 1);
}

#[test]
fn a_violation_of_every_rule_of_shaders_is_found() {
    let file = |path: &str, text: &str| (path.to_owned(), text.to_owned());
    let renderer = [file("render/sky.rs", "")];
    let sound = [
        file("common.wgsl", "// Shared.\n"),
        file("sky.wgsl", "// Blue.\n"),
    ];
    assert_none(shader_violations(&sound, &renderer));
    let silent = [file("sky.wgsl", "fn f() {}\n")];
    assert_eq!(shader_violations(&silent, &renderer).len(), 1);
    let orphan = [file("moon.wgsl", "// White.\n")];
    assert_eq!(shader_violations(&orphan, &renderer).len(), 1);
}

#[test]
fn what_does_not_count_is_not_found() {
    let text = r#"//! What wgpu does.
// use wgpu::Device;
const NAME: &str = "wgpu // \" winit";
const QUOTE: char = '"';
fn f() -> &'static str { "std::fs" } // egui
use super::layout::Layout;
#[cfg(test)]
mod tests {
    use super::super::super::terrain::mesh;
    use std::fs::File;
}
"#;
    assert_none(violations(&[("world/deep/a.rs".into(), text.into())]));
}

/// All that breaks a rule in files whose paths start at `src/`.
fn violations(files: &[(String, String)]) -> Vec<String> {
    files
        .iter()
        .filter(|(path, _)| !path.ends_with("/tests.rs"))
        .flat_map(|(path, text)| {
            let code = bare_code(text);
            let names = Names::of(path, &code);
            let mut found = reserved_words(path, &names);
            found.extend(banned_words(path, &names));
            found.extend(wrong_layers(path, &names));
            if !text.starts_with("//! ") {
                found.push(format!("{path}: does not open with //!"));
            }
            let lines = before_tests(text).lines().count();
            if lines > LONGEST_FILE {
                found.push(format!("{path}: {lines} lines, at most {LONGEST_FILE}"));
            }
            found
        })
        .collect()
}

fn reserved_words(path: &str, names: &Names) -> Vec<String> {
    let broken = RESERVED.iter().filter(|rule| !is_in(path, rule.places));
    broken
        .flat_map(|rule| names.any_of(rule.words).map(|word| (rule, word)))
        .map(|(rule, word)| {
            let places = rule.places.join(", ");
            format!("{path}: names {word}, which only {places} may")
        })
        .collect()
}

fn banned_words(path: &str, names: &Names) -> Vec<String> {
    let broken = BANNED.iter().filter(|rule| is_in(path, rule.places));
    broken
        .flat_map(|rule| names.any_of(rule.words))
        .map(|word| format!("{path}: may not name {word}"))
        .collect()
}

fn wrong_layers(path: &str, names: &Names) -> Vec<String> {
    let layer = layer_of(path);
    if layer == "main" {
        return Vec::new();
    }
    let Some((_, allowed)) = MAY_NAME.iter().find(|(name, _)| *name == layer) else {
        return vec![format!("{path}: a layer without a rule")];
    };
    let is_allowed = |name: &str| {
        let starts_with = |prefix: &str| {
            let rest = name.strip_prefix(prefix);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
        };
        starts_with(&layer) || allowed.iter().any(|prefix| starts_with(prefix))
    };
    let wrong = names.of_crate.iter().filter(|name| !is_allowed(name));
    wrong
        .map(|name| format!("{path}: {layer} may not name {name}"))
        .collect()
}

fn shader_violations(shaders: &[(String, String)], sources: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in shaders {
        if !text.starts_with("// ") {
            found.push(format!("shaders/{path}: does not open with a comment"));
        }
        let name = path.trim_end_matches(".wgsl");
        let rust = format!("render/{name}.rs");
        let shared = ["common", "shading"].contains(&name);
        if !shared && !sources.iter().any(|(source, _)| *source == rust) {
            found.push(format!("shaders/{path}: there is no src/{rust}"));
        }
    }
    found
}

/// What a file names.
struct Names {
    words: BTreeSet<String>,
    /// Paths below `std` and below the crate, down to two parts.
    of_std: BTreeSet<String>,
    of_crate: BTreeSet<String>,
}

impl Names {
    fn of(path: &str, code: &str) -> Self {
        let tokens = tokens(code);
        let module = module_path(path);
        let mut names = Names {
            words: tokens.iter().filter(|t| is_word(t)).cloned().collect(),
            of_std: BTreeSet::new(),
            of_crate: BTreeSet::new(),
        };
        let paths = paths(&tokens);
        for parts in paths {
            match parts[0].as_str() {
                "std" => drop(names.of_std.insert(parts[..2].join("::"))),
                "crate" => drop(
                    names
                        .of_crate
                        .insert(parts[1..parts.len().min(3)].join("::")),
                ),
                "super" => names.of_crate.extend(from_root(&module, &parts)),
                _ => {}
            }
        }
        names
    }

    fn any_of(&self, words: &[&'static str]) -> Option<&'static str> {
        let named = |word: &&str| self.words.contains(*word) || self.of_std.contains(*word);
        words.iter().copied().find(|word| named(word))
    }
}

/// Where a path of `super`s leads when it leaves the layer.
fn from_root(module: &[String], parts: &[String]) -> Option<String> {
    let supers = parts.iter().take_while(|part| *part == "super").count();
    let rest = &parts[supers..];
    (supers >= module.len() && !rest.is_empty()).then(|| rest[..rest.len().min(2)].join("::"))
}

/// The module that a file is: `a/b.rs` and `a/b/mod.rs` are `a::b`.
fn module_path(path: &str) -> Vec<String> {
    let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
    path.split('/').map(str::to_owned).collect()
}

fn layer_of(path: &str) -> String {
    module_path(path)[0].clone()
}

fn is_in(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path.starts_with(place))
}

/// Every `a::b::c`, braces multiplied out.
fn paths(tokens: &[String]) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if is_word(&tokens[at]) && tokens.get(at + 1).is_some_and(|next| next == "::") {
            at = path_at(tokens, at, &[], &mut found);
        } else {
            at += 1;
        }
    }
    found
}

/// Reads the path that starts at a word behind `before`; returns where it ends.
fn path_at(
    tokens: &[String],
    mut at: usize,
    before: &[String],
    found: &mut Vec<Vec<String>>,
) -> usize {
    let mut parts = before.to_vec();
    while at < tokens.len() && is_word(&tokens[at]) {
        parts.push(tokens[at].clone());
        if tokens.get(at + 1).is_none_or(|next| next != "::") {
            found.push(parts);
            return at + 1;
        }
        at += 2;
    }
    if tokens.get(at).is_none_or(|token| token != "{") {
        found.push(parts);
        return at;
    }
    at += 1;
    while at < tokens.len() && tokens[at] != "}" {
        at = if is_word(&tokens[at]) {
            path_at(tokens, at, &parts, found)
        } else {
            at + 1
        };
    }
    at + 1
}

/// Words, `::`, and every other sign alone.
fn tokens(code: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
        let length = match word.unwrap_or(rest.len()) {
            0 if rest.starts_with("::") => 2,
            0 => first.len_utf8(),
            length => length,
        };
        let (token, behind) = rest.split_at(length);
        tokens.push(token.to_owned());
        rest = behind.trim_start();
    }
    tokens
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The text without its tests, its comments and what is in its strings.
fn bare_code(text: &str) -> String {
    let mut code = String::new();
    let mut rest = before_tests(text);
    while let Some(at) = rest.find(['/', '"', '\'']) {
        code += &rest[..at];
        rest = &rest[at..];
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with('"') {
            string_length(rest)
        } else if rest.starts_with("'\"'") {
            3
        } else {
            code += &rest[..1];
            1
        };
        rest = &rest[length..];
    }
    code + rest
}

fn string_length(text: &str) -> usize {
    let mut escaped = false;
    let end = text[1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

fn before_tests(text: &str) -> &str {
    let starts = ["mod tests {", "pub(super) mod tests {"]
        .iter()
        .filter_map(|start| text.find(&format!("#[cfg(test)]\n{start}")));
    &text[..starts.min().unwrap_or(text.len())]
}

/// The files below a folder of the project, with paths from that folder.
fn sources(folder: &str, extension: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut found = Vec::new();
    let mut folders = vec![root.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of the project") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                let name = path.strip_prefix(&root).expect("below the root");
                let name = name.to_string_lossy().replace('\\', "/");
                found.push((name, std::fs::read_to_string(&path).expect("text")));
            }
        }
    }
    found.sort();
    found
}

fn assert_none(violations: Vec<String>) {
    assert!(violations.is_empty(), "\n{}", violations.join("\n"));
}
