//! Which key does what: one table that is both obeyed and shown by F1.
//!
//! Keys are physical, so that the letters of WASD lie under the same fingers on every layout.

use winit::keyboard::KeyCode;

/// What a key press does once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    ToggleWireframe,
    ToggleLevels,
    ShadedView,
    ToggleHelp,
    TogglePanels,
    ToggleClamp,
    ToggleLook,
    FreeMouse,
    Home,
    ResetSpeed,
    FinerError,
    CoarserError,
    CopyPose,
    FullScreen,
}

/// A key and its name, its action and what it is for.
pub struct Binding {
    pub code: KeyCode,
    pub name: &'static str,
    pub action: Action,
    pub help: &'static str,
}

const fn bind(code: KeyCode, name: &'static str, action: Action, help: &'static str) -> Binding {
    Binding {
        code,
        name,
        action,
        help,
    }
}

pub const BINDINGS: [Binding; 16] = [
    bind(
        KeyCode::F1,
        "F1",
        Action::ToggleHelp,
        "show or hide this help",
    ),
    bind(
        KeyCode::KeyH,
        "H",
        Action::TogglePanels,
        "show or hide the panel",
    ),
    bind(
        KeyCode::KeyZ,
        "Z",
        Action::ToggleWireframe,
        "wireframe on or off",
    ),
    bind(
        KeyCode::KeyL,
        "L",
        Action::ToggleLevels,
        "level colours on or off",
    ),
    bind(
        KeyCode::KeyX,
        "X",
        Action::ShadedView,
        "back to the shaded ground",
    ),
    bind(
        KeyCode::Equal,
        "+",
        Action::CoarserError,
        "more pixel error: fewer triangles",
    ),
    bind(KeyCode::NumpadAdd, "", Action::CoarserError, "the same"),
    bind(
        KeyCode::Minus,
        "-",
        Action::FinerError,
        "less pixel error: more triangles",
    ),
    bind(KeyCode::NumpadSubtract, "", Action::FinerError, "the same"),
    bind(
        KeyCode::KeyG,
        "G",
        Action::ToggleClamp,
        "keep the camera above the ground, or not",
    ),
    bind(
        KeyCode::KeyM,
        "M",
        Action::ToggleLook,
        "look with the mouse, or not",
    ),
    bind(KeyCode::Escape, "Esc", Action::FreeMouse, "free the mouse"),
    bind(KeyCode::Home, "Home", Action::Home, "back to the start"),
    bind(
        KeyCode::Backspace,
        "Backspace",
        Action::ResetSpeed,
        "back to the first speed",
    ),
    bind(
        KeyCode::KeyC,
        "C",
        Action::CopyPose,
        "copy the camera for --camera",
    ),
    bind(
        KeyCode::F11,
        "F11",
        Action::FullScreen,
        "full screen on or off",
    ),
];

/// Keys that act while they are held: a name and what it is for.
pub const HELD: [(&str, &str); 6] = [
    ("W A S D, arrows", "fly forward, left, back, right"),
    ("E / Q", "up / down"),
    ("Shift / Ctrl", "five times as fast / slow"),
    ("right mouse button", "look around"),
    ("mouse wheel", "faster, slower"),
    ("Ctrl+Q", "quit"),
];

pub fn action_of(code: KeyCode) -> Option<Action> {
    BINDINGS
        .iter()
        .find(|binding| binding.code == code)
        .map(|binding| binding.action)
}

/// All keys as the help shows them.
pub fn help() -> Vec<(&'static str, &'static str)> {
    let pressed = BINDINGS.iter().map(|binding| (binding.name, binding.help));
    HELD.into_iter().chain(pressed).collect()
}

/// How far a held key moves the camera: right, up, forward.
pub fn motion_of(code: KeyCode) -> [f64; 3] {
    match code {
        KeyCode::KeyW | KeyCode::ArrowUp => [0.0, 0.0, 1.0],
        KeyCode::KeyS | KeyCode::ArrowDown => [0.0, 0.0, -1.0],
        KeyCode::KeyD | KeyCode::ArrowRight => [1.0, 0.0, 0.0],
        KeyCode::KeyA | KeyCode::ArrowLeft => [-1.0, 0.0, 0.0],
        KeyCode::KeyE => [0.0, 1.0, 0.0],
        KeyCode::KeyQ => [0.0, -1.0, 0.0],
        _ => [0.0; 3],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_does_two_things() {
        for (i, binding) in BINDINGS.iter().enumerate() {
            assert!(
                BINDINGS[i + 1..]
                    .iter()
                    .all(|other| other.code != binding.code),
                "{}",
                binding.name
            );
            assert_eq!(motion_of(binding.code), [0.0; 3], "{}", binding.name);
        }
    }
}
